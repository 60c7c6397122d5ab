"""Finds the tensors of an original checkpoint that a quantised weight was made from: by name, or by content."""
