"""The screen Train: updates of weights with several remedies, step by step."""
