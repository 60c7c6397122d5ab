"""Layer 5: all commands, one folder per topic, with its options, its answers and its pages."""
