"""`matmul --ways` and `matmul --backends`: products on this machine, timed and compared."""
