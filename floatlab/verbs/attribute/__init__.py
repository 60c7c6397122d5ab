"""`--observed`: which computations give an observed result."""
