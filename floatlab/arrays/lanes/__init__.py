"""The three lanes that round blocks of codes: compiled, NumPy's, and the scalar codec's."""
