"""Training under way: advanced step by step, changed between steps, and drawn as it stands."""
