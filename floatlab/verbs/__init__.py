"""Floor 5: everything that a user can ask, a folder a topic: its options, its answer, its page."""
