"""Arrays in any format: values rounded, codes made and read, whole arrays at a time (NumPy starts here)."""

from floatlab.arrays.conversion import decode, encode, quantize

__all__ = ["decode", "encode", "quantize"]
