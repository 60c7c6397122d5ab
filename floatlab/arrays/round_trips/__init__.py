"""Rounds an array to a format or by a recipe, and measures the result: counts, errors and sums."""
