"""Train: weights under remedies, step by step."""
