"""Finds the recipe that made given codes: compares them, bit for bit, with the codes that many recipes give.

If several recipes agree, shows how they differ.

A recipe is a block format with a rule for its scales, such as `nvfp4:te`.
"""
