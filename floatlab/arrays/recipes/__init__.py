"""Recipes on arrays: formulas of scale rules, blocks of any shape, and the rules of libraries."""
