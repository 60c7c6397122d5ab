"""Floor 5: pages as text and SVG, answers as JSON."""
