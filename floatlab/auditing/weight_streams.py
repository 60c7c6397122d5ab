"""Quantised weights as streams of numbers: piece by piece, the codes of elements are multiplied by their scales.

A *reader* is a function (first, count) that returns `count` numbers from index `first` on, as float64. Indices have the
order of the weight in memory (row-major). An element may have two scales, for example those of its block and of the
tensor. The product of the element and both scales is exact in float64: it has at most 43 bits, of which at most 8 come
from the element, at most 11 from one scale, and 24 from the other scale. If a scale is stored as float64, or if
elements are divided by a scale, the result is rounded to float64.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource, HeldSource, Piece, Source
from floatlab.arrays.types import Array
from floatlab.errors import FileFormatError, UnsupportedError
from floatlab.fpmode import in_default_mode

Reader = Callable[[int, int], Array]

_LONGEST_ROW = 1 << 22  # rows that must be read whole may have at most this many elements


class Dequantized(ArraySource):
    """A quantised weight as numbers of float64; closing it also closes the arrays from which it is read."""

    def __init__(self, name: str, shape: tuple[int, ...], reader: Reader, held: tuple[ArraySource, ...]) -> None:
        """Store the reader of the numbers, and the arrays from which this reader reads."""
        super().__init__(name, shape, np.dtype(np.float64))
        self.reader, self.held = reader, held

    @in_default_mode
    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers, beginning with index `first`."""
        with np.errstate(all="ignore"):
            return self.reader(first, count)

    def close(self) -> None:
        """Close the arrays from which the weight is read."""
        for each in self.held:
            each.close()


def numbers(source: ArraySource) -> Reader:
    """Return a function (first, count) that reads numbers of an array as float64.

    >>> numbers(HeldSource(np.int8([3, -4, 5])))(1, 2)
    array([-4.,  5.])
    """

    def read(first: int, count: int) -> Array:
        return native(source.read(first, count)).astype(np.float64)

    return read


def codes_as(source: ArraySource, values: Array) -> Reader:
    """Return a reader of numbers whose codes are stored one in a byte; `values` maps each code to its number."""

    def read(first: int, count: int) -> Array:
        found: Array = values[octets(source, first, count)]
        return found

    return read


def octets(source: ArraySource, first: int, count: int) -> Array:
    """Return `count` bytes of an array of integers or of 8-bit codes, beginning with byte `first`.

    Integers of several bytes are little-endian.
    """
    size = 1 if source.dtype is None else source.dtype.itemsize
    start = first // size
    piece = source.read(start, -(-(first + count) // size) - start)
    words = piece.codes if isinstance(piece, Source) else piece
    stored = words.astype(words.dtype.newbyteorder("<"), copy=False)
    return np.ascontiguousarray(stored).view(np.uint8)[first - start * size :][:count]


def packed(source: ArraySource, values: Array, bits: int = 4, high_first: bool = False) -> Reader:
    """Return a reader of numbers whose codes, of 1, 2, 4 or 8 bits, are packed; `values` maps each code to its number.

    The first code in a byte is in the low bits, or in the high bits if `high_first` is true.

    >>> source = HeldSource(np.uint8([0x21, 0x43]))
    >>> packed(source, np.arange(16.0))(1, 3), packed(source, np.arange(16.0), high_first=True)(1, 3)
    (array([2., 3., 4.]), array([1., 4., 3.]))
    """
    each = 8 // bits
    places = range(each)[::-1] if high_first else range(each)
    bytes_ = np.arange(256)
    table = np.stack([values[bytes_ >> bits * place & (1 << bits) - 1] for place in places], axis=1)

    def read(first: int, count: int) -> Array:
        start = first // each
        found = table[octets(source, start, -(-(first + count) // each) - start)].reshape(-1)
        return found[first - start * each :][:count]

    return read


def without_padding(read: Reader, length: int, stored: int) -> Reader:
    """Return a reader that leaves out padding: of each row of `stored` numbers, it gives the first `length`."""
    if length == stored:
        return read
    check_row(stored)

    def cut(first: int, count: int) -> Array:
        start, end = first // length, -(-(first + count) // length)
        rows = read(start * stored, (end - start) * stored).reshape(-1, stored)[:, :length]
        return rows.reshape(-1)[first - start * length :][:count]

    return cut


def check_row(length: int) -> None:
    """Raise UnsupportedError for rows that are too long to be read whole."""
    if length > _LONGEST_ROW:
        raise UnsupportedError(f"rows of {length:,} numbers are not read in this layout; at most {_LONGEST_ROW:,} are")


def spread(scales: Reader, shape: tuple[int, ...], block: tuple[int, int]) -> Reader:
    """Return a function (first, count) that reads the scale of each element of an array of this shape.

    All elements of a block have one scale. A block has `block[0]` rows and `block[1]` columns. Blocks at the ends of
    the last two axes may be smaller.

    >>> read = spread(numbers(HeldSource(np.float32([[1, 2], [3, 4]]))), (3, 5), (2, 3))
    >>> read(3, 9).tolist()
    [2.0, 2.0, 1.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]
    """
    length = shape[-1] if shape else 1
    height = shape[-2] if len(shape) > 1 else 1
    down, across = min(block[0], height) or 1, min(block[1], length) or 1
    tiles, tile_rows = -(-length // across), -(-height // down)

    def tile_of(row: Array, column: Array) -> Array:
        found: Array = (row // height * tile_rows + row % height // down) * tiles + column
        return found

    def read(first: int, count: int) -> Array:
        if length % across and height * prod(shape[:-2]) > 1:  # the last block of each row is shorter than the others
            index = np.arange(first, first + count)
            return _gathered(scales, tile_of(index // length, index % length // across))
        start, end = first // across, -(-(first + count) // across)
        index = np.arange(start, end)
        found = scales(start, end - start) if down == 1 else _gathered(scales, tile_of(index // tiles, index % tiles))
        repeats = np.full(len(found), across)
        if len(repeats):
            repeats[-1] -= end * across - (first + count)
            repeats[0] -= first - start * across
        return np.repeat(found, repeats)

    return read


def _gathered(scales: Reader, index: Array) -> Array:
    """Return the scales at these indices.

    All scales from the lowest to the highest index are read, so the indices should be close together.
    """
    if not len(index):
        return np.zeros(0)
    low, high = int(index.min()), int(index.max())
    found: Array = scales(low, high - low + 1)[index - low]
    return found


def product(codes: Reader, *scales: Reader) -> Reader:
    """Return a reader of elements times their scales; each reader in `scales` gives one scale for each element."""

    def read(first: int, count: int) -> Array:
        found = codes(first, count)
        for each in scales:
            found = found * each(first, count)
        return found

    return read


def times(read: Reader, factor: float) -> Reader:
    """Return a reader that multiplies all numbers by `factor`, the scale of the whole tensor."""
    return lambda first, count: read(first, count) * factor


def divided(read: Reader, divisor: float) -> Reader:
    """Return a reader of numbers divided by `divisor`, the scale of the tensor; division by 0 follows IEEE 754."""
    return lambda first, count: read(first, count) / np.float64(divisor)


def one_number(source: ArraySource) -> float:
    """Return the only number of an array; raises FileFormatError if the array has none or several."""
    if source.size != 1:
        raise FileFormatError(f"{source.name} has {source.size:,} numbers, but one scale of the whole tensor is needed")
    return float(numbers(source)(0, 1)[0])


def swizzled_places(shape: tuple[int, int]) -> Array:
    """Return the index that each scale of a grid has in the 128×4 layout of Blackwell's matrix units.

    `shape` has the rows and columns of the grid, which are padded to multiples of 128 and 4. Scale (r, c) is at (r//128
    · C/4 + c//4)·512 + (r%32)·16 + (r%128)//32·4 + c%4, where C is the padded number of columns (NVIDIA, cuBLAS: block
    scaling factors layout).

    >>> swizzled_places((2, 5)).tolist()
    [[0, 1, 2, 3, 512], [16, 17, 18, 19, 528]]
    """
    r, c = np.indices(shape)
    wide = -(-shape[1] // 4) * 4
    found: Array = (r // 128 * (wide // 4) + c // 4) * 512 + r % 32 * 16 + r % 128 // 32 * 4 + c % 4
    return found


def unswizzled(source: ArraySource, shape: tuple[int, int]) -> HeldSource:
    """Return scales as rows × columns; `source` has them in the 128×4 layout of Blackwell's matrix units."""
    rows, columns = shape
    wide = -(-columns // 4) * 4
    if source.size != -(-rows // 128) * 128 * wide or source.size > MOST_AT_ONCE:
        raise FileFormatError(
            f"{source.name} has {source.size:,} scales, which does not fit the 128×4 layout of {rows}×{columns}"
        )
    place = swizzled_places(shape)
    flat = source.read(0, source.size)
    if isinstance(flat, Source):
        return HeldSource(flat.replace(codes=flat.codes[place]), source.name)
    return HeldSource(flat[place], source.name)
