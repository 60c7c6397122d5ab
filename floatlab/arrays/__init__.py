"""Arrays in any format: values rounded, codes made and read, whole arrays at a time (NumPy starts here).

The rooms, from the doors down:

* what is asked: `conversion`, `operations`, `order`, `blocks`, `packing`; how two arrays differ: `errors`, which
  measures by `distances`, `tolerances` and `structure` what `streams` brings piece by piece; files: `storage`, `npy`;
* `container`: FloatArray, and what NumPy's functions do with it; `elements`: what it is made of;
* what goes into a call and comes out of it: `sources`, `operands`, `results`;
* results as exact as a rounding needs: `arithmetic`, by `passes` of the compiled lane or by `pairs` of floats; for
  blocks, the `scales` and the `quotients`;
* `lanes`: who rounds and reads blocks of codes, `compiled`, `integers` and its `cuts` (NumPy's) or `one_by_one` (the
  scalar codec's), told by a `recipe` and a `reading`; `pieces`: blocks cut to the size of the cache.
"""

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
