"""Reads files at URLs by ranges of bytes: http(s) with the standard library, all others with fsspec."""
