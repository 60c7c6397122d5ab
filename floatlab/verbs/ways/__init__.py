"""`matmul --ways`: four ways to compute one product on this machine."""
