"""Small networks trained in chosen formats."""
