"""Recipes of integers with zero points, and of scales that are themselves quantised."""
