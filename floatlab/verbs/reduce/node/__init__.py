"""One node of a reduction: its page, and its roundings as questions."""
