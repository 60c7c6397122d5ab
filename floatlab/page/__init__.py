"""Layer 4: pages and their renderers: layout, charts, text, SVG, HTML, figures."""
