"""`matmul --backends`: one product on every library that is installed."""
