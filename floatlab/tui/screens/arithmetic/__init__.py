"""Arithmetic: an operation step by step."""
