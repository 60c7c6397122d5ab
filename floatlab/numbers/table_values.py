"""Values of numbers in formats given by a table: as Exact, or as bounds and text for irrational values.

The functions take a format and a code instead of a `Datum`, because `Datum` calls the functions. This module is
imported only when a format given by a table is used.
"""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.formats.format import Format
from floatlab.formats.table_format import GUARD, TableFormat
from floatlab.formats.tapered import LogarithmicTakum
from floatlab.numbers.exact import Exact


def symbol(format: TableFormat, code: int) -> str:
    """Return an irrational number as text (a power of √e), or an empty text for other codes.

    >>> from floatlab.formats.table_catalog import TABLE_NAMES
    >>> takum = TABLE_NAMES["takum_log8"].format
    >>> symbol(takum, 0x43), symbol(takum, 0xBD), symbol(takum, 0x40)
    ('sqrt(e)^(3/8)', '-sqrt(e)^(3/8)', '')
    """
    rank = format.magnitude(code)
    if not isinstance(format, LogarithmicTakum) or not rank:
        return ""
    power = format.power(rank)
    return f"{'-' * format.sign(code)}sqrt(e)^({power})" if power else ""


def value_of(format: TableFormat, code: int) -> Exact | None:
    """Return the value of a code, or None for special values. Raises UnsupportedError if the value is irrational."""
    rank, negative = format.magnitude(code), bool(format.sign(code))
    if rank > format.largest_magnitude or (not rank and negative and format.nan_in_place_of_negative_zero):
        return None
    if not rank:
        return Exact(negative and format.negative_zero, 0, format.qmin)
    if power := symbol(format, code):
        raise UnsupportedError(
            f"{format.name} 0x{code:0{-(-format.width // 4)}x} is {power}, an irrational number: it can be shown, "
            "converted and used in arrays, but not in exact arithmetic"
        )
    return Exact(negative, *format.real(rank, negative))


def bounds_of(format: TableFormat, code: int, digits: int) -> tuple[Exact, Exact]:
    """Return a lower and an upper bound on the value.

    If the value is rational, both bounds are equal to it. Otherwise the bounds have at least `digits` binary digits,
    and differ by one unit in the last digit.
    """
    if not symbol(format, code):
        exact = value_of(format, code)
        assert exact is not None
        return exact, exact
    negative = bool(format.sign(code))
    low, high = (Exact(negative, *bound) for bound in format.bounds(format.magnitude(code), digits))
    return (high, low) if negative else (low, high)


def is_boundary(format: Format, rank: int, source: Format, code: int) -> bool:
    """Return whether a magnitude lies exactly on the rounding boundary between `rank` and `rank + 1` of `format`.

    The magnitude is that of `code` in `source`. If both formats are logarithmic takums, magnitudes are √e^ℓ, so it is
    enough to compare ℓ. For other formats, the result is False.

    >>> from floatlab.formats.table_catalog import TABLE_NAMES
    >>> narrow, wide = (TABLE_NAMES[name].format for name in ("takum_log8", "takum_log16"))
    >>> is_boundary(narrow, 0x43, wide, 0x4380), is_boundary(narrow, 0x43, wide, 0x4381)
    (True, False)
    """
    if not (isinstance(format, LogarithmicTakum) and isinstance(source, LogarithmicTakum)):
        return False
    return format.power(2 * rank + 1, format.width + 1) == source.power(source.magnitude(code))


def gap(format: TableFormat, code: int) -> Exact:
    """Return a number's distance to the next larger magnitude.

    For the largest magnitude, return the distance to the next smaller one.
    """
    negative = bool(format.sign(code))
    low = min(format.magnitude(code), format.most(negative) - 1)
    below, above = (Exact(False, *format.real(rank, negative)) for rank in (low, low + 1))
    return above - below


def catchment(format: TableFormat, code: int) -> tuple[Exact, Exact, bool, Exact, bool]:
    """Return the magnitude of a nonzero number, and the interval of magnitudes that round (to nearest) to this number.

    Each end of the interval is followed by a flag: whether this end belongs to the interval. If the interval of the
    largest number is unbounded, the upper end is set as far from the number as the lower end. In a format of irrational
    numbers, the ends are approximate, and lie slightly inside the interval.
    """
    rank, negative = format.magnitude(code), bool(format.sign(code))
    value = Exact(False, *format.real(rank, negative))
    low = Exact(False, *format.boundary(rank - 1, negative))
    if rank < format.most(negative) or format.next_beyond():
        high = Exact(False, *format.boundary(rank, negative))
    else:
        high = value + (value - low)
    if format.is_irrational:
        step = Exact(False, 1, format.exponent_of((value.c, value.q)) - format.width - GUARD // 2)
        return value, low + step, True, high - step, True
    if format.ties_away:
        return value, low, True, high, False
    closed = (format.counts_as_odd(rank - 1, negative), not format.counts_as_odd(rank, negative))
    return value, low, closed[0] and bool(low), high, closed[1]
