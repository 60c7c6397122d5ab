"""Arrays in any format: values rounded, codes made and read, whole arrays at a time (NumPy starts here)."""

from floatlab.arrays.container import FloatArray
from floatlab.arrays.conversion import decode, encode, quantize
from floatlab.arrays.packing import pack, unpack
from floatlab.arrays.storage import load, save

__all__ = ["FloatArray", "decode", "encode", "load", "pack", "quantize", "save", "unpack"]
