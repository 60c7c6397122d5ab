"""Recognise rounding errors of 16-bit numbers, although no replay reproduces them.

Stochastic rounding, two roundings in a row, and partial sums in 16 bits leave errors above half an ulp in many elements
of a result. Their bits depend on unknown random numbers, or on an unknown order of the sums. So all errors are judged
together: they must not be too large, and must not form a pattern, as those of a fault do.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.faults.patterns import drift_of
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import View

_HALF = 11  # the largest precision of a 16-bit format
_ULPS = 2.0  # partial sums in 16 bits cause errors of up to this many ulps of the largest one
# At least _LEAST elements, and at least the share _SHARE, must be off by more than half an ulp. A few may just be
# wrong.
_LEAST, _SHARE = 4, 0.1
_ELEMENTS = 12  # fewer different numbers than this show no pattern
# Errors have no pattern if the means of rows and columns, and the factor, are at most this significant.
_MEANS, _FACTOR = 6.0, 4.0
_LINE = 4  # rows and columns are compared if they have at least this many elements
_EVEN = 3.0  # the root mean square error of a row is at most this many times that of all elements


def rounded_again(view: View) -> Fault | None:
    """Return the cause of errors above half an ulp that look like rounding errors of 16-bit numbers; otherwise None.

    If every number of the result is one of the two neighbours of the exact one in the format, the cause is a final
    rounding. Otherwise, sums were rounded to the format.

    >>> from floatlab.arrays.conversion import quantize
    >>> from floatlab.formats import parse_format
    >>> from floatlab.reduce.explain.noise import multiply_exactly, noise_of
    >>> rng, single, half = np.random.default_rng(1), parse_format("fp32"), parse_format("bf16")
    >>> x, y = rng.standard_normal((30, 20)), rng.standard_normal((20, 30))
    >>> totals, usable = multiply_exactly(x, y, False), np.ones((30, 30), bool)
    >>> ends = [np.asarray(quantize(totals.product, half, rounding=each)) for each in ("RTN", "RTP")]
    >>> stochastic = np.where(rng.random((30, 30)) * (ends[1] - ends[0]) < totals.product - ends[0], ends[1], ends[0])
    >>> rounded_again(View(totals, stochastic, usable, noise_of(single), half)).name
    'output-rounded'
    >>> stochastic[:, 3] *= 1.02
    >>> rounded_again(View(totals, stochastic, usable, noise_of(single), half)) is None
    True
    """
    usable = view.usable & (view.totals.size > 0)
    if view.format.precision > _HALF or not isinstance(view.half, np.ndarray):
        return None
    error = np.abs(view.totals.error(view.values))
    room = view.noise.limit(view.totals)
    beyond = usable & (error > view.half + room)
    different = len(np.unique(view.values[usable]))
    if different < _ELEMENTS or beyond.sum() < max(_LEAST, _SHARE * usable.sum()):
        return None
    with np.errstate(all="ignore"):
        largest = half_ulp(np.maximum(np.abs(view.values), np.sqrt(view.totals.squares)), view.format)
    if not (error <= 2 * _ULPS * largest + room)[usable].all() or _has_pattern(view, error / largest, usable):
        return None
    near = 2 * np.maximum(view.half, half_ulp(view.totals.product, view.format)) + room
    if (error <= near)[usable].all():
        known = ("format", view.format.name), ("rounding", "to one of the two nearest numbers")
        return Fault("output-rounded", (), known)
    return Fault("accumulator", (), (("format", view.format.name),))


def _has_pattern(view: View, error: Array, usable: Array) -> bool:
    """Return whether the errors have a mean, a factor, or rows or columns with larger errors than the others."""
    drift = drift_of(view)
    if max(drift.bias) > _MEANS or abs(drift.scale) > _FACTOR:
        return True
    squares, counts = np.where(usable, error * error, 0.0), usable.astype(np.float64)
    usual = float(squares.sum() / counts.sum())
    for axis in (0, 1):
        size = counts.sum(axis=axis)
        means = squares.sum(axis=axis)[size >= _LINE] / size[size >= _LINE]
        if means.size > 1 and means.max() > _EVEN**2 * usual:
            return True
    return False
