"""`show`: one value in one or more formats."""
