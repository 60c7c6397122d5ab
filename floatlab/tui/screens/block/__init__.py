"""The screen for blocks: values that are scaled and rounded by a recipe."""
