"""`sum`, `dot` and `matmul`: arrays added in a stated order."""
