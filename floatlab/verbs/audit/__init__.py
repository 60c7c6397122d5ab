"""`audit`: whether a quantised checkpoint is right."""
