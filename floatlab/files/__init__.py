"""Reads arrays from files piece by piece, and checks the files; parses the names of arrays (`file.npz::weight`)."""

from floatlab.arrays.sources import ArraySource
from floatlab.files.readers import open_array, open_arrays

__all__ = ["ArraySource", "open_array", "open_arrays"]
