"""`matmul`: a matrix product beside the exact one."""
