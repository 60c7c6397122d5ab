"""`train`: one update, many, networks in formats, and what becomes of gradients."""
