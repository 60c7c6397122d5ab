"""The three lanes that round blocks of codes: compiled, NumPy, and the scalar codec."""
