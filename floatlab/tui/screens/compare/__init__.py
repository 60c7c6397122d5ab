"""Compare: two arrays and where they differ."""
