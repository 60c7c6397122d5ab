"""Recipes on arrays: evaluates formulas of scale rules, cuts arrays into blocks, and applies rules of libraries."""
