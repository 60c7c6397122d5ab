"""Recognise rounding errors of 16-bit numbers even if no replay reproduces them.

Stochastic rounding, two roundings in a row, and partial sums in 16 bits leave errors above half an ulp in many elements
of a result. The bits of these elements depend on unknown random numbers, or on an unknown order of addition. So all
errors are judged together: they must not be too large, and must not form a pattern, as the errors of a fault do.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.types import Array
from floatlab.reduce.explain.faults.patterns import drift_of
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import View

_BRAIN, _HALF = 8, 11  # the precisions of 16-bit formats
_ULPS = 2.0  # partial sums in 16 bits cause errors of up to this many ulps of the largest partial sum
# At least _LEAST elements, and at least the share _SHARE, must be off by more than half an ulp. Fewer elements may
# simply be wrong.
_LEAST, _SHARE = 4, 0.1
_ELEMENTS = 12  # with fewer different numbers than this, a pattern cannot be excluded
# Errors have no pattern if the means of rows and columns, and the factor, are at most this significant.
_MEANS, _FACTOR = 6.0, 4.0
_LINE = 4  # rows and columns are compared if they have at least this many elements
_EVEN = 3.0  # the root mean square error of a row is at most this many times that of all elements
# Independent errors with the standard deviation s in an m × n matrix have a norm of about s·(√m + √n). Errors have a
# pattern if their norm is _TALL times as large. The norm is computed for at most _MATRIX rows and columns.
_MATRIX, _TALL = 256, 1.3


def rounded_again(view: View) -> tuple[Fault, ...]:
    """Return the causes of errors above half an ulp that look like rounding errors of 16-bit numbers.

    If every number of the result is the next number of its format below or above the exact number, the cause is a final
    rounding. Otherwise, either all sums or only the sums of blocks were rounded to the format. Both causes are then
    returned, because the errors do not show which one is right. If the errors look different, the tuple is empty.

    >>> from floatlab.arrays.conversion import quantize
    >>> from floatlab.formats import parse_format
    >>> from floatlab.reduce.explain.noise import multiply_exactly, noise_of
    >>> rng, single, half = np.random.default_rng(1), parse_format("fp32"), parse_format("bf16")
    >>> x, y = rng.standard_normal((30, 20)), rng.standard_normal((20, 30))
    >>> totals, usable = multiply_exactly(x, y, False), np.ones((30, 30), bool)
    >>> ends = [np.asarray(quantize(totals.product, half, rounding=each)) for each in ("RTN", "RTP")]
    >>> stochastic = np.where(rng.random((30, 30)) * (ends[1] - ends[0]) < totals.product - ends[0], ends[1], ends[0])
    >>> [each.name for each in rounded_again(View(totals, stochastic, usable, noise_of(single), half))]
    ['output-rounded']
    >>> stochastic[:, 3] *= 1.02
    >>> rounded_again(View(totals, stochastic, usable, noise_of(single), half))
    ()
    """
    usable = view.usable & (view.totals.size > 0)
    if not _BRAIN <= view.format.precision <= _HALF or not isinstance(view.half, np.ndarray):
        return ()
    error = np.abs(view.totals.error(view.values))
    room = view.noise.limit(view.totals)
    beyond = usable & (error > view.half + room)
    different = len(np.unique(view.values[usable]))
    if different < _ELEMENTS or beyond.sum() < max(_LEAST, _SHARE * usable.sum()):
        return ()
    with np.errstate(all="ignore"):
        largest = half_ulp(np.maximum(np.abs(view.values), np.sqrt(view.totals.squares)), view.format)
    if not (error <= 2 * _ULPS * largest + room)[usable].all() or _has_pattern(view, error / largest, usable):
        return ()
    known = ("format", view.format.name)
    low, high = (
        np.asarray(quantize(view.totals.product + end, view.format, rounding=direction))
        for end, direction in ((-room, "RTN"), (room, "RTP"))
    )
    if ((low <= view.values) & (view.values <= high))[usable].all():
        return (Fault("output-rounded", (), (known, ("rounding", "to one of the two nearest numbers"))),)
    unclear = known, ("sums", "all, or those of blocks")
    return Fault("accumulator", (), unclear), Fault("partials", (), unclear)


def _has_pattern(view: View, error: Array, usable: Array) -> bool:
    """Return whether errors contain a bias or a factor, or whether some rows or columns have larger errors than others.

    Errors that form a matrix of low rank (a sum of a few products column·row) are also a pattern: exchanged terms cause
    such errors.
    """
    drift = drift_of(view)
    if max(drift.bias) > _MEANS or abs(drift.scale) > _FACTOR:
        return True
    signed = np.where(usable, np.sign(view.totals.error(view.values)) * error, 0.0)[:_MATRIX, :_MATRIX]
    spread = float(np.sqrt((signed * signed).mean()))
    if spread * _TALL * sum(count**0.5 for count in signed.shape) < float(np.linalg.norm(signed, 2)):
        return True
    squares, counts = np.where(usable, error * error, 0.0), usable.astype(np.float64)
    usual = float(squares.sum() / counts.sum())
    for axis in (0, 1):
        size = counts.sum(axis=axis)
        means = squares.sum(axis=axis)[size >= _LINE] / size[size >= _LINE]
        if means.size > 1 and means.max() > _EVEN**2 * usual:
            return True
    return False
