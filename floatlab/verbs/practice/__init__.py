"""Practice: what to ask before a step is shown."""
