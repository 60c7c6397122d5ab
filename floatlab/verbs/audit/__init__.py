"""`audit`: checks whether a quantised checkpoint is right."""
