"""Floor 4: pages, and everything that draws them: layout, charts, text, SVG, HTML, figures."""
