"""Replays candidate computations on given inputs, and counts how much of an observed result each reproduces."""
