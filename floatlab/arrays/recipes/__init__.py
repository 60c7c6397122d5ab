"""Recipes on arrays: evaluates formulas of scale rules, cuts arrays into blocks, and quantizes by library rules."""
