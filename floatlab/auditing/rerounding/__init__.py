"""Rounds an original again with the scales that a quantised weight stores, and compares the codes."""
