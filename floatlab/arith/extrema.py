"""Minimum and maximum (IEEE 754-2019 clause 9.6): by value or by magnitude, with NaNs propagated or ignored.

−0 is less than +0. If the result's format cannot represent the chosen operand, the operand is rounded into this format.
"""

from __future__ import annotations

from floatlab.arith.operands import DerivationBuilder, begin, counts_as_nan
from floatlab.arith.specials import infinite, propagate
from floatlab.formats import Format
from floatlab.numbers.datum import NumberClass
from floatlab.numbers.derivation import Choose, Derivation, Preference
from floatlab.numbers.exact import Exact
from floatlab.numbers.rounding import DEFAULT, AnyContext, Flags


def minimum(a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return the smaller of two numbers; a NaN operand makes the result a NaN.

    Parameters
    ----------
    a, b, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 9.6 (minimum). −0 is less than +0.

    Examples
    --------
    >>> minimum("0", "-0", "fp16").result, minimum("1", "nan", "fp16").result
    (Datum(binary16 0x8000 = -0), Datum(binary16 0x7e00 = nan))
    """
    return _extreme(begin("minimum", (a, b), format, context), larger=False)


def maximum(a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return the larger of two numbers; a NaN operand makes the result a NaN.

    Parameters
    ----------
    a, b, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 9.6 (maximum). −0 is less than +0.

    Examples
    --------
    >>> maximum("-inf", "2", "fp16").result
    Datum(binary16 0x4000 = 2)
    """
    return _extreme(begin("maximum", (a, b), format, context), larger=True)


def minimum_number(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT
) -> Derivation:
    """Return the smaller of two numbers. If one operand is a NaN, return the other operand.

    Parameters
    ----------
    a, b, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 9.6 (minimumNumber). A signaling NaN raises invalid, even if the other operand is returned.

    Examples
    --------
    >>> d = minimum_number("snan", "2", "fp16")
    >>> d.result, d.flags.names
    (Datum(binary16 0x4000 = 2), ['invalid'])
    """
    return _extreme(begin("minimum_number", (a, b), format, context), larger=False, passes_nans=True)


def maximum_number(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT
) -> Derivation:
    """Return the larger of two numbers. If one operand is a NaN, return the other operand.

    Parameters
    ----------
    a, b, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 9.6 (maximumNumber). A signaling NaN raises invalid, even if the other operand is returned.

    Examples
    --------
    >>> maximum_number("nan", "2", "fp16").result
    Datum(binary16 0x4000 = 2)
    """
    return _extreme(begin("maximum_number", (a, b), format, context), larger=True, passes_nans=True)


def minimum_magnitude(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT
) -> Derivation:
    """Return the number of smaller magnitude, or the smaller number if the magnitudes are equal; NaNs propagate.

    Parameters
    ----------
    a, b, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 9.6 (minimumMagnitude).

    Examples
    --------
    >>> minimum_magnitude("-1", "2", "fp16").result
    Datum(binary16 0xbc00 = -1)
    """
    return _extreme(begin("minimum_magnitude", (a, b), format, context), larger=False, by_magnitude=True)


def maximum_magnitude(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT
) -> Derivation:
    """Return the number of larger magnitude, or the larger number if the magnitudes are equal; NaNs propagate.

    Parameters
    ----------
    a, b, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 9.6 (maximumMagnitude).

    Examples
    --------
    >>> maximum_magnitude("-3", "2", "fp16").result
    Datum(binary16 0xc200 = -3)
    """
    return _extreme(begin("maximum_magnitude", (a, b), format, context), larger=True, by_magnitude=True)


def minimum_magnitude_number(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT
) -> Derivation:
    """Return the result of `minimum_magnitude`. But if one operand is a NaN, return the other operand.

    Parameters
    ----------
    a, b, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 9.6 (minimumMagnitudeNumber).

    Examples
    --------
    >>> minimum_magnitude_number("nan", "-1", "fp16").result
    Datum(binary16 0xbc00 = -1)
    """
    work = begin("minimum_magnitude_number", (a, b), format, context)
    return _extreme(work, larger=False, by_magnitude=True, passes_nans=True)


def maximum_magnitude_number(
    a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT
) -> Derivation:
    """Return the result of `maximum_magnitude`. But if one operand is a NaN, return the other operand.

    Parameters
    ----------
    a, b, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 9.6 (maximumMagnitudeNumber).

    Examples
    --------
    >>> maximum_magnitude_number("-inf", "nan", "fp16").result
    Datum(binary16 0xfc00 = -inf)
    """
    work = begin("maximum_magnitude_number", (a, b), format, context)
    return _extreme(work, larger=True, by_magnitude=True, passes_nans=True)


def _extreme(
    work: DerivationBuilder, larger: bool, by_magnitude: bool = False, passes_nans: bool = False
) -> Derivation:
    numbers = [index for index in (0, 1) if not counts_as_nan(work.operands[index])]
    if len(numbers) < 2 and not (numbers and passes_nans):
        return propagate(work, work.operands)
    values = {index: _extended(work, index) for index in numbers}
    flags = Flags.NONE
    if len(numbers) < 2:
        (index,), why = numbers, Preference.NUMBER
        other = work.operands[1 - index]
        if other.is_signaling or other.number_class is NumberClass.UNSUPPORTED:
            flags = Flags.INVALID
    else:
        index, why = _preferred(values[0], values[1], larger, by_magnitude)
    work.steps.append(Choose(index, why))
    sign, exact = values[index]
    if sign:
        return infinite(work, sign < 0, flags)
    done = work.finish(exact, exact)
    return done.replace(flags=done.flags | flags) if flags else done


_Extended = tuple[int, Exact]  # (±1, 0) for ±∞, (0, value) for finite numbers; tuples sort in the order of the numbers


def _extended(work: DerivationBuilder, index: int) -> _Extended:
    datum = work.operands[index]
    if datum.is_infinite:
        return (-1 if datum.sign_bit else 1), Exact(False, 0, 0)
    return 0, work.exact(index)


def _preferred(left: _Extended, right: _Extended, larger: bool, by_magnitude: bool) -> tuple[int, Preference]:
    """Return the index of the chosen operand, and the reason for the choice."""
    if by_magnitude:
        magnitudes = [(abs(infinite), abs(exact)) for infinite, exact in (left, right)]
        if magnitudes[0] != magnitudes[1]:
            return int((magnitudes[0] < magnitudes[1]) == larger), Preference.MAGNITUDE
    if left != right:
        return int((left < right) == larger), Preference.VALUE
    if left[1].negative != right[1].negative:
        return int(left[1].negative == larger), Preference.ZERO
    return 0, Preference.SAME
