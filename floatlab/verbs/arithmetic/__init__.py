"""`add` … `fma`, `cmp`, `toint`, `rint`: one operation, step by step."""
