"""Narrow formats in a result: of its sums, which are replayed bit for bit, and of its output."""
