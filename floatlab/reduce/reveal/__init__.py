"""The order in which a real implementation adds, found by probing it."""
