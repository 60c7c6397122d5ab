"""`--observed`: the candidate computations that give an observed result."""
