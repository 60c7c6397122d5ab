"""`matmul --ways` and `matmul --backends`: products of installed libraries on this machine, timed and compared."""
