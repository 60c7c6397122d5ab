"""`matmul --ways` and `matmul --backends`: real products on this machine, timed and compared."""
