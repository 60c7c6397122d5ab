"""The numbers that the codes of a quantised weight can stand for, with the stored scales.

In each convention, a code stands for a·v + b. The number v depends on the code, and the scale a and the offset b depend
on the element. To find a and b, the weight is read again after all codes have been replaced by the same code.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import lru_cache, partial

import numpy as np

from floatlab.arrays.codec import decode_array, native
from floatlab.arrays.sources import ArraySource, Piece, Source
from floatlab.arrays.types import Array
from floatlab.auditing.ggml_blocks import E2M1, IQ4
from floatlab.auditing.quantized import recognised
from floatlab.auditing.stored_parts import FP8, StoredParts, Weight, is_scale, stored_bits
from floatlab.auditing.weight_streams import numbers
from floatlab.errors import FloatlabError
from floatlab.files.checkpoints import StoredTensor
from floatlab.files.gguf import block_of
from floatlab.record import Individual

_PROBE = 1 << 12  # elements whose codes are read to check that they are on the grid
_OFF_GRID = 1e-3  # tolerance of this check, relative to the largest number of a code
_COUNTED = np.arange(256.0)
_WIDE = {"float32", "bfloat16", "float64", "e8m0fnu"}  # in these types, hardly any scale becomes 0
# For each type of ggml: where the codes are in a block; the bytes for the lowest and for the highest code; the numbers
# of all codes.
_GGML: dict[str, tuple[slice, int, int, Array]] = {
    "Q4_0": (slice(2, 18), 0x00, 0xFF, _COUNTED[:16]),
    "Q4_1": (slice(4, 20), 0x00, 0xFF, _COUNTED[:16]),
    "Q5_0": (slice(2, 22), 0x00, 0xFF, _COUNTED[:32]),
    "Q5_1": (slice(4, 24), 0x00, 0xFF, _COUNTED[:32]),
    "Q8_0": (slice(2, 34), 0x80, 0x7F, _COUNTED),
    "Q2_K": (slice(16, 80), 0x00, 0xFF, _COUNTED[:4]),
    "Q3_K": (slice(0, 96), 0x00, 0xFF, _COUNTED[:8]),
    "Q4_K": (slice(16, 144), 0x00, 0xFF, _COUNTED[:16]),
    "Q5_K": (slice(16, 176), 0x00, 0xFF, _COUNTED[:32]),
    "Q6_K": (slice(0, 192), 0x00, 0xFF, _COUNTED[:64]),
    "IQ4_NL": (slice(2, 18), 0x00, 0xFF, IQ4),
    "IQ4_XS": (slice(8, 136), 0x00, 0xFF, IQ4),
    "TQ2_0": (slice(0, 64), 0x00, 0xAA, _COUNTED[:3]),
    "MXFP4": (slice(1, 17), 0xFF, 0x77, E2M1),
    "NVFP4": (slice(4, 36), 0xFF, 0x77, E2M1),
}


class CodeGrid(Individual):
    """The numbers, in ascending order, that the codes of a weight stand for before scales and offsets are applied.

    `highest` is the weight after all codes have been replaced by the highest code. `lowest` is the weight after all
    codes have been replaced by the lowest code. Scales and offsets follow from these two weights. `lowest` is None if
    there are no offsets. `may_vanish` says whether the type of the stored scales turns small scales into 0.
    """

    values: Array
    highest: Weight
    lowest: Weight | None
    may_vanish: bool

    def open(self) -> OpenGrid:
        """Open the weights `highest` and `lowest`; the returned object computes scales and offsets from them."""
        with ExitStack() as stack:
            high = stack.enter_context(self.highest.open())
            low = None if self.lowest is None else stack.enter_context(self.lowest.open())
            return OpenGrid(self.values, high, low, stack.pop_all(), self.may_vanish)


class OpenGrid:
    """The scales and offsets of a weight, read piece by piece; closing it closes the files."""

    def __init__(
        self, values: Array, high: ArraySource, low: ArraySource | None, held: ExitStack, may_vanish: bool
    ) -> None:
        """Take `values`, `highest`, `lowest` and `may_vanish` of the grid; `held` has the open files."""
        self.values, self.may_vanish = values, may_vanish
        self._high, self._low, self._held = high, low, held

    def scales(self, first: int, count: int) -> tuple[Array, Array | float]:
        """Return the scales and the offsets of `count` elements from index `first` on."""
        top = native(self._high.read(first, count))
        if self._low is None:
            return top / self.values[-1], 0.0
        bottom = native(self._low.read(first, count))
        scale = (top - bottom) / (self.values[-1] - self.values[0])
        return scale, bottom - scale * self.values[0]

    def __enter__(self) -> OpenGrid:
        """Return the grid; it is closed at the end of the `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self._held.close()


def grid_of(parts: StoredParts, weight: Weight) -> CodeGrid | None:
    """Return the grid of a weight; None for unknown codes, and if the first numbers of the weight are not on the grid.

    >>> from floatlab.auditing.quantized import load_quantized
    >>> read = load_quantized({"a.weight": np.int8([[3, -4]]), "a.weight_scale": np.float32([0.5])})
    >>> with grid_of(read.parts, read.weights["a.weight"]).open() as grid:
    ...     scale, offset = grid.scales(0, 2)
    >>> scale.tolist(), offset, grid.values[[0, -1]].tolist()
    ([0.5, 0.5], 0.0, [-128.0, 127.0])
    """
    codes = parts.tensors[weight.codes]
    try:
        found = _codes_of(parts, weight, codes)
        if found is None:
            return None
        values, low, high, within = found
        highest = _filled(parts, weight, codes, high, within)
        has_offsets = not codes.kind or _has_offsets(weight)
        lowest = _filled(parts, weight, codes, low, within) if has_offsets else None
        if highest is None or (has_offsets and lowest is None):
            return None
        kinds = {parts.tensors[name].kind for name in weight.parts if is_scale(name)}
        grid = CodeGrid(values, highest, lowest, may_vanish=not kinds or not kinds <= _WIDE)
        return grid if _holds(grid, weight) else None
    except FloatlabError:
        return None


def _codes_of(parts: StoredParts, weight: Weight, codes: StoredTensor) -> tuple[Array, int, int, slice | None] | None:
    """Return the numbers of all codes in ascending order, the bytes of the lowest and highest code, and a slice.

    The slice says which bytes of a ggml block have the codes; it is None for other conventions.
    """
    if not codes.kind:
        found = _GGML.get(codes.dtype)
        return None if found is None else (np.unique(found[3]), found[1], found[2], found[0])
    if codes.kind in FP8:
        table = _table(codes.kind)
        return _sorted(table) if len(table) else None
    if codes.kind == "int8":
        return np.arange(-128.0, 128.0), 0x80, 0x7F, None
    bits = stored_bits(weight, codes)
    if codes.kind == "int32":
        width = next((each for each in (2, 4, 8) if abs(bits - each) < each / 4), 0)
        # Words may be padded. Without zero points, the code in the middle stands for 0.
        is_centred = not _has_offsets(weight)
        values = np.arange(float(1 << width)) - (1 << width - 1 if is_centred and width else 0)
        return (values, 0x00, 0xFF, None) if width else None
    if codes.kind == "uint32":  # MLX; its modes without biases have codes of e2m1 or e4m3
        if _has_offsets(weight):
            return np.arange(float(1 << round(bits))), 0x00, 0xFF, None
        return _of_nibbles(E2M1) if bits == 4 else None
    if codes.kind == "uint8" and abs(bits - 4) < 1 and _has_offsets(weight):
        return np.arange(-8.0, 8.0), 0x88, 0x77, None
    if codes.kind == "uint8" and abs(bits - 4) < 1:
        stored = next((parts.tensors[name] for name in weight.parts if name.endswith("quant_map")), None)
        if stored is None:
            return _of_nibbles(E2M1)
        with stored.open() as source:
            table = numbers(source)(0, source.size)
        return _of_nibbles(table) if len(table) == 16 and np.isfinite(table).all() else None
    return None


def _has_offsets(weight: Weight) -> bool:
    return any(name.endswith(("qzeros", "zero_point", ".biases")) for name in weight.parts)


def _of_nibbles(table: Array) -> tuple[Array, int, int, None]:
    values, low, high, _ = _sorted(table)
    return values, low * 0x11, high * 0x11, None


@lru_cache(maxsize=8)
def _table(kind: str) -> Array:
    return decode_array(np.arange(256, dtype=np.uint8), kind, np.float64)


def _sorted(table: Array) -> tuple[Array, int, int, None]:
    finite = np.where(np.isfinite(table), table, 0)
    return np.unique(finite) + 0.0, int(finite.argmin()), int(finite.argmax()), None


def _filled(parts: StoredParts, weight: Weight, codes: StoredTensor, octet: int, within: slice | None) -> Weight | None:
    """Return the weight after all bytes of its codes have been replaced by `octet`."""
    opened = partial(_SameCodes.of, codes, octet, within)
    changed = parts.having(codes.replace(open=opened))
    found = recognised(changed, changed.tensors[codes.name])
    return found if found is not None and found.shape == weight.shape else None


class _SameCodes(ArraySource):
    """The stored codes of a weight, with all bytes replaced by the same byte.

    In ggml's blocks, only the bytes of codes are replaced.
    """

    def __init__(self, source: ArraySource, octet: int, within: slice | None, size: int) -> None:
        super().__init__(source.name, source.shape, source.format if source.dtype is None else source.dtype)
        self.source, self.octet, self.within, self.block = source, octet, within, size

    @classmethod
    def of(cls, codes: StoredTensor, octet: int, within: slice | None) -> _SameCodes:
        block = block_of(codes.dtype)
        return cls(codes.open(), octet, within, 0 if block is None else block[1])

    def read(self, first: int, count: int) -> Piece:
        """Return `count` stored numbers from index `first` on."""
        if self.within is not None:
            octets = np.array(native(self.source.read(first, count)))
            place = np.arange(first, first + count) % self.block
            octets[(place >= self.within.start) & (place < self.within.stop)] = self.octet
            return octets
        size = 1 if self.dtype is None else self.dtype.itemsize
        word = np.full(size, self.octet, np.uint8).view(np.uint8 if self.dtype is None else self.dtype)
        same = np.broadcast_to(word, (count,))
        return Source(same, self.format) if self.dtype is None else same

    def close(self) -> None:
        self.source.close()


def _holds(grid: CodeGrid, weight: Weight) -> bool:
    """Return whether the first numbers of a weight are on its grid."""
    with weight.open() as source, grid.open() as opened, np.errstate(all="ignore"):
        count = min(source.size, _PROBE)
        read = native(source.read(0, count))
        scale, offset = opened.scales(0, count)
        place = (read - offset) / scale
        place = place[np.isfinite(place)]
    return bool((np.abs(place - nearest(grid.values, place)) <= _OFF_GRID * np.abs(grid.values).max()).all())


def nearest(values: Array, x: Array) -> Array:
    """Return, for each x, the nearest of `values`, which are in ascending order.

    >>> nearest(np.array([-1.0, 0.0, 2.0]), np.array([-9, 0.9, 1.1])).tolist()
    [-1.0, 0.0, 2.0]
    """
    found: Array = values[indices(values, x)]
    return found


def indices(values: Array, x: Array) -> Array:
    """Return, for each x, the index of the nearest of `values`, which are in ascending order."""
    found: Array = np.searchsorted((values[1:] + values[:-1]) / 2, x)
    return found
