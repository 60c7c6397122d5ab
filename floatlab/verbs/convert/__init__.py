"""`convert`: a value rounded along a path of formats."""
