"""Train: the updates of weights under several remedies, step by step."""
