"""Finds the recipe that made given codes: compares the codes of many recipes with them, bit for bit.

If several recipes agree, shows how they differ.

A recipe is a block format with a rule for its scales, such as `nvfp4:te`.
"""
