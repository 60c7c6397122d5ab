"""Results of reductions: argument handling, sums and products, and their errors."""
