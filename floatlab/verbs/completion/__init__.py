"""`completion`: what a shell needs to complete commands."""
