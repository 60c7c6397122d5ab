"""Practice: questions about the steps of an operation, their answers, and exercise sheets."""
