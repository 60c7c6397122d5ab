"""Runs candidate computations on given inputs, and counts how many elements of an observed result each reproduces."""
