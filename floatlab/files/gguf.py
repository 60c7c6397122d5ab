"""Reads the headers of GGUF files (llama.cpp): the metadata, and the type, shape and position of each tensor.

The header has metadata entries (each with a key, a type and a value), and then one entry for each tensor. The bytes of
the tensors come after the header. The bytes of each tensor begin at a multiple of the metadata entry
`general.alignment`, which is 32 by default. All numbers are little-endian. Shapes are stored in reverse order: the
first number is the length of a row. The format is described at
<https://github.com/ggml-org/ggml/blob/master/docs/gguf.md>.
"""

from __future__ import annotations

import struct
from math import prod
from typing import IO

import numpy as np

from floatlab.arrays.sources import ArraySource
from floatlab.arrays.types import DType
from floatlab.errors import FileFormatError, UnsupportedError, quoted
from floatlab.files.raw import RawSource
from floatlab.files.safe_open import keeping_open, length_of, named, read_bytes
from floatlab.formats import Format, parse_format
from floatlab.record import Record

_MAX_HEADER = 64 << 20  # the longest accepted header, in bytes; vocabularies take up to about 20 MB
_MAX_TENSORS, _MAX_KEYS, _MAX_NAME = 1 << 18, 1 << 16, 1 << 10
_MAX_AXES, _MAX_DEPTH, _MAX_ALIGNMENT = 8, 4, 1 << 20
_SHORTEST = 24
_PIECE = 1 << 20
_KEPT_TEXT = 1 << 12  # texts in the metadata with more bytes than this are skipped; so are all arrays
_LEAST_ENTRY, _LEAST_KEY = 24, 13  # the smallest size in bytes of a tensor's entry, and of a metadata entry
_STRING, _ARRAY = 8, 9
_SCALARS = {0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<B", 10: "<Q", 11: "<q", 12: "<d"}

# ggml's types: name, number of elements in a block, number of bytes in a block.
_TYPES = {
    0: ("F32", 1, 4), 1: ("F16", 1, 2), 2: ("Q4_0", 32, 18), 3: ("Q4_1", 32, 20), 6: ("Q5_0", 32, 22),
    7: ("Q5_1", 32, 24), 8: ("Q8_0", 32, 34), 9: ("Q8_1", 32, 36), 10: ("Q2_K", 256, 84), 11: ("Q3_K", 256, 110),
    12: ("Q4_K", 256, 144), 13: ("Q5_K", 256, 176), 14: ("Q6_K", 256, 210), 15: ("Q8_K", 256, 292),
    16: ("IQ2_XXS", 256, 66), 17: ("IQ2_XS", 256, 74), 18: ("IQ3_XXS", 256, 98), 19: ("IQ1_S", 256, 50),
    20: ("IQ4_NL", 32, 18), 21: ("IQ3_S", 256, 110), 22: ("IQ2_S", 256, 82), 23: ("IQ4_XS", 256, 136),
    24: ("I8", 1, 1), 25: ("I16", 1, 2), 26: ("I32", 1, 4), 27: ("I64", 1, 8), 28: ("F64", 1, 8),
    29: ("IQ1_M", 256, 56), 30: ("BF16", 1, 2), 34: ("TQ1_0", 256, 54), 35: ("TQ2_0", 256, 66),
    39: ("MXFP4", 32, 17), 40: ("NVFP4", 64, 36),
}  # fmt: skip
_NUMPY = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"}
_BLOCKS = {name: (elements, size) for name, elements, size in _TYPES.values() if elements > 1}


class GgufTensor(Record):
    """The entry of a tensor in the header.

    The tensor's bytes begin at `start` and end at `end` in the file. `shape` has NumPy's order.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class GgufHeader(Record):
    """The tensors of a file, and its metadata except for arrays and long texts."""

    tensors: dict[str, GgufTensor]
    metadata: dict[str, object]


class _Header:
    """The header of an open file, read from front to back.

    Reading past the end of the file, or past the longest accepted header, raises FileFormatError.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file, self.length = file, length_of(file)
        self.held, self.start, self.place = b"", 0, 0  # `held` has the bytes from position `start` of the file

    def skip(self, count: int) -> int:
        """Skip `count` bytes; return the position of the first of them."""
        before, self.place = self.place, self.place + count
        if self.place > self.length:
            raise FileFormatError(
                f"is not a GGUF file: its header ends early: {self.place - self.length:,} bytes are missing"
            )
        if self.place > _MAX_HEADER:
            raise FileFormatError(f"has a GGUF header of over {_MAX_HEADER:,} bytes, which is too long")
        return before

    def take(self, count: int) -> bytes:
        """Return the next `count` bytes."""
        first = self.skip(count)
        if self.place > self.start + len(self.held):
            self.start, self.held = first, read_bytes(self.file, first, min(self.length - first, max(count, _PIECE)))
        return self.held[first - self.start : first - self.start + count]

    def number(self, form: str) -> int | float:
        """Return the next number; `form` is its format in the notation of `struct`."""
        found: int | float = struct.unpack(form, self.take(struct.calcsize(form)))[0]
        return found

    def count(self, form: str = "<Q") -> int:
        """Return the next unsigned integer; by default, it has 64 bits."""
        return int(self.number(form))

    def text(self, most: int, noun: str) -> str:
        """Return the next string, of at most `most` bytes; error messages call the string `noun`."""
        length = self.count()
        if length > most:
            raise FileFormatError(f"is not a GGUF file: {noun} has {length:,} bytes; at most {most:,} are read")
        try:
            return self.take(length).decode("utf-8")
        except UnicodeDecodeError:
            raise FileFormatError(f"is not a GGUF file: {noun} is not UTF-8") from None

    def value(self, kind: int, depth: int = 0) -> object:
        """Return the next value of the metadata; None for arrays and long texts, which are skipped.

        `kind` is the number of the value's type. `depth` is the number of arrays that contain the value.
        """
        if kind in _SCALARS:
            return self.number(_SCALARS[kind])
        if kind == _STRING:
            length = self.count()
            place = self.skip(length)
            if length > _KEPT_TEXT:
                return None
            self.place = place
            return self.take(length).decode("utf-8", "backslashreplace")
        if kind == _ARRAY and depth == _MAX_DEPTH:
            raise FileFormatError(f"has GGUF metadata with over {_MAX_DEPTH} levels of arrays, which is too many")
        if kind != _ARRAY:
            raise FileFormatError(f"is not a GGUF file: its metadata have a value of the unknown type {kind}")
        inner, count = self.count("<I"), self.count()
        if inner in _SCALARS:
            self.skip(count * struct.calcsize(_SCALARS[inner]))
        elif count > (self.length - self.place) // 8:
            raise FileFormatError(
                f"is not a GGUF file: its metadata have an array of {count:,} values, more than the file can hold"
            )
        elif inner == _STRING:
            self._skip_strings(count)
        else:
            for _ in range(count):
                self.value(inner, depth + 1)
        return None

    def _skip_strings(self, count: int) -> None:
        """Skip `count` strings.

        A vocabulary has several hundred thousand strings, so the loop avoids calls of methods.
        """
        place, start, held = self.place, self.start, self.held
        for _ in range(count):
            at = place - start
            if at + 8 > len(held):
                self.place = place
                self.take(8)
                start, held, at = self.start, self.held, place - self.start
            place += 8 + int.from_bytes(held[at : at + 8], "little")
        self.place = place
        self.skip(0)


def read_gguf(file: IO[bytes]) -> GgufHeader:
    """Check the whole header of an open file; return its tensors and metadata. Raises FileFormatError."""
    header = _Header(file)
    if header.length < 4 or header.take(4) != b"GGUF":
        raise FileFormatError("is not a GGUF file: its first bytes are wrong")
    if header.length < _SHORTEST:
        raise FileFormatError(f"is cut off: it has {header.length} bytes, but a GGUF file has at least {_SHORTEST}")
    version = header.count("<I")
    if version not in (2, 3):
        hint = " (its bytes may be in the wrong order)" if version in (2 << 24, 3 << 24) else ""
        raise FileFormatError(f"is GGUF of version {version}; versions 2 and 3 are read{hint}")
    tensors, keys = header.count(), header.count()
    for count, noun, most, least in (
        (tensors, "tensors", _MAX_TENSORS, _LEAST_ENTRY),
        (keys, "metadata", _MAX_KEYS, _LEAST_KEY),
    ):
        if count > min(most, header.length // least):
            raise FileFormatError(f"is not a GGUF file: it declares {count:,} {noun}, and has {header.length:,} bytes")
    metadata: dict[str, object] = {}
    for _ in range(keys):
        key = header.text(1 << 16, "a key")
        if key in metadata:
            raise FileFormatError(f"is not a GGUF file: its metadata have the key {quoted(key)} twice")
        metadata[key] = header.value(header.count("<I"))
    found: dict[str, GgufTensor] = {}
    for _ in range(tensors):
        entry = _entry(header)
        if entry.name in found:
            raise FileFormatError(f"is not a GGUF file: it has the tensor {quoted(entry.name)} twice")
        found[entry.name] = entry
    alignment = metadata.get("general.alignment", 32)
    if type(alignment) is not int or not 1 <= alignment <= _MAX_ALIGNMENT:
        raise FileFormatError("is not a GGUF file: its general.alignment is not a number of bytes")
    base = -(-header.place // alignment) * alignment
    placed = [each.replace(start=base + each.start, end=base + each.end) for each in found.values()]
    _check_places(placed, base, alignment, header.length)
    return GgufHeader({each.name: each for each in placed}, metadata)


def _entry(header: _Header) -> GgufTensor:
    """Read a tensor's entry. In the result, `start` and `end` are counted from the first byte of the first tensor."""
    name = header.text(_MAX_NAME, "the name of a tensor")
    axes = header.count("<I")
    if not axes <= _MAX_AXES:
        raise FileFormatError(f"is not a GGUF file: its tensor {quoted(name)} has {axes:,} axes")
    shape = tuple(header.count() for _ in range(axes))[::-1]
    number, start = header.count("<I"), header.count()
    if number not in _TYPES:
        raise FileFormatError(f"has the tensor {quoted(name)} of the unknown type {number}")
    dtype, elements, size = _TYPES[number]
    if shape and shape[-1] % elements:
        raise FileFormatError(
            f"is not a GGUF file: its tensor {quoted(name)} has rows of {shape[-1]:,} elements, "
            f"but {dtype} has blocks of {elements}"
        )
    if not shape and elements > 1:
        raise FileFormatError(f"is not a GGUF file: its tensor {quoted(name)} has one element, but {dtype} has blocks")
    return GgufTensor(name, dtype, shape, start, start + prod(shape) // elements * size)


def _check_places(tensors: list[GgufTensor], base: int, alignment: int, length: int) -> None:
    reached = base
    for each in sorted(tensors, key=lambda each: (each.start, each.end)):
        if (each.start - base) % alignment:
            raise FileFormatError(
                f"is not a GGUF file: its tensor {quoted(each.name)} is not aligned to {alignment} bytes"
            )
        if each.start < reached and each.end > each.start:
            raise FileFormatError(f"is not a GGUF file: its tensor {quoted(each.name)} overlaps another")
        if each.end > length:
            raise FileFormatError(
                f"is cut off: its tensor {quoted(each.name)} ends at byte {each.end:,}, but the file has {length:,}"
            )
        reached = max(reached, each.end)


def block_of(dtype: str) -> tuple[int, int] | None:
    """Return how many elements and how many bytes a block of a quantised type has; None for other types.

    >>> block_of("Q4_K"), block_of("F32")
    ((256, 144), None)
    """
    return _BLOCKS.get(dtype)


def _kind(dtype: str) -> Format | DType:
    return parse_format("bf16") if dtype == "BF16" else np.dtype(_NUMPY[dtype])


def plain_kind(dtype: str) -> str:
    """Return the name of NumPy's dtype or floatlab's format for a GGUF type; "" for a quantised type."""
    return "" if dtype in _BLOCKS else _kind(dtype).name


def open_tensor(path: str, tensor: GgufTensor) -> ArraySource:
    """Open a tensor as an array. A quantised tensor is read as bytes, with one row for each block."""
    with keeping_open(path) as file, named(path):
        block = block_of(tensor.dtype)
        shape = tensor.shape if block is None else ((tensor.end - tensor.start) // block[1], block[1])
        kind = _kind(tensor.dtype) if block is None else np.dtype(np.uint8)
        return RawSource(f"{path}::{tensor.name}", path, file, shape, kind, tensor.start)


def open_gguf(path: str, name: str | None) -> ArraySource:
    """Open the tensor `name` of a file, or its only tensor if `name` is None; the tensor must not be quantised.

    Raises FileFormatError for a bad file or an unknown name, and UnsupportedError for a quantised tensor.
    """
    from floatlab.files.safetensors import chosen

    with keeping_open(path) as file, named(path):
        tensors = read_gguf(file).tensors
        tensor = tensors[chosen(name, list(tensors), "tensor")]
    file.close()
    if block_of(tensor.dtype) is not None:
        raise UnsupportedError(
            f"{quoted(tensor.name)} is quantised ({tensor.dtype}): floatlab dequantize {path} OUT.safetensors "
            "writes it as numbers"
        )
    return open_tensor(path, tensor)
