"""Layer 6: the command line. Only this package prints."""
