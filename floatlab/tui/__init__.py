"""The explorer: screens for the same questions and pages as the command line. The only subpackage that uses Textual."""
