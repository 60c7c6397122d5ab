"""`block`: values scaled and rounded together, into MX or NVFP4."""
