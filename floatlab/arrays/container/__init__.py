"""FloatArray, an array whose values live in a format, and what NumPy's functions do with it."""
