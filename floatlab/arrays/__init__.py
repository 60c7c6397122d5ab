"""Arrays in any format: rounding, encoding and decoding of whole arrays. The lowest layer that uses NumPy.

The modules and subpackages, grouped by what they do:

* public functions: `conversion`, `operations`, `ulps`, `blocks`, `block_part`, `packing`, `recurrences`;
* errors: `compare/` measures how two arrays differ, and `round_trips/` how a format or a recipe changes an array;
* `container/`: FloatArray, NumPy's functions on it, and its files;
* computation of block scales: `block_job`, `recipes/`, `scales`;
* arguments and results of the functions: `types`, `sources`, `npy_header`, `codec`;
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
