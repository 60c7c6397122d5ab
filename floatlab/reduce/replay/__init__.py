"""Computes candidates on given inputs, and counts how many elements of an observed result each one reproduces."""
