"""Replays candidate computations on given inputs, and counts how many elements of a result each reproduces."""
