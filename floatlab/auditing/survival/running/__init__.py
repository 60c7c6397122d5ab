"""Does the jobs of an audit: here, in other processes or on a cluster, and keeps their results in a file."""
