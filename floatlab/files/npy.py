"""Opens `.npy` files: a header, which `arrays/npy_header.py` reads, and raw numbers after it."""

from __future__ import annotations

from floatlab.arrays.npy_header import read_header
from floatlab.arrays.sources import ArraySource
from floatlab.files.raw import RawSource
from floatlab.files.safe_open import keeping_open, length_of, named


def open_npy(path: str) -> ArraySource:
    """Open a `.npy` file; raises FileFormatError with a message of one line."""
    with keeping_open(path) as file, named(path):
        header = read_header(file, length_of(file))
        return RawSource(path, path, file, header.shape, header.dtype, header.offset, header.by_columns)
