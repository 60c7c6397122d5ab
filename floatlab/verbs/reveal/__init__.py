"""`reveal`: the order in which a library's function adds."""
