"""Finds, in an original checkpoint, the tensors from which a quantised weight was made: by name, or by content."""
