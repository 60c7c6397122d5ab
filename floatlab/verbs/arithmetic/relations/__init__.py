"""`cmp`, `toint`: how two numbers stand, and the integer that a number becomes."""
