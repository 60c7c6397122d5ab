"""`train check`: difference quotients, and whether a mismatch is rounding or a bug."""
