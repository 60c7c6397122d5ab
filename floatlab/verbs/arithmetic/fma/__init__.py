"""`fma`: a fused beside a separate multiply-add."""
