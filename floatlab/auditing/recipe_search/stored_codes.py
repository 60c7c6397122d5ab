"""Stored codes and scales, and the ways in which their bytes may be read: packing, and the format of scales."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from math import prod

import numpy as np

from floatlab.arrays.codec import decode_array, native
from floatlab.arrays.sources import BLOCK, ArraySource, Source
from floatlab.arrays.types import Array
from floatlab.auditing.ggml_blocks import scales_and_minima
from floatlab.auditing.weight_streams import Reader, octets, packed, without_padding
from floatlab.errors import FileFormatError, quoted
from floatlab.record import Individual

Shape = tuple[int, ...]
CodeReader = Callable[[int, int], Array]

FLOATS = ("float32", "bfloat16", "float16", "float64")
# Names of formats that are shorter in recipes.
_SHORT = {"e2m1fn": "e2m1", "e2m3fn": "e2m3", "e3m2fn": "e3m2", "e4m3fn": "e4m3"}
# The element formats that are tried for codes of each width.
ELEMENTS = {
    8: ("e4m3", "e5m2", "int8", "e4m3fnuz", "e5m2fnuz"), 6: ("e2m3", "e3m2"),
    4: ("e2m1", "int4", "nf4", "bnb_fp4", "uint4"),
}  # fmt: skip
WITH_MINIMA, GROUPS_OF_K = "float16 with minima", "units, scales and minima"
# Integers that are the codes of floats, as `arrays.encode` returns them.
_BITS = {"uint16": (np.uint16, "float16"), "uint32": (np.uint32, "float32")}
_K_BYTES = 16  # the bytes of a block of q4_k before its codes
_MOST_SCALES = 1 << 27
_NIBBLES = np.arange(16, dtype=np.uint8)


class CodeLayout(Individual):
    """A way to read stored codes: its description, the possible element formats, and the function that reads codes."""

    words: str
    elements: tuple[str, ...]
    read: CodeReader


class ScaleReading(Individual):
    """A way to read stored scales: their format, and their numbers as float64 in the stored shape."""

    kind: str
    values: Array


def code_layouts(source: ArraySource, shape: Shape) -> list[CodeLayout]:
    """Return the ways to read an array as the codes of a tensor of this shape.

    Raises FileFormatError if none is possible.
    """
    count, kind, size = prod(shape), source.kind, source.size
    if source.dtype is None and source.format.width <= 8 and size == count:
        return [CodeLayout("one code in each byte", (_SHORT.get(kind, kind),), partial(octets, source))]
    if kind == "int8" and size == count:
        narrow = [CodeLayout("one integer from −8 to 7 in each byte", ("int4",), partial(_raised, source))]
        possible = _possible(source, ("int8",))
        return [*narrow * _is_narrow(source), CodeLayout("one code in each byte", possible, partial(octets, source))]
    if kind == "uint8" and size == count:
        return [CodeLayout("one code in each byte", _possible(source, ELEMENTS[8]), partial(octets, source))]
    if kind == "uint8" and size * 2 == count:
        return list(_nibbles(source, ELEMENTS[4]))
    if kind == "uint8" and size * 4 == count * 3:
        return [CodeLayout("four codes in three bytes, the first in the low bits", ELEMENTS[6], partial(_six, source))]
    if kind in ("int32", "uint32") and (found := list(_in_words(source, shape))):
        return found
    said = f"{_times(source.shape)} {kind}"
    raise FileFormatError(
        f"{quoted(source.name, 90)} has {said}, which are no codes for {_times(shape)} numbers: codes of 8 bits, "
        "of 6 bits (four in three bytes) and of 4 bits (two in a byte) are read, and integers of 4 and 8 bits in words"
    )


def _times(shape: Shape) -> str:
    return "×".join(map(str, shape)) or "1"


def _possible(source: ArraySource, wide: tuple[str, ...]) -> tuple[str, ...]:
    """Return the formats that elements may have if each byte holds one element's code.

    `wide` are formats of 8 bits. If the largest code has only 6 or 4 bits, narrower formats are possible, too.
    """
    largest = 0
    for first in range(0, source.size, BLOCK):
        piece = octets(source, first, min(BLOCK, source.size - first))
        largest = max(largest, int(piece.max(initial=0)))
        if largest >= 64:
            return wide
    return (*(ELEMENTS[4] if largest < 16 else ()), *ELEMENTS[6], *wide)


def _nibbles(source: ArraySource, elements: tuple[str, ...]) -> Iterator[CodeLayout]:
    for high_first in (False, True):
        words = f"two codes in each byte, the first in the {'high' if high_first else 'low'} nibble"
        yield CodeLayout(words, elements, packed(source, _NIBBLES, high_first=high_first))


def _in_words(source: ArraySource, shape: Shape) -> Iterator[CodeLayout]:
    """Yield the ways to read words of 32 bits as integers of 4 or 8 bits. A row may end with a word that is not full.

    Codes of 8 bits occur in compressed-tensors, which stores n + 128.
    """
    length = shape[-1]
    for each in (8, 4):
        stored = -(-length // each)
        if not length or prod(shape[:-1]) * stored != source.size:
            continue
        if each == 8:
            for layout in _nibbles(source, ("int4",)):
                yield layout.replace(read=without_padding(layout.read, length, stored * each))
            continue
        plain = without_padding(partial(octets, source), length, stored * each)
        yield CodeLayout("four integers in each word, stored as n + 128", ("int8",), partial(_centred, plain))


def _centred(read: Reader, first: int, count: int) -> Array:
    """Return codes of int8, which are stored as n + 128."""
    found: Array = read(first, count) ^ np.uint8(128)
    return found


def _is_narrow(source: ArraySource) -> bool:
    """Return whether all integers of an int8 array are from −8 to 7."""
    return all(
        int((octets(source, first, min(BLOCK, source.size - first)) + np.uint8(8)).max(initial=0)) < 16
        for first in range(0, source.size, BLOCK)
    )


def _raised(source: ArraySource, first: int, count: int) -> Array:
    """Return the codes n + 8 of integers n from −8 to 7."""
    return octets(source, first, count) + np.uint8(8)


def _six(source: ArraySource, first: int, count: int) -> Array:
    start, stop = first // 4, -(-(first + count) // 4)
    three = octets(source, start * 3, (stop - start) * 3).reshape(-1, 3).astype(np.uint32)
    word = three[:, 0] | three[:, 1] << 8 | three[:, 2] << 16
    codes = np.stack([word >> shift & 63 for shift in (0, 6, 12, 18)], axis=1).astype(np.uint8)
    return codes.reshape(-1)[first - start * 4 :][:count]


def scale_readings(source: ArraySource) -> list[ScaleReading]:
    """Return the ways to read an array as scales; raises FileFormatError if its type cannot hold scales."""
    if source.size > _MOST_SCALES:
        most = f"at most {_MOST_SCALES:,} are read"
        raise FileFormatError(f"{quoted(source.name, 90)} has {source.size:,} scales; {most}")
    kind = source.kind
    if kind == "uint8" and len(source.shape) == 2 and source.shape[1] == _K_BYTES:
        return [*_groups_of_k(source), *_bytes(source)]
    if kind in FLOATS:
        return [ScaleReading(kind, _numbers(source)), *_pairs(source, _numbers(source))]
    if kind in ("e4m3fn", "e8m0fnu"):
        return [ScaleReading(kind, _numbers(source))]
    if kind == "uint8":
        return _bytes(source)
    if kind in _BITS:
        word, float_ = _BITS[kind]
        stored = native(source.read(0, source.size)).astype(word).view(float_).reshape(source.shape)
        values = stored.astype(np.float64)
        return [ScaleReading(float_, values), *_pairs(source, values)]
    raise FileFormatError(
        f"{quoted(source.name, 90)} is {kind}, but scales are e4m3, e8m0, bytes with such codes, or {', '.join(FLOATS)}"
    )


def _bytes(source: ArraySource) -> list[ScaleReading]:
    """Return the two ways to read bytes as scales: as codes of e8m0, and as codes of e4m3."""
    codes = octets(source, 0, source.size).reshape(source.shape)
    return [ScaleReading(each, decode_array(codes, each, np.float64)) for each in ("e8m0fnu", "e4m3fn")]


def _pairs(source: ArraySource, values: Array) -> Iterator[ScaleReading]:
    """Yield a `ScaleReading` if the last axis has two binary16 numbers: a scale and a minimum, as in q4_1."""
    if source.kind in ("float16", "uint16") and len(source.shape) > 1 and source.shape[-1] == 2:
        yield ScaleReading(WITH_MINIMA, values.reshape(-1, 2))


def _groups_of_k(source: ArraySource) -> Iterator[ScaleReading]:
    """Read the first 16 bytes of q4_k's blocks: two factors, then eight scales and eight minima.

    All scales of a block are multiplied by the first factor, and all its minima by the second.
    """
    bytes_ = octets(source, 0, source.size).reshape(-1, _K_BYTES)
    units = np.ascontiguousarray(bytes_[:, :4]).view("<f2").astype(np.float64)
    yield ScaleReading(GROUPS_OF_K, np.concatenate([units, *scales_and_minima(bytes_[:, 4:])], axis=1))


def _numbers(source: ArraySource) -> Array:
    pieces = []
    for piece in source.blocks(BLOCK * 8):
        found = native(piece) if not isinstance(piece, Source) else decode_array(piece.codes, piece.format, np.float64)
        pieces.append(found.astype(np.float64))
    return np.concatenate(pieces or [np.zeros(0)]).reshape(source.shape)
