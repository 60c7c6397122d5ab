"""Find the order in which a real implementation adds, by probing it."""
