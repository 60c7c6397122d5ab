"""The explorer: screens that show the same answers as the command line. Only this subpackage uses Textual."""
