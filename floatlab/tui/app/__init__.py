"""The explorer's app: the table of screens, the settings, the command palette, and the explorer in a browser."""
