"""Formats: the table, one in full, and every code of a small one."""
