"""Checks array files and reads their arrays piece by piece; parses the names of arrays (`file.npz::weight`)."""

from floatlab.arrays.sources import ArraySource
from floatlab.files.readers import open_array, open_arrays

__all__ = ["ArraySource", "open_array", "open_arrays"]
