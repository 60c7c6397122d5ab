"""The lanes: three implementations (compiled, NumPy and scalar) of the same operations on arrays of codes."""
