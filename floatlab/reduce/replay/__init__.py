"""Runs candidate computations on given inputs; counts the elements of an observed result that each reproduces."""
