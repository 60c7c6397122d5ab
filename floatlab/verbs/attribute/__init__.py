"""`--observed`: which candidate computations give an observed result."""
