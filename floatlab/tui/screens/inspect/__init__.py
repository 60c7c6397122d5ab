"""The screen Inspect: a value in several formats."""
