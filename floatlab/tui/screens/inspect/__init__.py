"""Inspect: a value in several formats at once."""
