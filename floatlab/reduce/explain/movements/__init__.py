"""Recognise results whose elements are at other positions: permuted rows and columns, and transposed results."""
