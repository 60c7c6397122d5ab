"""Arrays in any format: values rounded, codes made and read, whole arrays at a time (NumPy starts here).

The rooms, from the doors down:

* calls: `conversion`, `operations`, `order`, `blocks`, `packing`, `recurrences`; `compare/`: how two arrays differ;
* `container/`: FloatArray, what NumPy's functions do with it, and its files;
* arguments and results of calls: `types`, `sources`, `codec`, `scales` of blocks;
* `lanes/`: the three implementations of rounding and reading: compiled, NumPy, and scalar.
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
