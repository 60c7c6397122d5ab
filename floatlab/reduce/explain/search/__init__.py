"""The search for an explanation of one result: models of the inputs, faults, and both."""
