"""Practice: a question to the user before each step is shown."""
