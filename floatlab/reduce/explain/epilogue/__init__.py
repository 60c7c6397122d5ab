"""Recognise operations after a product: the bias that the user gave, and functions such as GELU."""
