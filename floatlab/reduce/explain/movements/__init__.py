"""Results whose elements are in other places: permuted rows and columns, and transposed results."""
