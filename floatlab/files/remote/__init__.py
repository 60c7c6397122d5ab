"""Reads files at URLs by ranges of bytes: the standard library reads URLs of http(s), fsspec reads all other URLs."""
