"""Arrays in files, read piece by piece and checked; and words that name arrays, such as `file.npz::weight`."""

from floatlab.arrays.sources import ArraySource
from floatlab.files.readers import open_array, open_arrays

__all__ = ["ArraySource", "open_array", "open_arrays"]
