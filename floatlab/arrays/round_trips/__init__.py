"""An array rounded by a format or a recipe, and the counts, errors and sums that result."""
