"""Floor 4: answers as pages."""
