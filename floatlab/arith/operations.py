"""The operations of IEEE 754-2019 clauses 5.4.1 and 5.3.1: computed exactly, rounded once at the end.

Every operation accepts Datum objects, derivations, text or numbers. The result's format is `format`. By default, the
result has the format to which frameworks would promote the operands, or binary32 if no operand has a format. `format`
may be narrower or wider than the operands' formats (the standard's *formatOf* operations); the result is still rounded
once.
All operations raise FormatError, LiteralError or UnsupportedError for operands that cannot be read.
"""

from __future__ import annotations

from floatlab.arith.operands import DerivationBuilder, begin, counts_as_nan
from floatlab.arith.specials import default_nan, infinite, invalid, propagate
from floatlab.formats import Format
from floatlab.numbers.derivation import Align, Combination, Combine, Derivation, Divide, Root, Rule, Special
from floatlab.numbers.exact import GUARD_DIGITS, Exact, Ratio, SquareRoot, square_root
from floatlab.numbers.projection import infinity_code
from floatlab.numbers.rounding import DEFAULT, Direction, Flags, NanRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.numbers.rounding import AnyContext


def add(a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Add two numbers: align the exponents, add exactly, round once.

    Parameters
    ----------
    a, b : str, int, float, Datum, Fraction, Decimal or NumPy scalar
        Text is read into the result's format. A float is binary64; a NumPy scalar has the format of its dtype. An int
        must be representable in the result's format.
    format : Format or str, optional
        Format of the result. Default: the operands' common format, or binary32 if no operand has a format. If the
        operands have different formats, the default is the first of binary16, bfloat16, binary32, binary64 and
        binary128 that contains all these formats.
    context : Context or str, optional
        Rounding direction, overflow, NaN and flush rules; or a direction's name (`"RTZ"`). Default: nearest even.

    Returns
    -------
    Derivation
        `.result` (a Datum), `.flags`, `.steps`, `.error`, `.error_ulps`.

    Raises
    ------
    LiteralError
        An operand is not a number.
    FormatError
        Unknown format, or none of the default formats contains the formats of all operands.
    ContextError
        Unknown rounding direction or rule.
    UnsupportedError
        An int is not representable in the result's format.

    Notes
    -----
    IEEE 754-2019 clause 5.4.1 (addition).

    Examples
    --------
    >>> d = add("1.125", "0.12457275390625", "fp16")
    >>> d.result, float(d.error_ulps), d.flags.names
    (Datum(binary16 0x3d00 = 1.25), 0.4375, ['inexact'])
    """
    return _sum("add", a, b, format, context, False)


def subtract(a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return a − b, rounded once, computed as a + (−b); if b is a NaN, its sign is kept.

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
    IEEE 754-2019 clause 5.4.1 (subtraction).

    Examples
    --------
    >>> subtract("1", "0x1.ffcp-1", "fp16").result
    Datum(binary16 0x1000 = 0.0004883)
    """
    return _sum("subtract", a, b, format, context, True)


def multiply(a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Multiply two numbers exactly (the product has at most twice as many digits), and round the product once.

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
    IEEE 754-2019 clause 5.4.1 (multiplication).

    Examples
    --------
    >>> multiply("0.1", "10", "fp16").result
    Datum(binary16 0x3c00 = 1)
    """
    work = begin("multiply", (a, b), format, context)
    if not work.is_finite:
        return _special_product(work)
    product = work.exact(0) * work.exact(1)
    work.steps.append(Combine(Combination.PRODUCT, product))
    return work.finish(product, product)


def divide(a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return a / b, rounded once; a nonzero finite number divided by zero gives ∞ and raises divide-by-zero.

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
    IEEE 754-2019 clauses 5.4.1 (division) and 7.3 (division by zero).

    Examples
    --------
    >>> divide("1", "3", "fp16").error_ulps, divide("1", "0", "fp16").flags.names
    (Fraction(-1, 3), ['divide_by_zero'])
    """
    work = begin("divide", (a, b), format, context)
    if not work.is_finite:
        return _special_quotient(work)
    dividend, divisor = work.exact(0), work.exact(1)
    negative = dividend.negative != divisor.negative
    if not divisor:
        if not dividend:
            return invalid(work, Rule.ZERO_OVER_ZERO)
        code, _ = infinity_code(work.format, work.context, negative)
        return work.special(Rule.DIVISION_BY_ZERO, code, Flags.DIVIDE_BY_ZERO)
    truth = Ratio(negative, dividend.c, divisor.c, dividend.q - divisor.q)
    quotient, sticky = truth.enclose(work.format)
    work.steps.append(Divide(quotient, sticky))
    return work.finish(quotient, truth, sticky)


def remainder(a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return a − n·b, where n is the integer nearest to a/b, ties to even.

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
    IEEE 754-2019 clause 5.3.1. If both operands have the result's format, the result is exact.

    Examples
    --------
    >>> remainder("5", "3", "fp16").result, remainder("-6", "3", "fp16").result
    (Datum(binary16 0xbc00 = -1), Datum(binary16 0x8000 = -0))
    """
    work = begin("remainder", (a, b), format, context)
    if not work.is_finite:
        return _special_remainder(work)
    dividend, divisor = work.exact(0), work.exact(1)
    if not divisor:
        return invalid(work, Rule.REMAINDER_INVALID)
    q = min(dividend.q, divisor.q)
    n, rest = divmod(abs(dividend.scaled(q)), abs(divisor.scaled(q)))
    if 2 * rest > abs(divisor.scaled(q)) or (2 * rest == abs(divisor.scaled(q)) and n & 1):
        n, rest = n + 1, rest - abs(divisor.scaled(q))
    negative = dividend.negative != (rest < 0)
    exact = Exact(negative if rest else dividend.negative, abs(rest), q)
    work.steps.append(Divide(Exact(dividend.negative != divisor.negative, n, 0), rest != 0))
    work.steps.append(Combine(Combination.REMAINDER, exact))
    return work.finish(exact, exact)


def sqrt(a: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return the square root, rounded once; √−0 is −0, and the root of a negative number raises invalid.

    Parameters
    ----------
    a, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 5.4.1 (squareRoot).

    Examples
    --------
    >>> sqrt("2", "fp16").result, sqrt("-0", "fp16").result
    (Datum(binary16 0x3da8 = 1.414), Datum(binary16 0x8000 = -0))
    """
    work = begin("sqrt", (a,), format, context)
    x = work.operands[0]
    if not work.is_finite:
        if counts_as_nan(x):
            return propagate(work, work.operands)
        return invalid(work, Rule.NEGATIVE_ROOT) if x.sign_bit else infinite(work, False)
    radicand = work.exact(0)
    if not radicand:
        work.steps.append(Special(Rule.ZERO_ROOT, Flags.NONE))
        return work.finish(radicand, radicand)
    if radicand.negative:
        return invalid(work, Rule.NEGATIVE_ROOT)
    root, sticky = square_root(radicand, work.format.precision + GUARD_DIGITS + 2)
    work.steps.append(Root(root, sticky))
    return work.finish(root, SquareRoot(radicand) if sticky else root, sticky)


def fma(
    a: object, b: object, c: object, format: Format | str | None = None, context: AnyContext = DEFAULT
) -> Derivation:
    """Return a·b + c rounded once: the product itself is not rounded.

    Parameters
    ----------
    a, b, c, format, context
        As for `add`, with three operands.

    Returns
    -------
    Derivation
        As for `add`.

    Notes
    -----
    IEEE 754-2019 clause 5.4.1 (fusedMultiplyAdd).

    Examples
    --------
    >>> x = "1.0009765625"
    >>> fma(x, x, "-1.001953125", "fp16").result
    Datum(binary16 0x0010 = 9.5e-7)
    """
    work = begin("fma", (a, b, c), format, context)
    if not work.is_finite:
        return _special_fma(work)
    product = work.exact(0) * work.exact(1)
    work.steps.append(Combine(Combination.PRODUCT, product))
    return _added(work, product, work.exact(2))


def _sum(
    operation: str, a: object, b: object, format: Format | str | None, context: AnyContext, negated: bool
) -> Derivation:
    work = begin(operation, (a, b), format, context)
    if not work.is_finite:
        return _special_sum(work, negated)
    left, right = work.exact(0), work.exact(1)
    return _added(work, left, -right if negated else right)


def _added(work: DerivationBuilder, left: Exact, right: Exact) -> Derivation:
    """Align and add two exact terms, determine the sign of a zero sum (6.3), and round."""
    if left.c and right.c:
        shift = left.exponent - right.exponent
        work.steps.append(Align(left, right, abs(shift), int(shift >= 0)))
    total = left + right
    settled = not total.c and left.negative != right.negative
    if settled:
        total = Exact(work.context.rounding is Direction.RTN, 0, total.q)
    work.steps.append(Combine(Combination.SUM, total))
    if settled:
        work.steps.append(Special(Rule.ZERO_SUM, Flags.NONE))
    return work.finish(total, total)


# --- operands that are not all finite -------------------------------------------------------------------------


def _special_sum(work: DerivationBuilder, negated: bool) -> Derivation:
    x, y = work.operands
    if counts_as_nan(x) or counts_as_nan(y):
        return propagate(work, work.operands)
    negative = (y.sign_bit == 1) != negated
    if x.is_infinite:
        if y.is_infinite and negative != (x.sign_bit == 1):
            return invalid(work, Rule.INFINITY_MINUS_INFINITY)
        return infinite(work, x.sign_bit == 1)
    return infinite(work, negative)


def _special_product(work: DerivationBuilder) -> Derivation:
    x, y = work.operands
    if counts_as_nan(x) or counts_as_nan(y):
        return propagate(work, work.operands)
    if _zero_beside_infinity(work):
        return invalid(work, Rule.ZERO_TIMES_INFINITY)
    return infinite(work, x.sign_bit != y.sign_bit)


def _special_quotient(work: DerivationBuilder) -> Derivation:
    x, y = work.operands
    if counts_as_nan(x) or counts_as_nan(y):
        return propagate(work, work.operands)
    negative = x.sign_bit != y.sign_bit
    if x.is_infinite:
        return invalid(work, Rule.INFINITY_OVER_INFINITY) if y.is_infinite else infinite(work, negative)
    zero = Exact(negative, 0, 0)
    work.steps.append(Special(Rule.OVER_INFINITY, Flags.NONE))
    return work.finish(zero, zero)


def _special_remainder(work: DerivationBuilder) -> Derivation:
    x, y = work.operands
    if counts_as_nan(x) or counts_as_nan(y):
        return propagate(work, work.operands)
    if x.is_infinite:
        return invalid(work, Rule.REMAINDER_INVALID)
    dividend = work.exact(0)
    work.steps.append(Special(Rule.REMAINDER_BY_INFINITY, Flags.NONE))
    return work.finish(dividend, dividend)


def _special_fma(work: DerivationBuilder) -> Derivation:
    x, y, z = work.operands
    if counts_as_nan(x) or counts_as_nan(y):
        return propagate(work, work.operands)
    product_is_infinite = x.is_infinite or y.is_infinite
    if product_is_infinite and _zero_beside_infinity(work):
        return _zero_times_infinity_plus(work)
    if counts_as_nan(z):
        return propagate(work, work.operands)
    if not product_is_infinite:
        return infinite(work, bool(z.sign_bit))
    negative = x.sign_bit != y.sign_bit
    if z.is_infinite and negative != z.sign_bit:
        return invalid(work, Rule.INFINITY_MINUS_INFINITY)
    return infinite(work, negative)


def _zero_beside_infinity(work: DerivationBuilder) -> bool:
    """Return whether the first two operands are ∞ and 0, in either order."""
    finite = [index for index in (0, 1) if not work.operands[index].is_infinite]
    return bool(finite) and not work.exact(finite[0])


def _zero_times_infinity_plus(work: DerivationBuilder) -> Derivation:
    """Finish ∞ × 0 + c, which raises invalid unless c is a quiet NaN and `context.fma_invalid` is false (7.2)."""
    addend, context = work.operands[2], work.context
    if not counts_as_nan(addend):
        return invalid(work, Rule.ZERO_TIMES_INFINITY)
    if not context.fma_invalid:
        return propagate(work, work.operands)
    work.steps.append(Special(Rule.ZERO_TIMES_INFINITY, Flags.INVALID))
    if context.nan is NanRule.FIRST:
        done = propagate(work, work.operands)
    else:
        done = propagate(work, (addend,), start=default_nan(work.format, context))
    return done.replace(flags=done.flags | Flags.INVALID)
