"""What a reduction came to: inputs settled, sums and products computed, and how far they are from the exact ones."""
