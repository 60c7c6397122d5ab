"""The screen Reduce: a sum or product with its tree."""
