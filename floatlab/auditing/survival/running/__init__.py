"""Does the jobs of an audit, in this process, in others or on a cluster; can keep their results in a file."""
