"""Writes a `.safetensors` file tensor by tensor, so that the file can be larger than the memory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from math import prod
from typing import IO

import numpy as np

from floatlab.arrays.types import Array
from floatlab.atomic_write import replacing
from floatlab.errors import FileFormatError
from floatlab.files.safe_open import shown
from floatlab.record import Individual


class NewTensor(Individual):
    """A tensor to write: the name of its dtype in files, the size of an element in bytes, and a function for its data.

    `pieces` yields arrays of little-endian numbers. These arrays are written one after the other, each in row-major
    order.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    itemsize: int
    pieces: Callable[[], Iterator[Array]]

    @property
    def nbytes(self) -> int:
        """The size of the tensor in the file, in bytes."""
        return prod(self.shape) * self.itemsize


def write_safetensors(path: str, tensors: list[NewTensor], metadata: dict[str, str] | None = None) -> int:
    """Write a file atomically, and return its size in bytes.

    Tensors with larger elements come first, so that all tensors are aligned.

    Raises FileFormatError, with a message of one line, for a path that cannot be written, and for a tensor whose pieces
    do not fit its shape.
    """
    placed = sorted(tensors, key=lambda each: -each.itemsize)
    header: dict[str, object] = {"__metadata__": metadata} if metadata else {}
    reached = 0
    for each in placed:
        header[each.name] = {
            "dtype": each.dtype, "shape": list(each.shape), "data_offsets": [reached, reached + each.nbytes],
        }  # fmt: skip
        reached += each.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    try:
        with replacing(path) as file:
            file.write(len(text).to_bytes(8, "little") + text)
            for each in placed:
                _write(file, each)
    except OSError as trouble:
        raise FileFormatError(f"{shown(path)} cannot be written: {trouble.strerror or trouble}") from None
    return 8 + len(text) + reached


def _write(file: IO[bytes], tensor: NewTensor) -> None:
    written = 0
    for piece in tensor.pieces():
        octets = np.ascontiguousarray(piece).view(np.uint8)
        file.write(octets.data)
        written += octets.size
    if written != tensor.nbytes:
        raise FileFormatError(f"{tensor.name} gave {written:,} bytes, but its shape takes {tensor.nbytes:,}")
