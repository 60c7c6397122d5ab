"""`train`: one update, many updates, networks in chosen formats, underflow of gradients, and gradient checks."""
