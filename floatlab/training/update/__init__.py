"""One update of one weight, every rounding of it, and how large it must be to count."""
