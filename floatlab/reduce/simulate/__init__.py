"""Evaluates sums in a given order of additions: on single numbers, on arrays, and by models of matrix units."""
