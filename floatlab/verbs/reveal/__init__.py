"""`reveal`: the order in which a real implementation accumulates."""
