"""Measures what recipes would do to the tensors of checkpoints, piece by piece, and recommends recipes."""
