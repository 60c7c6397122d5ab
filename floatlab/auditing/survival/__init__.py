"""Measures what recipes would do to the tensors of checkpoints, piece by piece, and recommends recipes.

A recipe is a block format with a rule for its scales, such as `mxfp4`, or a format without scales, such as `e4m3`.
"""
