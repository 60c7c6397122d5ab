"""Recipes of integers with zero points, and of scales that are codes themselves."""
