"""Candidate computations replayed on given inputs, and how much of an observed result each of them reproduces."""
