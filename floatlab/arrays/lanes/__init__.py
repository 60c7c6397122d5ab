"""The three lanes (compiled, NumPy and scalar): implementations of the same operations on blocks of codes."""
