"""Gradient checks: why finite differences fail in narrow formats, and whether a mismatch is rounding or a bug.

A difference quotient has two errors. The truncation error shrinks with the step h: it is about h·|f″|/2 for forward
differences, and h²·|f‴|/6 for central ones. The error from rounding f grows as h shrinks: it is about u·|f|/h, where u
is half an ulp of 1. The best h balances the two errors: it is about √u (forward) or ∛u (central), times the length over
which the derivative of f changes noticeably.

The function is evaluated in a format: its argument and the result of each of its operations are rounded, and
`RoundedNumber` estimates the rounding error. With `round_all=False`, only its argument and its value are rounded. In
this case, or whenever `roundings` is given, the rounding error is estimated as √roundings·u·|f|. Both kinds of
estimates are doubled. `check_gradient` also doubles the estimate of the truncation error. Even doubled, the estimates
are not proven bounds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from floatlab.arrays.recurrences import recurrence_format
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.training.rounded_number import RoundedNumber, operate_numbers, round_number
from floatlab.training.validation import beyond, check_needs, checked_number

Function = Callable[[Any], Any]  # takes a float or a RoundedNumber; a trial call shows which
WAYS = ("forward", "central")
_STEPS_A_DECADE = 4
_TELLING = 10  # for "agrees", the quotient or the reported derivative must exceed this many times the bound
_NARROW = 24  # for formats of at most this precision, binary64 is treated as exact


class Point(Record):
    """The difference quotient for one step size, its error, and estimates of the two parts of the error."""

    h: float
    quotient: float
    error: float  # |quotient − derivative|
    relative: float | None  # None if the derivative is zero
    rounding: float  # estimate of the error from rounding
    truncation: float  # estimate of the error from the finite step


@methods_in_default_mode
class StepSweep(Answering, Record):
    """The errors of one kind of difference quotient in one format, for many step sizes.

    `advised` is the step that theory recommends: max(|x|, 1), times √u for forward differences or ∛u for central ones.
    """

    way: str
    format: Format
    x: float
    derivative: float
    points: tuple[Point, ...]
    advised: float

    _ASKS = ".best"

    def __repr__(self) -> str:
        """Show the format, the kind of difference and the best step."""
        return f"StepSweep({self.way} differences in {self.format.name} at {self.x:g}: best h {self.best.h:.3g})"

    @property
    def best(self) -> Point:
        """The point with the least error."""
        return min(self.points, key=lambda point: point.error)

    @property
    def at_advised(self) -> Point:
        """The point whose step is nearest to the advised step on a logarithmic scale."""
        return min(self.points, key=lambda point: abs(math.log(point.h / self.advised)))


@methods_in_default_mode
class Check(Record):
    """Result of checking a reported derivative: the difference quotient, its mismatch, and a bound on the mismatch.

    `bound` is `rounding` + `truncation`; `truncation` is 0 if the function gives no finite number for the float x.
    `verdict` is *agrees* under two conditions: the mismatch is within `bound`, and `bound` is below a tenth of
    |`quotient`| or of |`reported`|. `verdict` is *a bug* if the mismatch exceeds ten times the bound, and *unclear*
    otherwise.
    """

    reported: float
    quotient: float
    mismatch: float
    bound: float
    rounding: float
    truncation: float
    h: float
    verdict: str


def _function_in(
    function: Function, format: Format, round_all: bool, roundings: int | None
) -> Callable[[float], tuple[float, float]]:
    """Return a function of x that gives the value of `function` in a format, and an estimate of its rounding error.

    If `round_all` is true, `function` is called with a RoundedNumber, otherwise with a float.
    """

    def of(x: float) -> tuple[float, float]:
        if round_all:
            made = function(RoundedNumber(x, format))
            if isinstance(made, RoundedNumber):
                return made.value, made.error if roundings is None else walked(made.value, roundings)
            raise UnsupportedError(f"the function returned {type(made).__name__}, not a RoundedNumber")
        with np.errstate(all="ignore"):
            value = float(function(round_number(x, format)))
        rounded = round_number(value, format)
        return rounded, walked(rounded, 1 if roundings is None else roundings)

    def walked(value: float, many: int) -> float:
        return math.sqrt(many) * 2.0**-format.precision * abs(value)

    return of


def _checked(function: Function, x: object, format: Format | str) -> tuple[float, Format]:
    if not callable(function):
        raise UnsupportedError(f"the function must be callable, not {quoted(str(function))}")
    fmt = recurrence_format(format)
    check_needs(fmt, "the format")
    point = round_number(checked_number(x, "x"), fmt)
    if not math.isfinite(point):
        raise beyond(f"x, {x},", fmt)
    return point, fmt


def _way(way: str) -> str:
    if way not in WAYS:
        raise UnsupportedError(f"way must be {' or '.join(WAYS)}, not {quoted(str(way))}{guess(str(way), [*WAYS])}")
    return way


@in_default_mode
def advised_step(format: Format | str, way: str = "central", size: float = 1.0) -> float:
    """Return the step that theory recommends: max(|size|, 1), times √u (forward differences) or ∛u (central ones).

    Parameters
    ----------
    format
        Format in which the function is evaluated; u is half an ulp of 1 in this format.
    way
        `forward` or `central` differences.
    size
        x or its magnitude; a magnitude below 1 counts as 1.

    Returns
    -------
    float

    Raises
    ------
    UnsupportedError
        For an unknown `way`, and for formats wider than binary64.

    Examples
    --------
    >>> [f"{advised_step(name):.1e}" for name in ("fp16", "fp32", "fp64")]
    ['7.9e-02', '3.9e-03', '4.8e-06']
    """
    fmt = recurrence_format(format)
    return 2.0 ** (-fmt.precision / (2 if _way(way) == "forward" else 3)) * max(abs(size), 1.0)


def _quotient(
    of: Callable[[float], tuple[float, float]], x: float, h: float, way: str, fmt: Format
) -> tuple[float, float, float]:
    """Return the difference quotient in the format, an estimate of its rounding error, and the length of its interval.

    The ends of the interval are rounded to the format. If this makes them equal, return 0, ∞ and 0.
    """
    low, high = x if way == "forward" else round_number(x - h, fmt), round_number(x + h, fmt)
    (below, off), (above, off_too) = of(low), of(high)
    taken = high - low
    if not taken:
        return 0.0, math.inf, 0.0
    nominal = round_number(2 * h if way == "central" else h, fmt)
    difference = operate_numbers("subtract", [above, below], fmt)
    found = operate_numbers("divide", [difference, nominal], fmt) if nominal else math.inf
    unit = 2.0**-fmt.precision
    step_error = abs(found) * abs(taken - nominal) / abs(taken)
    least = float(fmt.smallest)
    noise = 2 * (off + off_too) + unit * (abs(above) + abs(below)) + 2 * least
    return found, noise / abs(nominal or taken) + 3 * unit * abs(found) + step_error + least, taken


def _derivatives(function: Function, x: float) -> tuple[float, float, float]:
    """Estimate f′, f″ and f‴ at x by central differences in binary64; f′ is extrapolated (Richardson)."""

    def plain(at: float) -> float:
        return float(function(at))

    size = max(abs(x), 1.0)
    h = size * 2.0**-14
    first = [(plain(x + s) - plain(x - s)) / (2 * s) for s in (h, h / 2)]
    h3 = size * 2.0**-10
    second = (plain(x + h3) - 2 * plain(x) + plain(x - h3)) / h3**2
    third = (plain(x + 2 * h3) - 2 * plain(x + h3) + 2 * plain(x - h3) - plain(x - 2 * h3)) / (2 * h3**3)
    return (4 * first[1] - first[0]) / 3, second, third


def _omitted_term(second: float, third: float, h: float, way: str) -> float:
    """Return the magnitude of the first Taylor term that the quotient omits."""
    return abs(second) * h / 2 if way == "forward" else abs(third) * h * h / 6


def _truncation(function: Function, x: float, h: float, way: str, fmt: Format) -> float:
    """Return an estimate of the truncation error: the larger of the Taylor estimate and the error measured in binary64.

    The measurement is needed for long steps, because derivatives at x do not predict the function at the ends of such a
    step. The Taylor estimate is used alone for wide formats, and if the function has no finite value at these ends.
    """
    first, second, third = _derivatives(function, x)
    cut = _omitted_term(second, third, h, way)
    low = x if way == "forward" else x - h
    if fmt.precision > _NARROW or not all(_takes_floats(function, each) for each in (low, x + h)):
        return cut
    return max(cut, abs((float(function(x + h)) - float(function(low))) / (x + h - low) - first))


@in_default_mode
def sweep_steps(
    function: Function,
    x: object,
    format: Format | str = "fp32",
    way: str = "central",
    *,
    derivative: object = None,
    steps: Sequence[float] | None = None,
    round_all: bool = True,
    roundings: int | None = None,
) -> StepSweep:
    """Return the errors of difference quotients for many step sizes, for a function evaluated in a format.

    Parameters
    ----------
    function
        Function of one number that uses Python's operators and `sqrt()`; every operation is rounded.
    x
        Point at which the derivative is taken.
    format
        Format in which the function is evaluated.
    way
        `forward` or `central` differences.
    derivative
        The true derivative; by default it is estimated in binary64, from the values of the function for floats near x.
    steps
        Step sizes; by default four per decade, from max(|x|, 1) down to less than an ulp.
    round_all
        If false, the function takes floats, and only its argument and its value are rounded. Use this for sin and exp,
        and for functions that themselves compute in the format.
    roundings
        The number of roundings in one evaluation of the function. The rounding error is then estimated from this
        number, not propagated through the operations. With `round_all=False`, the default is 1.

    Returns
    -------
    StepSweep

    Raises
    ------
    UnsupportedError
        If x is not finite or overflows the format, if every step rounds to zero in the format, and for an unknown
        `way`. Without `derivative`, also if the function does not accept floats, or if its value at x or near x is not
        finite.

    Examples
    --------
    >>> curve = sweep_steps(lambda x: x * x * x, 1.5, "fp32")
    >>> 1e-3 < curve.best.h < 1e-1, curve.best.relative < 1e-4, curve.points[0].relative > 1e-3
    (True, True, True)
    """
    way = _way(way)
    point, fmt = _checked(function, x, format)
    takes_floats = _takes_floats(function, point)
    first, second, third = _derivatives(function, point) if takes_floats else (0.0, 0.0, 0.0)
    if derivative is None and not (takes_floats and math.isfinite(first)):
        where = "floats near" if takes_floats else "the float"
        raise UnsupportedError(f"the function gives no finite number for {where} {point:g}: give its derivative")
    truth = first if derivative is None else checked_number(derivative, "derivative")
    of = _function_in(function, fmt, round_all, roundings)
    size = max(abs(point), 1.0)
    if steps is None:
        lowest = -math.ceil((fmt.precision + 1) * math.log10(2))
        powers = range(lowest * _STEPS_A_DECADE, 1)
        steps = [size * 10.0 ** (each / _STEPS_A_DECADE) for each in powers]
    points = []
    for each in steps:
        h = round_number(checked_number(each, "a step", above=0), fmt)
        if not h:
            continue
        found, rounding, _ = _quotient(of, point, h, way, fmt)
        error = abs(found - truth)
        relative = error / abs(truth) if truth else None
        points.append(Point(h, found, error, relative, rounding, _omitted_term(second, third, h, way)))
    if not points:
        raise UnsupportedError(f"every step rounds to zero in {fmt.name}")
    return StepSweep(way, fmt, point, truth, tuple(points), advised_step(fmt, way, size))


def _takes_floats(function: Function, x: float) -> bool:
    try:
        return math.isfinite(float(function(x)))
    except (TypeError, ValueError, AttributeError, ArithmeticError):
        return False


@in_default_mode
def check_gradient(
    function: Function,
    x: object,
    reported: object,
    format: Format | str = "fp32",
    way: str = "central",
    *,
    h: float | None = None,
    round_all: bool = True,
    roundings: int | None = None,
) -> Check:
    """Check whether a derivative reported at x is right, given the rounding errors of a format.

    Parameters
    ----------
    function, x, format, way, round_all, roundings
        As in `sweep_steps`.
    reported
        The derivative to be checked.
    h
        Step size; by default `advised_step`.

    Returns
    -------
    Check

    Raises
    ------
    UnsupportedError
        If x is not finite or overflows the format, if the step is zero or too large in the format, and for an unknown
        `way`.

    Examples
    --------
    >>> cube = lambda x: x * x * x
    >>> [check_gradient(cube, 1.5, reported).verdict for reported in (6.75, 6.75 * 1.1)]
    ['agrees', 'a bug']
    >>> check_gradient(cube, 1.5, 6.75 * 1.1, h=1e-7).verdict
    'unclear'
    """
    way = _way(way)
    point, fmt = _checked(function, x, format)
    said = checked_number(reported, "the reported derivative")
    step = advised_step(fmt, way, point) if h is None else checked_number(h, "h", above=0)
    step = round_number(step, fmt)
    if not step:
        raise UnsupportedError(f"h is zero in {fmt.name}: its smallest number is {float(fmt.smallest):g}")
    if not math.isfinite(point + step):
        raise UnsupportedError(f"h is beyond {fmt.name}: its largest number is {float(fmt.largest):g}")
    found, rounding, taken = _quotient(_function_in(function, fmt, round_all, roundings), point, step, way, fmt)
    cut = 2 * _truncation(function, point, step, way, fmt) if _takes_floats(function, point) else 0.0
    bound, mismatch = rounding + cut, abs(found - said)
    useless = not taken or not math.isfinite(bound) or bound >= max(abs(found), abs(said)) / _TELLING
    verdict = "agrees" if mismatch <= bound and not useless else "a bug" if mismatch > 10 * bound else "unclear"
    return Check(said, found, mismatch, bound, rounding, cut, step, verdict)
