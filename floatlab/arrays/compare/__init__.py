"""Measures the differences of two arrays, piece by piece."""
