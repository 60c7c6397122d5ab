"""Layer 4: answers as JSON, written and read back."""
