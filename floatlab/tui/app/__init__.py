"""The app: the registry of screens, settings, the command palette, browser sessions, and output to the terminal."""
