"""Many updates under several remedies, against exact arithmetic."""
