"""Arrays in any format: values rounded, codes made and read, whole arrays at a time (NumPy starts here).

The rooms, from the doors down:

* what is asked: `conversion`, `operations`, `order`, `blocks`, `packing`; `compare/`: how two arrays differ;
* `container/`: FloatArray, what NumPy's functions do with it, and its files;
* what goes into a call and comes out of it: `sources`, `streams`, `operands`, `results`, and `scales` of blocks;
* `lanes/`: who rounds and reads blocks of codes: compiled, NumPy's, or the scalar codec's.
"""

from floatlab.arrays.container import FloatArray
from floatlab.arrays.container.storage import load, save
from floatlab.arrays.conversion import decode, encode, quantize
from floatlab.arrays.operations import add, divide, fma, multiply, operate, sqrt, subtract
from floatlab.arrays.order import next_after, ordinal, spacing, ulp_distance
from floatlab.arrays.packing import pack, unpack

__all__ = [
    "FloatArray", "add", "decode", "divide", "encode", "fma", "load", "multiply", "next_after", "operate", "ordinal",
    "pack", "quantize", "save", "spacing", "sqrt", "subtract", "ulp_distance", "unpack",
]  # fmt: skip
