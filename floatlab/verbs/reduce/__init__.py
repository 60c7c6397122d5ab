"""`sum`, `dot` and `matmul`: arrays added in a given order."""
