"""Faults of results: wrong elements, shifts, functions of the product, and rounding that looks like a fault."""
