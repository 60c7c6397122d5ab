"""The explorer itself: screens, themes, settings, the palette, and what the terminal gets."""
