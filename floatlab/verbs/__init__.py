"""The commands (layer 5). Each topic has a folder with its options, answers and pages."""
