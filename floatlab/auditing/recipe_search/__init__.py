"""Finds the recipe that made given codes: tries recipes bit for bit, and tells those that agree apart.

A recipe is a block format with a rule for its scales, such as `nvfp4:te`.
"""
