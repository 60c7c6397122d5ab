"""Floor 4: answers as JSON, and back."""
