"""Hypotheses about the inputs of a product: how each of them was rounded, quantised or stored in blocks."""
