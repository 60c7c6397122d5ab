"""Reads `.safetensors` files, without the library safetensors.

The library maps files into memory, and cannot return bfloat16 and fp8 as NumPy arrays.

A file consists of eight bytes with the length of the header, the header, and the bytes of the tensors, without gap or
overlap. The header is JSON: for each tensor its dtype, its shape, and where its bytes begin and end, counted from the
end of the header. The format is described at <https://github.com/huggingface/safetensors>.
"""

from __future__ import annotations

from math import prod
from typing import IO

import numpy as np

from floatlab.arrays.sources import ArraySource
from floatlab.arrays.types import DType
from floatlab.errors import FileFormatError, guess, quoted
from floatlab.files.json_files import parse_object
from floatlab.files.raw import RawSource, bits_of_kind
from floatlab.files.safe_open import keeping_open, length_of, named, open_file, read_bytes
from floatlab.formats import Format, parse_format
from floatlab.record import Record

MAX_HEADER = 16 << 20  # the longest header that is read, in bytes: about a hundred thousand tensors
_MAX_AXES = 32
_PLACES = range(1 << 63)
_NUMPY = {
    "F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1",
    "U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?",
}  # fmt: skip
_FORMATS = {
    "BF16": "bf16", "F8_E4M3": "e4m3fn", "F8_E5M2": "e5m2", "F8_E8M0": "e8m0", "F8_E4M3FNUZ": "e4m3fnuz",
    "F8_E5M2FNUZ": "e5m2fnuz", "F6_E2M3": "e2m3fn", "F6_E3M2": "e3m2fn", "F4": "e2m1fn",
}  # fmt: skip
_WIDTHS = {"C64": 64}  # bits of dtypes that are not supported; the other tensors of such a file can be read


class Tensor(Record):
    """A tensor's entry in the header.

    The tensor's bytes begin at `start` and end at `end`, counted from the start of the file.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


def read_tensors(file: IO[bytes]) -> dict[str, Tensor]:
    """Return the tensors of an open file after checking the whole header; raises FileFormatError."""
    return read_safetensors(file)[0]


def read_safetensors(file: IO[bytes]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors and the metadata of an open file after checking the whole header; raises FileFormatError."""
    length = length_of(file)
    if length < 8:
        raise FileFormatError("is not a .safetensors file: it has fewer than 8 bytes")
    declared = int.from_bytes(read_bytes(file, 0, 8), "little")
    if declared > min(length - 8, MAX_HEADER):
        turned = int.from_bytes(declared.to_bytes(8, "little"), "big")
        hint = " (its bytes may be in the wrong order)" if turned <= min(length - 8, MAX_HEADER) else ""
        most = f"at most {MAX_HEADER:,} are read" if declared <= length - 8 else f"the file has {length:,}"
        raise FileFormatError(f"is not a .safetensors file: its header takes {declared:,} bytes, but {most}{hint}")
    header = parse_object(read_bytes(file, 8, declared), "is not a .safetensors file: its header ")
    metadata = header.pop("__metadata__", {})
    if not isinstance(metadata, dict) or not all(isinstance(each, str) for each in metadata.values()):
        raise FileFormatError("is not a .safetensors file: its metadata are not an object of strings")
    found = [_tensor(name, said, 8 + declared) for name, said in header.items()]
    reached = 8 + declared
    for each in sorted(found, key=lambda each: (each.start, each.end)):
        if each.start != reached:
            how = "overlaps another" if each.start < reached else "leaves a gap before it"
            raise FileFormatError(f"is not a .safetensors file: the tensor {quoted(each.name)} {how}")
        reached = each.end
    if reached != length:
        how = "is cut off" if reached > length else "goes on past its tensors"
        raise FileFormatError(f"{how}: its header describes {reached:,} bytes, but the file has {length:,}")
    return {each.name: each for each in found}, metadata


def _kind(dtype: str) -> Format | DType | None:
    """Return the format or the NumPy dtype that `dtype` means in a file; None if such numbers are not read."""
    if dtype in _NUMPY:
        return np.dtype(_NUMPY[dtype])
    return parse_format(_FORMATS[dtype]) if dtype in _FORMATS else None


def kind_called(dtype: str) -> str:
    """Return the name of the NumPy dtype or the format that `dtype` means in a file; "" if such numbers are not read.

    >>> kind_called("U8"), kind_called("F8_E4M3"), kind_called("C64")
    ('uint8', 'e4m3fn', '')
    """
    kind = _kind(dtype)
    return "" if kind is None else kind.name


def dtype_called(kind: str) -> str:
    """Return the name that `.safetensors` files use for a NumPy dtype or a format; "" if they have no name for it.

    >>> dtype_called("float32"), dtype_called("bfloat16"), dtype_called("e3m4")
    ('F32', 'BF16', '')
    """
    return next((dtype for dtype in (*_NUMPY, *_FORMATS) if kind_called(dtype) == kind), "")


def _tensor(name: str, said: object, base: int) -> Tensor:
    def integers(values: object, most: int) -> bool:
        return isinstance(values, list) and len(values) <= most and all(type(n) is int and n in _PLACES for n in values)

    wrong = f"is not a .safetensors file: its entry for the tensor {quoted(name)} has"
    if not isinstance(said, dict) or set(said) != {"dtype", "shape", "data_offsets"}:
        raise FileFormatError(f"{wrong} other members than dtype, shape and data_offsets")
    dtype, shape, offsets = said["dtype"], said["shape"], said["data_offsets"]
    if not isinstance(dtype, str) or not integers(shape, _MAX_AXES) or not integers(offsets, 2) or len(offsets) != 2:
        raise FileFormatError(f"{wrong} an invalid dtype, shape or place")
    start, end = offsets
    kind = _kind(dtype)
    width = _WIDTHS.get(dtype) if kind is None else bits_of_kind(kind)
    if end < start or (width is not None and prod(shape) * width != (end - start) * 8):
        raise FileFormatError(f"{wrong} {max(end - start, 0):,} bytes, which do not fit its shape")
    return Tensor(name, dtype, tuple(shape), base + start, base + end)


def open_safetensors(path: str, name: str | None) -> ArraySource:
    """Open the tensor `name` of a file, or its only tensor if `name` is None."""
    with open_file(path) as file, named(path):
        tensors = read_tensors(file)
        tensor = tensors[chosen(name, list(tensors), "tensor")]
    return open_entry(path, tensor, path if name is None else f"{path}::{name}")


def open_entry(path: str, tensor: Tensor, word: str = "") -> ArraySource:
    """Open a tensor by its entry in the header; messages name the tensor by `word`, by default FILE::NAME."""
    with keeping_open(path) as file, named(path):
        kind = _kind(tensor.dtype)
        if kind is None:
            raise FileFormatError(f"has the tensor {quoted(tensor.name)} in {quoted(tensor.dtype)}, which is not read")
        return RawSource(word or f"{path}::{tensor.name}", path, file, tensor.shape, kind, tensor.start)


def chosen(name: str | None, names: list[str], noun: str) -> str:
    """Return the name of the array to open: `name` if it is given, else the only array.

    `noun` is the word for an array in messages. Raises FileFormatError if there is no such array, or if there are
    several and `name` is None.
    """
    if name is None and len(names) == 1:
        return names[0]
    few = ", ".join(quoted(each) for each in names[:4]) + ", …" * (len(names) > 4)
    if not names:
        raise FileFormatError(f"has no {noun}")
    if name is None:
        raise FileFormatError(f"has {len(names):,} {noun}s: choose one as FILE::NAME, from {few}")
    if name not in names:
        near = guess(name, names) if len(names) < 1000 else ""
        raise FileFormatError(f"has no {noun} {quoted(name)}{near or f'; it has {few}'}")
    return name
