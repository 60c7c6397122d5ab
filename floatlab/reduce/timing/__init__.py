"""Products of the installed libraries: their times, and how far their results differ."""
