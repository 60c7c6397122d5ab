"""Parts of screens, one widget each."""
