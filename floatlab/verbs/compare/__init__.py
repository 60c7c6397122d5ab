"""`compare`: two arrays, how they differ, where, and why."""
