"""Floor 6: the command line. The only room that prints."""
