"""Layer 5: all commands, with a folder for each topic that holds its options, its answers and its pages."""
