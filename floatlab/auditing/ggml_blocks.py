"""Decodes ggml's quantised blocks (GGUF) from their bytes to numbers.

In types with codes of 4 bits (nibbles), each byte holds two codes. Such bytes form groups: the low nibbles of a group
are the first half of its elements, and the high nibbles are the second half. The layouts are those of ggml's
`ggml-common.h` and of the Python package gguf.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.codec import decode_array
from floatlab.arrays.sources import ArraySource
from floatlab.arrays.types import Array
from floatlab.auditing.weight_streams import Reader, octets
from floatlab.errors import UnsupportedError
from floatlab.files.gguf import block_of

_NUMBERS = np.arange(256)
_PAIRS = np.array([[0], [2], [4], [6]], np.uint8)  # the right shifts for the four pairs of bits in a byte
E2M1 = decode_array(np.arange(16, dtype=np.uint8), "e2m1").astype(np.float64)
_E8M0 = decode_array(_NUMBERS.astype(np.uint8), "e8m0").astype(np.float64)
IQ4 = np.array([-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113], np.float64)
_POWERS_OF_3 = np.array([1, 3, 9, 27, 81], np.uint8)
# ggml ignores the sign of NVFP4 scales. It reads the code of NaN as 0, or as 480 if the sign bit is set.
_UE4M3 = decode_array((_NUMBERS & 0x7F).astype(np.uint8), "e4m3").astype(np.float64)
_UE4M3[0x7F], _UE4M3[0xFF] = 0.0, 480.0


def reader(source: ArraySource, dtype: str) -> Reader:
    """Return a function (first, count) that reads the numbers of a quantised tensor; `source` has its bytes.

    Raises UnsupportedError if floatlab cannot decode the type.
    """
    block, decode = block_of(dtype), _DECODERS.get(dtype)
    if decode is None or block is None:
        raise unsupported(source.name, dtype)
    elements, size = block

    def read(first: int, count: int) -> Array:
        start, end = first // elements, -(-(first + count) // elements)
        blocks = octets(source, start * size, (end - start) * size).reshape(-1, size)
        return decode(blocks).reshape(-1)[first - start * elements :][:count]

    return read


def unsupported(name: str, dtype: str) -> UnsupportedError:
    """Return the error for a tensor whose type floatlab cannot decode."""
    if dtype.startswith("IQ"):
        return UnsupportedError(f"{name} is {dtype}, which is not read: its codes are indices of a codebook of ggml")
    return UnsupportedError(f"{name} is {dtype}, which is not one of the types read: {', '.join(_DECODERS)}")


def is_read(dtype: str) -> bool:
    """Return whether floatlab can decode a quantised type."""
    return dtype in _DECODERS


def _half(blocks: Array, place: int) -> Array:
    """Return the binary16 number at byte `place` of each block, as a column."""
    return np.ascontiguousarray(blocks[:, place : place + 2]).view("<f2").astype(np.float64)


def halves(octets_: Array) -> Array:
    """Return nibbles (4 bits): first the low nibbles of all bytes along the last axis, then the high nibbles."""
    return np.concatenate((octets_ & 15, octets_ >> 4), axis=-1)


def _fifth_bits(blocks: Array, place: int) -> Array:
    """Return the highest bit of each of 32 five-bit codes, as 0 or 16. Four bytes store these bits."""
    return np.unpackbits(blocks[:, place : place + 4], axis=1, bitorder="little") << 4


def _q8_0(blocks: Array) -> Array:
    return np.ascontiguousarray(blocks[:, 2:]).view(np.int8) * _half(blocks, 0)


def _q4_0(blocks: Array) -> Array:
    return (halves(blocks[:, 2:]) - 8.0) * _half(blocks, 0)


def _q4_1(blocks: Array) -> Array:
    return halves(blocks[:, 4:]) * _half(blocks, 0) + _half(blocks, 2)


def _q5_0(blocks: Array) -> Array:
    return ((halves(blocks[:, 6:]) | _fifth_bits(blocks, 2)) - 16.0) * _half(blocks, 0)


def _q5_1(blocks: Array) -> Array:
    return (halves(blocks[:, 8:]) | _fifth_bits(blocks, 4)) * _half(blocks, 0) + _half(blocks, 2)


def scales_and_minima(packed: Array) -> tuple[Array, Array]:
    """Return eight scales and eight minima of 6 bits each, from the 12 bytes of a K block (a block of 256 elements)."""
    low, middle, high = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = np.concatenate((low & 63, (high & 15) | (low >> 6 << 4)), axis=1)
    minima = np.concatenate((middle & 63, (high >> 4) | (middle >> 6 << 4)), axis=1)
    return scales, minima


def _of_k(blocks: Array, codes: Array) -> Array:
    """Return the numbers of K blocks, d·scale·code − dmin·minimum; `codes` has eight groups of 32 codes per block."""
    scales, minima = scales_and_minima(blocks[:, 4:16])
    d, least = (_half(blocks, 0) * scales)[..., None], (_half(blocks, 2) * minima)[..., None]
    found: Array = d * codes - least
    return found


def _q4_k(blocks: Array) -> Array:
    return _of_k(blocks, halves(blocks[:, 16:].reshape(-1, 4, 32)).reshape(-1, 8, 32))


def _q5_k(blocks: Array) -> Array:
    low = halves(blocks[:, 48:].reshape(-1, 4, 32)).reshape(-1, 8, 32)
    high = blocks[:, None, 16:48] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    return _of_k(blocks, low | high << 4)


def _q6_k(blocks: Array) -> Array:
    low = halves(blocks[:, :128].reshape(-1, 2, 64)).reshape(-1, 2, 4, 32)
    high = blocks[:, 128:192].reshape(-1, 2, 1, 32) >> _PAIRS & 3
    codes = (low | high << 4).reshape(-1, 16, 16) - 32.0
    scales = np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
    found: Array = codes * (scales * _half(blocks, 208))[..., None]
    return found


def _pairs_of_bits(octets_: Array) -> Array:
    """Return codes of 2 bits.

    For every 32 bytes, bits 0 and 1 of all bytes come first, then bits 2 and 3, and so on.
    """
    return (octets_.reshape(-1, octets_.shape[1] // 32, 1, 32) >> _PAIRS & 3).reshape(len(octets_), -1)


def _q2_k(blocks: Array) -> Array:
    codes = _pairs_of_bits(blocks[:, 16:80]).reshape(-1, 16, 16)
    scales, minima = blocks[:, :16] & 15, blocks[:, :16] >> 4
    found: Array = codes * (_half(blocks, 80) * scales)[..., None] - (_half(blocks, 82) * minima)[..., None]
    return found


def _q3_k(blocks: Array) -> Array:
    high = blocks[:, None, :32] >> np.arange(8, dtype=np.uint8)[:, None] & 1
    codes = (_pairs_of_bits(blocks[:, 32:96]).reshape(-1, 8, 32) | high << 2).reshape(-1, 16, 16) - 4.0
    upper = (blocks[:, None, 104:108] >> _PAIRS & 3).reshape(-1, 16)
    scales = (halves(blocks[:, 96:104]) | upper << 4) - 32.0
    found: Array = codes * (_half(blocks, 108) * scales)[..., None]
    return found


def _iq4_nl(blocks: Array) -> Array:
    found: Array = IQ4[halves(blocks[:, 2:])] * _half(blocks, 0)
    return found


def _iq4_xs(blocks: Array) -> Array:
    upper = np.ascontiguousarray(blocks[:, 2:4]).view("<u2") >> (2 * np.arange(8, dtype=np.uint16)) & 3
    lower = np.stack((blocks[:, 4:8] & 15, blocks[:, 4:8] >> 4), axis=2).reshape(-1, 8)
    scales = (lower | upper << 4) - 32.0
    found: Array = IQ4[halves(blocks[:, 8:].reshape(-1, 8, 16))] * (_half(blocks, 0) * scales)[..., None]
    return found


def _trits(octets_: Array, count: int) -> Array:
    """Return numbers −1, 0 and 1.

    A byte b stands for the fraction b/256. The numbers are the first `count` digits (0, 1 or 2) of this fraction in
    base 3, each minus 1.
    """
    shifted = octets_[:, None, :] * _POWERS_OF_3[:count, None]  # modulo 256, so that the preceding digits are lost
    return (shifted.astype(np.uint16) * 3 >> 8).reshape(len(octets_), -1) - 1.0


def _tq1_0(blocks: Array) -> Array:
    parts = (_trits(blocks[:, :32], 5), _trits(blocks[:, 32:48], 5), _trits(blocks[:, 48:52], 4))
    found: Array = np.concatenate(parts, axis=1) * _half(blocks, 52)
    return found


def _tq2_0(blocks: Array) -> Array:
    found: Array = (_pairs_of_bits(blocks[:, :64]) - 1.0) * _half(blocks, 64)
    return found


def _q8_1(blocks: Array) -> Array:
    return np.ascontiguousarray(blocks[:, 4:]).view(np.int8) * _half(blocks, 0)


def _q8_k(blocks: Array) -> Array:
    d = np.ascontiguousarray(blocks[:, :4]).view("<f4").astype(np.float64)
    return np.ascontiguousarray(blocks[:, 4:260]).view(np.int8) * d


def _mxfp4(blocks: Array) -> Array:
    return E2M1[halves(blocks[:, 1:])] * _E8M0[blocks[:, :1]]


def _nvfp4(blocks: Array) -> Array:
    found: Array = E2M1[halves(blocks[:, 4:].reshape(-1, 4, 8))] * _UE4M3[blocks[:, :4]][..., None]
    return found


_DECODERS: dict[str, Callable[[Array], Array]] = {
    "Q4_0": _q4_0, "Q4_1": _q4_1, "Q5_0": _q5_0, "Q5_1": _q5_1, "Q8_0": _q8_0, "Q4_K": _q4_k, "Q5_K": _q5_k,
    "Q6_K": _q6_k, "Q2_K": _q2_k, "Q3_K": _q3_k, "Q8_1": _q8_1, "Q8_K": _q8_k, "IQ4_NL": _iq4_nl, "IQ4_XS": _iq4_xs,
    "TQ1_0": _tq1_0, "TQ2_0": _tq2_0, "MXFP4": _mxfp4, "NVFP4": _nvfp4,
}  # fmt: skip
