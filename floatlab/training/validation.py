"""Validation of the training arguments. Numbers may be text or of any numeric type; errors name the argument."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, SupportsIndex

from floatlab.errors import FloatlabError, LiteralError, UnsupportedError, quoted
from floatlab.formats import Format
from floatlab.numbers import Datum, Ratio, parse_literal
from floatlab.record import Record

MOST = 1 << 40  # upper limit for step counts and similar arguments


def exactly(value: Any, name: str) -> Fraction:
    """Return a finite number as a Fraction.

    Raises UnsupportedError for NaN and infinities, and LiteralError for a value that is not a number.

    >>> exactly("0.1", "w"), exactly(0.5, "w"), exactly("2^-24", "w") == Fraction(2) ** -24
    (Fraction(1, 10), Fraction(1, 2), True)
    """
    if isinstance(value, str):
        meant = parse_literal(value).value
        if isinstance(meant, Ratio):
            try:
                return meant.as_fraction()
            except UnsupportedError as trouble:
                raise UnsupportedError(f"{name}, {quoted(value)}: {trouble}") from None
        raise UnsupportedError(f"{name} must be a finite number, not {quoted(value)}")
    if isinstance(value, Datum) and not value.is_finite:
        raise UnsupportedError(f"{name} must be a finite number, not {value!r}")
    try:
        return Fraction(*value.as_integer_ratio())
    except AttributeError:
        pass
    except (OverflowError, ValueError):
        raise UnsupportedError(f"{name} must be a finite number, not {value}") from None
    try:
        return Fraction(*float(value).as_integer_ratio())
    except (TypeError, ValueError, OverflowError):
        raise LiteralError(f"{name} must be a number, not {quoted(str(value))}") from None


def checked_number(value: object, name: str, at_least: float | None = None, above: float | None = None) -> float:
    """Return a finite float within bounds; raises UnsupportedError, whose message names the argument.

    >>> checked_number("2^-3", "lr", above=0)
    0.125
    """
    bound = f" above {above:g}" if above is not None else "" if at_least is None else f" from {at_least:g} up"
    try:
        number = float(exactly(value, name))
    except (FloatlabError, OverflowError):
        number = float("nan")
    if not (number >= at_least if at_least is not None else number > above if above is not None else number == number):
        raise UnsupportedError(f"{name} must be a finite number{bound}, not {quoted(str(value))}")
    return number


def checked_whole(value: object, name: str, least: int, most: float = MOST) -> int:
    """Return an int within bounds; raises UnsupportedError, whose message names the argument.

    >>> checked_whole(101, "steps", 0)
    101
    """
    number = value.__index__() if isinstance(value, SupportsIndex) and not isinstance(value, bool) else None
    if number is not None and least <= number <= most:
        return number
    bound = f"up to {most:,}" if number is not None and number > most else f"from {least} up"
    raise UnsupportedError(f"{name} must be a whole number {bound}, not {quoted(str(value))}")


def check_needs(format: Format, name: str) -> None:
    """Raise UnsupportedError for a format without a zero or a sign: gradients, weights and updates need both."""
    missing = [what for what, there in (("zero", format.zero), ("sign", format.signed)) if not there]
    if missing:
        lacks = " and ".join(f"no {what}" for what in missing)
        raise UnsupportedError(f"{name} is {format.name}, which has {lacks}: training needs both (try bf16 or e5m2)")


def set_fields(record: Record, **values: object) -> None:
    """Set the fields of a frozen record from a custom `__init__`."""
    for name, value in values.items():
        object.__setattr__(record, name, value)


def beyond(what: str, format: Format) -> UnsupportedError:
    """Return the error for a number outside a format's range.

    >>> from floatlab.formats import parse_format
    >>> print(beyond("x, 1e9,", parse_format("fp16")))
    x, 1e9, is beyond binary16, whose largest is 65504
    """
    return UnsupportedError(f"{what} is beyond {format.name}, whose largest is {float(format.largest):g}")


def listed_words(given: object, name: str) -> list[Any]:
    """Return the words of a text (separated by commas or spaces), or the items of an iterable.

    Raises UnsupportedError for anything else.

    >>> listed_words("plain, master kahan", "remedies")
    ['plain', 'master', 'kahan']
    """
    if isinstance(given, str):
        return given.replace(",", " ").split()
    if not isinstance(given, Iterable):
        raise UnsupportedError(f"{name} must be a text of names or a list of names, not {quoted(str(given))}")
    return list(given)
