"""Finds the recipe by which codes were made: compares these codes, bit for bit, with the codes of many recipes.

If several recipes agree, the result shows how these recipes differ.

A recipe is a block format with a rule for its scales, such as `nvfp4:te`.
"""
