"""`tui`: the explorer."""
