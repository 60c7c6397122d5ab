"""The app: the registry of screens, settings, the palette, browser sessions, and output to the terminal."""
