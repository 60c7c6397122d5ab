"""Gradients that underflow in a format, and the loss scale that preserves them."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import count

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.operations import multiply
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.numbers import Context, Datum, Exact, Flags, round_exact
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.training.validation import check_needs, checked_number

_SCALES = (-1074, 1023)  # the exponents of the powers of two in binary64


@methods_in_default_mode
class Underflow(Answering, Record):
    """The effect of a format's range on gradients: how many become zero or overflow, and the scales that prevent this.

    `nonzero` is the number of gradients that are finite and not zero; the numbers below describe only these gradients.
    `counts` has the number of gradients for each exponent (of the leading digit) in `exponents`, before scaling.
    `flushed`, `subnormal` and `overflowed` count gradients after multiplication by `scale`; the shares are these
    numbers divided by `nonzero`.

    `safe_scale` is the largest power of two (in binary64) at which no gradient overflows. `flushed_by_safe_scale` is
    the number of gradients that become zero at this scale. `safe_scale` and `flushed_by_safe_scale` are None if
    `nonzero` is 0. `least_scale` is the smallest power of two at which no gradient becomes zero. `least_scale` is None
    if binary64 has no such power of two, or if `nonzero` is 0.
    """

    format: Format
    scale: float
    total: int
    nonzero: int
    not_finite: int  # among the gradients before scaling
    exponents: tuple[int, ...]
    counts: tuple[int, ...]
    flushed: int  # number that became zero
    subnormal: int
    overflowed: int
    safe_scale: float | None
    least_scale: float | None
    flushed_by_safe_scale: int | None

    _ASKS = ".lost_share"

    def __repr__(self) -> str:
        """Show the format and the share that is lost."""
        return f"Underflow({self.format.name}: {self.lost_share:.3%} of the gradients lost)"

    @property
    def lost_share(self) -> float:
        """The share of nonzero gradients that became zero."""
        return self.flushed / self.nonzero if self.nonzero else 0.0

    @property
    def subnormal_share(self) -> float:
        """The share of nonzero gradients that became subnormal numbers, which have reduced precision."""
        return self.subnormal / self.nonzero if self.nonzero else 0.0

    @property
    def range(self) -> tuple[int, int, int]:
        """The exponents of the format's smallest number, smallest normal number and largest number."""
        return self.format.qmin, self.format.emin, self.format.emax

    @property
    def histogram(self) -> list[tuple[int, int]]:
        """Pairs of an exponent and the number of gradients with this exponent."""
        return list(zip(self.exponents, self.counts, strict=True))


@in_default_mode
def measure_underflow(gradients: object, format: Format | str, scale: object = 1.0, rounding: str = "RNE") -> Underflow:
    """Return how many gradients underflow or overflow in a format after loss scaling, and which scales avoid this.

    Parameters
    ----------
    gradients
        Array of floats of any shape.
    format
        Format of the gradients.
    scale
        Loss scale, above 0.
    rounding
        Rounding direction.

    Returns
    -------
    Underflow

    Raises
    ------
    UnsupportedError
        For an empty array, a scale that is not a finite positive number, and formats without a sign or a zero.

    Examples
    --------
    >>> found = measure_underflow([1e-9, -3e-8, 1e-6, 0.25], "fp16")
    >>> found.flushed, found.subnormal, found.safe_scale, found.flushed_by_safe_scale
    (1, 2, 131072.0, 0)
    """
    fmt = parse_format(format)
    check_needs(fmt, "the format of gradients")
    number = checked_number(scale, "the loss scale", above=0)
    source = source_of(gradients, "gradients")
    values = np.asarray(decode(source.codes, source.format, np.float64)).reshape(-1)
    if not values.size:
        raise UnsupportedError("gradients has no numbers")
    finite = values[np.isfinite(values)]
    nonzero = finite[finite != 0]
    exponents, counts = np.unique(np.frexp(nonzero)[1] - 1, return_counts=True)
    context = Context(rounding)
    flushed, subnormal, overflowed = _count_outcomes(nonzero, fmt, number, context)
    safe = _safe_scale(nonzero, fmt, context)
    return Underflow(
        format=fmt, scale=number, total=values.size, nonzero=nonzero.size, not_finite=values.size - finite.size,
        exponents=tuple(exponents.tolist()), counts=tuple(counts.tolist()), flushed=flushed, subnormal=subnormal,
        overflowed=overflowed, safe_scale=safe, least_scale=_least_scale(nonzero, fmt, context),
        flushed_by_safe_scale=None if safe is None else _count_outcomes(nonzero, fmt, safe, context)[0],
    )  # fmt: skip


def _count_outcomes(nonzero: Array, fmt: Format, scale: float, context: Context) -> tuple[int, int, int]:
    """Return how many gradients become zero, how many become subnormal, and how many overflow."""
    if not nonzero.size:
        return 0, 0, 0
    found, flags = multiply(nonzero, np.float64(scale), fmt, context=context, return_flags=True)
    size = np.abs(found)
    small = (size > 0) & (size < float(fmt.smallest_normal))
    return int((found == 0).sum()), int(small.sum()), int((flags & Flags.OVERFLOW.value != 0).sum())


def _outcome_at(x: float, fmt: Format, power: int, context: Context) -> tuple[bool, bool]:
    """Round x·2^power; return whether the result is nonzero, and whether there was no overflow."""
    n, d = abs(x).as_integer_ratio()
    found = round_exact(Exact(x < 0, n, power - d.bit_length() + 1), fmt, context)
    datum = Datum(fmt, found.code)
    return not datum.is_finite or bool(datum.exact), not found.overflowed


def _extremes(nonzero: Array, choose: Callable[[Array], float]) -> list[float]:
    """Return the positive number and the negative number of smallest (or largest) magnitude, if they exist.

    `choose` is np.min for the smallest magnitude, and np.max for the largest.
    """
    sides = ((1.0, nonzero[nonzero > 0]), (-1.0, -nonzero[nonzero < 0]))
    return [sign * float(choose(each)) for sign, each in sides if each.size]


def _safe_scale(nonzero: Array, fmt: Format, context: Context) -> float | None:
    powers = []
    for most in _extremes(nonzero, np.max):
        highest = fmt.emax - (math.frexp(most)[1] - 1)
        powers.append(next(power for power in count(highest, -1) if _outcome_at(most, fmt, power, context)[1]))
    return 2.0 ** max(min(*powers, _SCALES[1]), _SCALES[0]) if powers else None


def _least_scale(nonzero: Array, fmt: Format, context: Context) -> float | None:
    powers = []
    for least in _extremes(nonzero, np.min):
        power = fmt.qmin - 2 - (math.frexp(least)[1] - 1)
        power = next(higher for higher in count(power) if _outcome_at(least, fmt, higher, context)[0])
        while power > _SCALES[0] and _outcome_at(least, fmt, power - 1, context)[0]:
            power -= 1
        powers.append(power)
    return 2.0 ** max(*powers, _SCALES[0]) if powers and max(powers) <= _SCALES[1] else None
