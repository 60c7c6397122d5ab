"""The arithmetic verbs (`add`, `fma`, `cmp`, `toint`, …): one operation, step by step."""
