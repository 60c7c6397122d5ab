"""Arrays in any format: rounding, encoding and decoding of whole arrays. The lowest layer that uses NumPy.

The modules and subpackages, from the highest layer to the lowest:

* calls: `conversion`, `operations`, `order`, `blocks`, `packing`, `recurrences`; `compare/`: how two arrays differ;
* `container/`: FloatArray, NumPy's functions on it, and its files;
* arguments and results of calls: `types`, `sources`, `codec`, `scales` of blocks;
* `lanes/`: the three implementations of rounding and decoding: compiled, NumPy, and scalar.
"""

from floatlab.faces import face

__all__, __getattr__, __dir__ = face(__name__, {
    "container.array": "FloatArray",
    "container.storage": "load save",
    "conversion": "decode encode quantize",
    "operations": "add divide fma multiply operate sqrt subtract",
    "order": "next_after ordinal spacing ulp_distance",
    "packing": "pack unpack",
})  # fmt: skip
