"""Arrays in any format: rounding, encoding and decoding of whole arrays. The lowest layer that uses NumPy.

The modules and subpackages, from the highest layer to the lowest:

* calls: `conversion`, `operations`, `ulps`, `blocks`, `packing`, `recurrences`; `compare/`: how two arrays differ;
* `container/`: FloatArray, NumPy's functions on it, and its files;
* arguments and results of calls: `types`, `sources`, `codec`, `scales` of blocks;
* `lanes/`: the three implementations of rounding and decoding: compiled, NumPy, and scalar.
"""

from floatlab.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, {
    "container.array": "FloatArray",
    "container.storage": "load save",
    "conversion": "decode encode quantize",
    "operations": "add divide fma multiply operate sqrt subtract",
    "ulps": "next_after ordinal spacing ulp_distance",
    "packing": "pack unpack",
})  # fmt: skip
