"""`completion`: a script with which a shell completes floatlab's commands."""
