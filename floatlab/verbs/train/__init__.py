"""`train`: one update, many updates, networks in formats, and gradients lost to underflow."""
