"""`train`: one update, many updates, networks, underflow of gradients, and gradient checks, in chosen formats."""
