"""The three lanes: implementations of the same operations on blocks of codes (compiled, NumPy, and scalar)."""
