"""Practice: questions that are asked before a step is shown."""
