"""The exact result of an operation on the numbers as the user typed them, before they are rounded to a format."""

from __future__ import annotations

from fractions import Fraction

from floatlab.arith import readings
from floatlab.numbers import Datum, Derivation, read
from floatlab.numbers.exact import Ratio
from floatlab.numbers.printing import terminating_decimal
from floatlab.page.datum import coded
from floatlab.page.model import Block, Row, line
from floatlab.page.words import equals, listed, plural

_MOST_DIGITS = 24  # a result with more decimal digits than this is not shown
_SHORT = 4096  # typed numbers with a numerator or denominator of more bits than this are ignored

_NOUNS = {"add": "sum", "subtract": "difference", "multiply": "product", "divide": "quotient"}


def typed_result(derivation: Derivation) -> Fraction | None:
    """Return the exact result that the operation has for the typed numbers, or None if no operand was rounded.

    The result is also None for operations outside `_NOUNS`, for a zero divisor, for non-finite or irrational operands,
    and for typed numbers of more than `_SHORT` bits.

    >>> from floatlab import add
    >>> typed_result(add("0.1", "0.2", "fp64")), typed_result(add("1", "0.5", "fp64"))
    (Fraction(3, 10), None)
    """
    data = derivation.operands
    if derivation.operation not in _NOUNS or not any(derivation.literals):
        return None
    typed, is_rounded = list[Fraction](), False
    for datum, made in zip(data, _readings(derivation), strict=True):
        if not isinstance(datum, Datum) or not datum.is_finite or datum.symbol:
            return None
        truth = made.truth if made is not None else None
        if isinstance(truth, Ratio) and (truth.truncated or not truth.is_short(_SHORT)):
            return None
        is_rounded |= made is not None and bool(made.flags)
        typed.append(truth.as_fraction() if isinstance(truth, Ratio) else datum.exact.as_fraction())
    if not is_rounded:
        return None
    first, second = typed
    match derivation.operation:
        case "add":
            return first + second
        case "subtract":
            return first - second
        case "divide":
            return first / second if second else None
    return first * second


def _readings(derivation: Derivation) -> tuple[Derivation | None, ...]:
    data = tuple(each for each in derivation.operands if isinstance(each, Datum))
    return readings(data, derivation.literals, derivation.context)


def typed_rows(derivation: Derivation) -> list[Block]:
    """Return rows with the result that the operation would have if the operands were not rounded.

    There are no rows if this result is equal to the actual one, if one of the two is not finite, or if the exact result
    is not a short decimal.

    >>> from floatlab import add
    >>> from floatlab.page.model import Page
    >>> from floatlab.page.text_layout import to_text
    >>> print(to_text(Page(tuple(typed_rows(add("0.1", "0.2", "fp64"))))), end="")
      as typed     0.3 is 0x3fd3333333333333 ≈ 0.3  1 ulp below the result
                   a and b were rounded when they were read, so their exact sum is
                   not 0.3.
    """
    wanted, result = typed_result(derivation), derivation.result
    text = None if wanted is None else terminating_decimal(wanted, _MOST_DIGITS)
    if text is None or wanted is None or not result.is_finite:
        return []
    other = read(wanted, result.format, derivation.context).result
    if not other.is_finite or other.exact == result.exact:
        return []
    ulps = (other.exact.as_fraction() - result.exact.as_fraction()) / result.ulp.as_fraction()
    names = [name for name, made in zip("abc", _readings(derivation), strict=False) if made is not None and made.flags]
    far = f"{abs(ulps)} {plural(int(abs(ulps)), 'ulp')} " if ulps.denominator == 1 else ""
    where = f"{far}{'above' if ulps > 0 else 'below'} the result"
    was = "were rounded when they were" if len(names) > 1 else "was rounded when it was"
    noun = _NOUNS[derivation.operation]
    whose = "their" if len(names) == len(derivation.operands) else "the"
    reason = f"{listed(names)} {was} read, so {whose} exact {noun} is not {text}."
    return [Row("as typed", line(f"{text} is ", coded(other, equals(other))), where), Row("", reason)]
