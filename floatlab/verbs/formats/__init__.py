"""`formats`: the table of formats, one format in full, and several side by side."""
