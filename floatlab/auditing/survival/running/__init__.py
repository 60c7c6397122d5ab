"""Does the jobs of an audit, in this process, in other processes or on a cluster; can keep the results in a file."""
