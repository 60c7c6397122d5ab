"""Codes of at most eight bits, packed without gaps: two 4-bit codes in a byte, four 6-bit codes in three bytes.

The OCP MX specification 1.0 defines the elements, but not their layout in memory. Here the codes of a row are one
stream of bits, least significant bit first, in ascending bytes. The first of two 4-bit codes is thus in the low half of
the byte, as in ONNX (FLOAT4E2M1), CUDA (`__nv_fp4x2_e2m1`) and PyTorch (`float4_e2m1fn_x2`). Of four 6-bit codes in
three bytes, code i (from 0) is in bits 6i to 6i + 5. Some tools put the first of two 4-bit codes into the high half of
the byte (docs/containers.md lists them).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from floatlab.arrays.lanes.parameters import checked_codes
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode

MAX_WIDTH = 8


def _width(width: int | str | Format) -> int:
    format = None if isinstance(width, int) else parse_format(width)
    found = width if isinstance(width, int) else parse_format(width).width
    if isinstance(width, bool) or not 1 <= found <= MAX_WIDTH:
        told = f"{width!r}" if format is None else f"{format.name}, which has {found}"
        raise UnsupportedError(f"width must be 1 to {MAX_WIDTH} bits, or a format of that width, not {told}")
    return found


def _places(width: int) -> tuple[int, int, list[tuple[int, int]]]:
    """Describe the smallest group of codes of `width` bits that fills whole bytes.

    Return the number of codes in the group, the number of bytes, and the place of each code. A place is a pair: the
    byte in which the code begins, and the position of the code's lowest bit in this byte.
    """
    group = 8 // int(np.gcd(8, width))
    return group, group * width // 8, [divmod(width * i, 8) for i in range(group)]


def packed_length(count: int, width: int | str | Format) -> int:
    """Return the number of bytes for a row of `count` codes; the last byte's spare bits are zeros.

    >>> packed_length(32, "e2m1"), packed_length(32, "e3m2"), packed_length(3, 4)
    (16, 24, 2)
    """
    return -(-count * _width(width) // 8)


@in_default_mode
def pack(codes: Any, width: int | str | Format | None = None) -> Array:
    """Return codes packed along the last axis as uint8; the spare bits of a row's last byte are zeros.

    Parameters
    ----------
    codes
        Integers of at least one axis, or a FloatArray.
    width
        Bits of a code, 1 to 8, or a format; not needed for a FloatArray.

    Returns
    -------
    packed
        uint8, with `packed_length` bytes per row of codes.

    Raises
    ------
    UnsupportedError
        For codes that are too wide or have no axis, and for a `width` that is missing or contradicts the FloatArray.

    Examples
    --------
    >>> pack([1, 2, 3, 4], 4).tolist(), pack([1, 2, 3, 4], "e3m2").tolist()
    ([33, 67], [129, 48, 16])
    """
    own = getattr(codes, "format", None)
    if isinstance(own, Format):
        if width is not None and _width(width) != own.width:
            raise UnsupportedError(f"codes have {own.width} bits ({own.name}), but width is {_width(width)}")
        codes, width = codes.codes, own
    if width is None:
        raise UnsupportedError("width is missing: give the bits of a code (4, 6) or a format for plain integers")
    bits = _width(width)
    array = checked_codes(codes, bits)
    if array.ndim == 0:
        raise UnsupportedError("codes has no axis to pack along: give at least one row")
    small = array.astype(np.uint8)
    count = small.shape[-1]
    group, octets, places = _places(bits)
    packed = np.zeros((*small.shape[:-1], -(-count // group) * octets), np.uint8)
    for i, (octet, bit) in enumerate(places):
        each = small[..., i::group]
        packed[..., octet::octets][..., : each.shape[-1]] |= each << np.uint8(bit)
        if bit + bits > 8:
            packed[..., octet + 1 :: octets][..., : each.shape[-1]] |= each >> np.uint8(8 - bit)
    return np.ascontiguousarray(packed[..., : packed_length(count, bits)])


@in_default_mode
def unpack(packed: object, width: int | str | Format, count: int | None = None) -> Array:
    """Return the codes of packed rows as uint8, along the last axis.

    Parameters
    ----------
    packed
        Array of uint8, as `pack` returns it.
    width
        Bits of a code, 1 to 8, or a format.
    count
        Number of codes in a row; by default as many as fit. If the last byte was padded with zeros, more codes may fit
        than were packed.

    Returns
    -------
    codes
        uint8, one code per byte.

    Raises
    ------
    UnsupportedError
        For arrays that are not uint8 or have no axis, and for a `count` that does not match the number of bytes in a
        row.

    Examples
    --------
    >>> unpack([33, 67], 4).tolist(), unpack([129, 48, 16], "e3m2", 3).tolist()
    ([1, 2, 3, 4], [1, 2, 3])
    """
    bits = _width(width)
    given = np.asarray(packed)
    if given.dtype != np.uint8 and not isinstance(packed, list | tuple):
        raise UnsupportedError(f"packed must be an array of uint8, not of {given.dtype.name}")
    if given.ndim == 0:
        raise UnsupportedError("packed has no axis to unpack along: give at least one row")
    if given.size and (given.dtype.kind not in "iu" or int(given.min()) < 0 or int(given.max()) > 255):
        raise UnsupportedError("packed must hold bytes, which are integers from 0 to 255")
    octets_given = given.shape[-1]
    most = octets_given * 8 // bits
    if count is None:
        count = most
    if not isinstance(count, int | np.integer) or count < 0 or packed_length(int(count), bits) != octets_given:
        least = max(0, (octets_given - 1) * 8 // bits + 1) if octets_given else 0
        held = f"{octets_given} bytes hold {least} to {most} codes of {bits} bits"
        raise UnsupportedError(f"count must be an integer from {least} to {most}, not {count!r}: {held}")
    group, octets, places = _places(bits)
    groups = -(-int(count) // group)
    stream = np.zeros((*given.shape[:-1], groups * octets), np.uint8)
    stream[..., :octets_given] = given
    codes = np.empty((*given.shape[:-1], groups * group), np.uint8)
    for i, (octet, bit) in enumerate(places):
        each = stream[..., octet::octets] >> np.uint8(bit)
        if bit + bits > 8:
            each |= stream[..., octet + 1 :: octets] << np.uint8(8 - bit)
        codes[..., i::group] = each & np.uint8((1 << bits) - 1)
    return np.ascontiguousarray(codes[..., :count])
