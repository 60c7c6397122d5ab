"""Sums, dot products and matrix products as results: how their arguments are read, and their errors."""
