"""FloatArray, an array whose values are numbers of one format, and NumPy's functions on it."""
