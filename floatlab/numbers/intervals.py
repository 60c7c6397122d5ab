"""The interval of reals that round to a datum.

To find the interval, this module rounds the numbers at which it may end, and numbers between them.
"""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import Exact
from floatlab.numbers.projection import given_by_table, infinity_code, round_exact
from floatlab.numbers.rounding import DEFAULT, Context, Direction, Negative, as_context
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from floatlab.numbers.rounding import AnyContext


class Interval(Record):
    """The reals from `low` to `high`; None means that the interval is unbounded on this side.

    `low` belongs to the interval if `low_closed` is true, and `high` if `high_closed` is true. An unbounded side that
    is closed includes ±∞. If `mirrored` is true, the negated reals belong to the interval, too: positive and negative
    overflow both give the format's only NaN, or signs are dropped.
    """

    low: Exact | None
    low_closed: bool
    high: Exact | None
    high_closed: bool
    mirrored: bool = False

    def __neg__(self) -> Interval:
        """Return the interval of the negated numbers."""
        low, high = self.high, self.low
        return Interval(
            None if low is None else -low, self.high_closed, None if high is None else -high, self.low_closed
        )


def preimage(datum: Datum, context: AnyContext = DEFAULT) -> Interval | None:
    """Return the interval of reals that round to a datum, or None if no real rounds to it.

    Under stochastic rounding, the interval contains all reals that may round to the datum. With few random bits (SRA,
    SRB, SRC) or a fixed `draw`, the interval may be larger than necessary. The interval of −0 contains only negative
    reals; 0 belongs to the interval of +0. Raises UnsupportedError for an irrational datum.

    >>> from floatlab import decode
    >>> i = preimage(decode(0x3C00, "fp16"))
    >>> i.low.as_fraction(), i.low_closed, i.high.as_fraction(), i.high_closed
    (Fraction(4095, 4096), True, Fraction(2049, 2048), True)
    """
    context = as_context(context)
    lands = _landing(datum, context)
    negative = bool(datum.sign_bit)
    if not datum.is_finite:
        return _overflowing(datum, context, lands)
    if not lands(datum.exact):  # a flushed subnormal, or a code that is not canonical
        return None
    fmt = datum.format
    value = abs(datum.exact)
    sign = -1 if negative else 1
    beyond = _above(datum, value, negative)
    outward = _edge(value, beyond, sign, lands)
    far = Exact(negative, 1, fmt.emax + 2)
    is_bounded = beyond and context.rounding.is_stochastic and round_exact(far, fmt, context).code != datum.code
    if outward is None and is_bounded:
        outward = (beyond[-1], False)
    inward: tuple[Exact | None, bool]
    if value or not fmt.zero:
        below = abs((datum.next_up if negative else datum.next_down).exact)
        if below == value:  # the number has no neighbour toward zero, because the format has no zero
            below = Exact(False, 0, 0)
        ends = [*_turns(fmt), _middle(below, value), below]
        if given_by_table(fmt):
            ends = [Exact(False, *fmt.boundary(datum.magnitude - 1, negative)), below]
        inward = _edge(value, _between(below, ends, value)[::-1], sign, lands) or (below, True)
    elif not fmt.signed and context.negative is not Negative.DROP and lands(-far):  # negative numbers become zero
        inward = (None, infinity_code(fmt, context, True)[0] == datum.code)
    elif fmt.negative_zero or not fmt.signed:
        inward = (value, not negative)
    else:
        inner = _edge(value, _above(datum, value, True), -1, lands)
        inward = (-inner[0], inner[1]) if inner and inner[0] else (value, True)
    high, high_closed = outward or (None, _infinity_lands(datum, context, negative))
    mirrored = not fmt.signed and context.negative is Negative.DROP
    interval = Interval(inward[0], inward[1], high, high_closed, mirrored)
    return -interval if negative else interval


def _landing(datum: Datum, context: Context) -> Callable[[Exact], bool]:
    contexts = [context]
    if context.rounding.is_stochastic:
        contexts = [context.replace(rounding=Direction.RTZ), context.replace(rounding=Direction.RAZ)]

    def lands(x: Exact) -> bool:
        try:
            return any(round_exact(x, datum.format, each).code == datum.code for each in contexts)
        except UnsupportedError:  # the context raises an error for x, so x does not round to the datum
            return False

    return lands


def _middle(a: Exact, b: Exact) -> Exact:
    total = a + b
    return Exact(total.negative, total.c, total.q - 1)


def _above(datum: Datum, value: Exact, negative: bool = False) -> tuple[Exact, ...]:
    """Return the magnitudes at which the interval of a datum may end on the side away from zero, in ascending order.

    The interval may end halfway to the next magnitude, or at the next magnitude. Above the largest number, the
    next magnitude is the number that would follow if the exponent range were unbounded. In a format given by a table,
    the rounding boundary replaces the halfway point, and the result is empty if there is no next magnitude. If tiny
    results are flushed, the interval of zero may extend to the smallest normal number.
    """
    fmt = datum.format
    if given_by_table(fmt):
        rank = datum.magnitude
        following = fmt.real(rank + 1, negative) if rank < fmt.most(negative) else fmt.next_beyond()
        if following is None:
            return ()
        return Exact(False, *fmt.boundary(rank, negative)), Exact(False, *following)
    if not value and fmt.zero:
        least = Exact(False, 1, fmt.least_exponent)
        normal = Exact(False, 1, fmt.emin)
        return _between(value, [_middle(value, least), least, *_turns(fmt), normal], normal)
    next_value = value + datum.ulp
    return _middle(value, next_value), next_value


def _turns(format: Format) -> list[Exact]:
    """Return the two magnitudes, just below the smallest normal number, at which the range of tiny numbers may end.

    A number is tiny after rounding (7.5) if it stays below the smallest normal number when it is rounded to p digits
    with an unbounded exponent. The ulp of that rounding is half the ulp of subnormals. The first magnitude lies one
    such ulp below the smallest normal number. The second magnitude lies half such an ulp below it. The rounding
    direction determines which of the two is the limit of tiny numbers. If tiny results are flushed, the interval of
    zero ends at this limit.
    """
    normal = Exact(False, 1, format.emin)
    return [normal - Exact(False, 1, format.emin - digits) for digits in (format.precision, format.precision + 1)]


def _between(low: Exact, ends: list[Exact], high: Exact) -> tuple[Exact, ...]:
    return tuple(sorted(end for end in ends if low <= end <= high))


def _edge(
    start: Exact, ends: tuple[Exact, ...], sign: int, lands: Callable[[Exact], bool]
) -> tuple[Exact, bool] | None:
    """Return an end of the interval that contains `start`, and whether this end belongs to the interval.

    The end is one of `ends`, or `start` itself. Return None if all `ends` belong to the interval. `start` and `ends`
    are magnitudes. `ends` has the candidates, the nearest to `start` first. `lands` tells whether a number, with the
    given sign, rounds to the datum.
    """

    def at(x: Exact) -> bool:
        return lands(-x if sign < 0 else x)

    edge, closed = start, True
    for end in ends:
        if end == edge:
            continue
        if not at(_middle(edge, end)):
            return edge, closed
        edge, closed = end, at(end)
        if not closed:
            return edge, closed
    return None


def _infinity_lands(datum: Datum, context: Context, negative: bool) -> bool:
    try:
        code, _ = infinity_code(datum.format, context, negative)
    except UnsupportedError:
        return False
    return code == datum.code


def _overflowing(datum: Datum, context: Context, lands: Callable[[Exact], bool]) -> Interval | None:
    """Return the interval of the numbers that overflow to `datum` (an ∞ or a NaN), or None if no number does."""
    fmt = datum.format
    if datum.is_nan and fmt.nan_in_place_of_negative_zero:
        rays = [_ray(datum, context, sign, lands) for sign in (1, -1)]
        if rays[0] and rays[1]:
            return rays[0].replace(mirrored=True)
        return rays[0] or (-rays[1] if rays[1] else None)
    ray = _ray(datum, context, -1 if datum.sign_bit else 1, lands)
    return -ray if ray and datum.sign_bit else ray


def _ray(datum: Datum, context: Context, sign: int, lands: Callable[[Exact], bool]) -> Interval | None:
    """Return the interval of the magnitudes that overflow to `datum` with the sign `sign`; None if it is empty."""

    def at(x: Exact) -> bool:
        return lands(-x if sign < 0 else x)

    fmt, closed = datum.format, _infinity_lands(datum, context, sign < 0)
    largest = Datum(fmt, fmt.compose(False, fmt.largest_magnitude))
    edge = largest.exact
    for end in _above(largest, edge):
        if at(_middle(edge, end)):
            return Interval(edge, edge != largest.exact and at(edge), None, closed)
        edge = end
    return Interval(edge, True, None, closed) if at(edge) else None
