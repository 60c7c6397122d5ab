"""The three lanes, which are implementations of rounding blocks of codes: compiled, NumPy, and the scalar codec."""
