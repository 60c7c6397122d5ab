"""`show --like`: what installed libraries give for the same value."""
