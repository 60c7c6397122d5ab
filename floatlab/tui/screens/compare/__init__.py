"""Compare: two arrays and their differences."""
