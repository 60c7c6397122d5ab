"""Matrix products of the installed libraries: how long they take, and how far their results differ."""
