"""The explorer: screens over the same actions and pages as the command line. The only room that knows Textual."""
