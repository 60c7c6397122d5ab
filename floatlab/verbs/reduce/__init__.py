"""`sum` and `dot`: arrays added in a stated order."""
