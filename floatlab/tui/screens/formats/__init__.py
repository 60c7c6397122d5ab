"""Formats: the table of formats, one in full, and every code of a small one."""
