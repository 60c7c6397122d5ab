"""Reads and checks arrays in files, piece by piece; and parses the names of arrays, such as `file.npz::weight`."""

from floatlab.arrays.sources import ArraySource
from floatlab.files.readers import open_array, open_arrays

__all__ = ["ArraySource", "open_array", "open_arrays"]
