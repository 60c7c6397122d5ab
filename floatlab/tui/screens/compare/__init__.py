"""The screen Compare: two arrays and their differences."""
