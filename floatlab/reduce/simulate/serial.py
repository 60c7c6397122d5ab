"""Serial updates of a block of sums, in the processor's own formats: the loop that most time is spent in.

The compiled lane has it as one loop; without it, NumPy goes term by term.
"""

from __future__ import annotations

import math
import struct
import sys
from collections.abc import Sequence

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.pairs import to_odd, two_sum
from floatlab.arrays.lanes.reading import DOUBLE
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Context, Direction
from floatlab.reduce.simulate.round_binary64 import FLOAT, WORD, nearest_normal

_LOW = 0 if sys.byteorder == "little" else 1  # which half of a binary64 word holds its last digits
_BELOW = np.uint32((1 << 29) - 1)  # the digits that binary32 does not have
_HALF = np.uint32(1 << 28)
# binary64 numbers from here on are cut at the same digit as the normal numbers of binary32.
_NORMAL = 2.0**-126
_LEAST_PLACE = -149
_ENDS, _TIE = int(_BELOW), int(_HALF)
FEW = 4  # sums; below that Python's own floats are quicker than arrays of so few
_SINGLE = struct.Struct("=f")


def can_fuse_doubles(sides: Sequence[Source], batch: tuple[int, ...]) -> bool:
    """Say whether `update` fuses products of binary64 onto sums of this shape: where the compiled lane does it."""
    return compiled.is_built() and len(batch) <= 2 and all(side.codes.ndim == 1 + len(batch) for side in sides)


def update(sums: Array, x: Array, y: Array | None, fma: bool) -> None:
    """Add x[k]·y[k], or x[k] where there is no y, to `sums` for one k after the other, in place, to nearest even.

    All are float32, or all float64; x[k] and y[k] broadcast to the shape of `sums`. Each product is rounded, and then
    each sum, or with `fma` (of float64 where `can_fuse_doubles` says so) both at once. NaNs are NaNs, with any payload.

    >>> sums = np.zeros(1, np.float32)
    >>> update(sums, np.float32([-1 - 2**-22, 1 + 2**-23])[:, None], np.float32([1, 1 + 2**-23])[:, None], True)
    >>> sums.item() == 2**-46
    True
    """
    if y is not None and sums.flags.c_contiguous and compiled.is_built():
        if sums.ndim <= 2:
            compiled.accumulate(sums, x, y, fma)
            return
        if sums.ndim == x.ndim - 1 == y.ndim - 1:
            for i in range(len(sums)):
                a, b = (side[:, i if side.shape[1] > 1 else 0] for side in (x, y))
                update(sums[i], a, b, fma)
            return
    with np.errstate(all="ignore"):
        if fma and y is not None:
            if sums.size <= FEW:
                sums[...] = fused_trail(sums, x, y)[-1]
            else:
                _fused(sums, x, y)
        elif y is None:
            for each in x:
                np.add(sums, each, out=sums)
        else:
            product = np.empty_like(sums)
            for a, b in zip(x, y, strict=True):
                np.multiply(a, b, out=product)
                np.add(sums, product, out=sums)


def _fused(sums: Array, x: Array, y: Array) -> None:
    """Fuse: binary64 has the product whole, and a sum that is rounded twice is found and mended."""
    wide = sums.astype(np.float64)
    a, b = x.astype(np.float64), y.astype(np.float64)
    total, tie = np.empty_like(wide), np.empty(sums.shape, np.bool_)
    low = np.empty(sums.shape, np.uint32)
    ends = total.view(np.uint32).reshape(*sums.shape, 2)[..., _LOW]
    may_be_tiny = _last_place(x) + _last_place(y) < _LEAST_PLACE
    for p, q in zip(a, b, strict=True):
        np.multiply(p, q, out=total)
        np.add(total, wide, out=total)
        # Rounded to binary64 first, a number may have come to lie halfway between two of binary32.
        np.bitwise_and(ends, _BELOW, out=low)
        np.equal(low, _HALF, out=tie)
        if may_be_tiny:
            tie |= np.abs(total) < _NORMAL
        if tie.any():
            where = np.nonzero(tie)
            p_there, q_there = np.broadcast_to(p, sums.shape)[where], np.broadcast_to(q, sums.shape)[where]
            pair = two_sum(p_there * q_there, wide[where])
            total[where] = np.where(np.isfinite(pair[0]) & (pair[0] != 0), to_odd(pair).view(np.float64), total[where])
        np.copyto(sums, total, casting="same_kind")
        np.copyto(wide, sums)


def fused_trail(sums: Array, x: Array, y: Array) -> Array:
    """Return what fused updates of a few sums of binary32 make of them, after each k (k, *sums).

    >>> x = np.float32([[-1 - 2**-22], [1 + 2**-23]])
    >>> fused_trail(np.zeros(1, np.float32), x, np.float32([[1], [1 + 2**-23]])).tolist()
    [[-1.000000238418579], [1.4210854715202004e-14]]
    """
    shape = (len(x), *sums.shape)
    products = np.broadcast_to(x.astype(np.float64) * y.astype(np.float64), shape).reshape(len(x), -1)
    made = np.empty(products.shape, np.float32)
    for i, start in enumerate(sums.reshape(-1).tolist()):
        made[:, i] = _fused_one_by_one(start, products[:, i].tolist())
    return made.reshape(shape)


def _fused_one_by_one(total: float, products: list[float]) -> list[float]:
    """Fuse, one number after the other, in Python's own floats."""
    put, read = FLOAT.pack, WORD.unpack
    found = []
    for product in products:
        near = product + total
        (word,) = read(put(near))
        if (word & _ENDS == _TIE or -_NORMAL < near < _NORMAL) and near != 0:
            near = to_odd(two_sum(np.array([product]), np.array([total]))).view(np.float64).item()
        total = _single(near)
        found.append(total)
    return found


def can_add_serially(format: Format, context: Context) -> bool:
    """Say whether `added_one_by_one` adds in a format as a context says.

    Sums of p digits that are rounded to 53 first come out the same if 53 >= 2p + 2; and sums below the normal numbers
    are exact. (S. A. Figueroa, *When is double rounding innocuous?*, SIGNUM Newsletter 30(3), 1995.)
    """
    plain = context.rounding is Direction.RNE and not (context.flush_inputs or context.flush_results)
    return plain and format.signed and 2 <= format.precision <= 25 and format.subnormals and holds(DOUBLE, format)


def add_serially(total: float, terms: list[float], format: Format) -> list[float]:
    """Return the sums of numbers of a format, added one after the other, up to the first that overflows.

    Each is rounded to nearest even in Python's own floats.

    >>> from floatlab.formats import parse_format
    >>> add_serially(2046.0, [1.0, 1.0, 1.0, 3.0, 65504.0], parse_format("fp16"))
    [2047.0, 2048.0, 2048.0, 2052.0]
    """
    nearest, normal = nearest_normal(format), 2.0**format.emin
    found = []
    for term in terms:
        near = total + term
        rounded = near if -normal < near < normal else nearest(near)
        if rounded is None:
            break
        total = rounded
        found.append(total)
    return found


def _single(near: float) -> float:
    """Return a float rounded to binary32."""
    try:
        return float(_SINGLE.unpack(_SINGLE.pack(near))[0])
    except OverflowError:  # which struct has for what rounds to an infinity
        return math.copysign(math.inf, near)


def _last_place(x: Array) -> int:
    """Return an exponent that the last place of no number here is below; of zeros only, a large one."""
    magnitudes = np.abs(x)
    nonzero = magnitudes[(magnitudes > 0) & np.isfinite(magnitudes)]
    if not len(nonzero):
        return 0
    return max(int(np.frexp(nonzero.min())[1]) - 24, _LEAST_PLACE)
