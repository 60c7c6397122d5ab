"""Arrays in any format: values rounded, codes made and read, whole arrays at a time (NumPy starts here)."""

from floatlab.arrays.container import FloatArray
from floatlab.arrays.conversion import decode, encode, quantize
from floatlab.arrays.operations import add, divide, fma, multiply, operate, sqrt, subtract
from floatlab.arrays.order import next_after, ordinal, spacing, ulp_distance
from floatlab.arrays.packing import pack, unpack
from floatlab.arrays.storage import load, save

__all__ = [
    "FloatArray", "add", "decode", "divide", "encode", "fma", "load", "multiply", "next_after", "operate", "ordinal",
    "pack", "quantize", "save", "spacing", "sqrt", "subtract", "ulp_distance", "unpack",
]  # fmt: skip
