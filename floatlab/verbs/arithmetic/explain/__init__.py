"""Why each step of an operation does what it does, in sentences."""
