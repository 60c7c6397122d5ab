"""Arrays in files, read piece by piece and believed only as far as they can be checked; words that name arrays."""

from floatlab.arrays.streams import ArraySource
from floatlab.files.readers import open_array, open_arrays

__all__ = ["ArraySource", "open_array", "open_arrays"]
