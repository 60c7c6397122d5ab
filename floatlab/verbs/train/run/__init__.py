"""`train`: many updates of weights under several remedies."""
