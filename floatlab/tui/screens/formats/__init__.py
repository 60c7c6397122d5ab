"""The screen Formats: the table of formats, one format in full, and every code of a small format."""
