"""`audit`: checks a quantised checkpoint, or measures what quantising a checkpoint by recipes would change."""
