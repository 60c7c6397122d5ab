"""`audit`: whether a quantised checkpoint is right, and what recipes would do to a checkpoint."""
