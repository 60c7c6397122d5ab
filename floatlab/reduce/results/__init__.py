"""Computes sums, dot products and matrix products in a given order: reads their arguments, measures their errors."""
