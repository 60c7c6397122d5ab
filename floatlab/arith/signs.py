"""Operations on the sign, on the exponent and on the last place (IEEE 754-2019 clauses 5.3.1, 5.3.3 and 5.5.1)."""

from __future__ import annotations

from floatlab.arith.operands import DerivationBuilder, begin, counts_as_nan, in_own_format
from floatlab.arith.specials import infinite, propagate
from floatlab.errors import FormatError, LiteralError, quoted
from floatlab.formats import Format
from floatlab.numbers.datum import Datum
from floatlab.numbers.derivation import Combination, Combine, Derivation, Rule, Special
from floatlab.numbers.exact import Exact, Ratio
from floatlab.numbers.projection import infinity_code
from floatlab.numbers.reading import parse_literal
from floatlab.numbers.rounding import DEFAULT, AnyContext, Flags
from floatlab.numbers.scalars import whole_number

MOST_SCALED = 1 << 20  # larger than the exponent range of any format


def negate(a: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return −a: the sign is changed, also for zeros and NaNs.

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
    IEEE 754-2019 clause 5.5.1 (negate). In formats whose NaN has the code of −0, zero and NaN stay unchanged. If the
    operand has the result's format, and this format is signed, no flag is raised. Otherwise the result is also rounded,
    which may raise flags.

    Examples
    --------
    >>> negate("0", "fp16").result, negate("nan", "fp16").result.sign_bit
    (Datum(binary16 0x8000 = -0), 1)
    """
    work = begin("negate", (a,), format, context)
    return _with_sign(work, not _sign(work.operands[0]))


def abs(a: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return |a|: the sign is cleared, also for zeros and NaNs.

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
    IEEE 754-2019 clause 5.5.1 (abs). If the operand has the result's format, and this format is signed, no flag is
    raised. Otherwise the result is also rounded, which may raise flags.

    Examples
    --------
    >>> abs("-2.5", "fp16").result
    Datum(binary16 0x4100 = 2.5)
    """
    return _with_sign(begin("abs", (a,), format, context), False)


def copy_sign(a: object, b: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return `a` with the sign of `b`. `a` and `b` may be zeros or NaNs.

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
    IEEE 754-2019 clause 5.5.1 (copySign). If `a` has the result's format, and this format is signed, no flag is raised.
    Otherwise the result is also rounded, which may raise flags.

    Examples
    --------
    >>> copy_sign("3", "-0", "fp16").result
    Datum(binary16 0xc200 = -3)
    """
    work = begin("copy_sign", (a, b), format, context)
    return _with_sign(work, _sign(work.operands[1]))


def scale_b(a: object, n: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return a·2^n, rounded once.

    Parameters
    ----------
    a, format, context
        As for `add`.
    n : int, str, Datum or Derivation
        An integer from −2^20 to 2^20, as an int, text or a floating-point number.

    Returns
    -------
    Derivation
        As for `add`; the second of its `.operands` is n.

    Raises
    ------
    LiteralError
        n is not an integer, or it is out of range.

    Notes
    -----
    IEEE 754-2019 clause 5.3.3 (scaleB).

    Examples
    --------
    >>> scale_b("1.5", 4, "fp16").result, scale_b("1.5", -25, "fp16").flags.names
    (Datum(binary16 0x4e00 = 24), ['underflow', 'inexact'])
    """
    work, power = begin("scale_b", (a,), format, context), _power(n)
    x = work.operands[0]
    if counts_as_nan(x):
        done = propagate(work, work.operands)
    elif x.is_infinite:
        done = infinite(work, bool(x.sign_bit))
    else:
        value = work.exact(0)
        scaled = Exact(value.negative, value.c, value.q + power)
        work.steps.append(Combine(Combination.SCALED, scaled))
        done = work.finish(scaled, scaled)
    literals = (*done.literals, None) if done.literals else ()
    return done.replace(operands=(*done.operands, Ratio(power < 0, max(power, -power))), literals=literals)


def log_b(a: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return the exponent of the leading nonzero digit as a number of the format, also for subnormal numbers.

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
    IEEE 754-2019 clause 5.3.3 (logB): ±∞ gives +∞; ±0 gives −∞ and raises divide-by-zero. If the format
    has few digits and cannot represent the exponent, the exponent is rounded.

    Examples
    --------
    >>> log_b("0.1", "fp16").result, log_b("0x1p-24", "fp16").result
    (Datum(binary16 0xc400 = -4), Datum(binary16 0xce00 = -24))
    """
    work = begin("log_b", (a,), format, context)
    x = work.operands[0]
    if counts_as_nan(x):
        return propagate(work, work.operands)
    if x.is_infinite:
        return infinite(work, False)
    value = work.exact(0)
    if not value:
        code, _ = infinity_code(work.format, work.context, True)
        return work.special(Rule.LOGARITHM_OF_ZERO, code, Flags.DIVIDE_BY_ZERO)
    exponent = Exact.from_integer(value.exponent)
    work.steps.append(Combine(Combination.EXPONENT, exponent))
    return work.finish(exponent, exponent)


def next_up(a: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return the least number of the format that is greater than `a`. If `a` is the greatest, return `a`.

    Parameters
    ----------
    a, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `add`; the only flag is invalid, for a signaling NaN or an unsupported code.

    Raises
    ------
    FormatError
        The operand has another format than the result.

    Notes
    -----
    IEEE 754-2019 clause 5.3.1 (nextUp): both zeros give the smallest positive number, and the negative number nearest
    to zero gives −0 (0 in a format without −0).

    Examples
    --------
    >>> next_up("1", "fp16").result, next_up("-0", "fp16").result
    (Datum(binary16 0x3c01 = 1.001), Datum(binary16 0x0001 = 6e-8))
    """
    return _neighbour(begin("next_up", (a,), format, context), up=True)


def next_down(a: object, format: Format | str | None = None, context: AnyContext = DEFAULT) -> Derivation:
    """Return the greatest number of the format that is less than `a`. If `a` is the least, return `a`.

    Parameters
    ----------
    a, format, context
        As for `add`.

    Returns
    -------
    Derivation
        As for `next_up`.

    Raises
    ------
    FormatError
        The operand has another format than the result.

    Notes
    -----
    IEEE 754-2019 clause 5.3.1 (nextDown).

    Examples
    --------
    >>> next_down("inf", "fp16").result
    Datum(binary16 0x7bff = 65500)
    """
    return _neighbour(begin("next_down", (a,), format, context), up=False)


def _sign(datum: Datum) -> bool:
    """Return the sign bit. In fnuz formats, the NaN has the code of −0; its top bit is not a sign, so return False."""
    return bool(datum.sign_bit) and not (datum.is_nan and datum.format.nan_in_place_of_negative_zero)


def _with_sign(work: DerivationBuilder, negative: bool) -> Derivation:
    x, value = work.operands[0], work.values[0]
    work.steps.append(Special(Rule.SIGN_BIT, Flags.NONE))
    if x.format == work.format and x.format.signed:
        exact = None if value is None else Exact(negative, value.c, value.q)
        return work.close(_code_with_sign(x, negative), Flags.NONE, exact)
    if value is not None:
        exact = Exact(negative, value.c, value.q)
        return work.finish(exact, exact)
    if not counts_as_nan(x):
        return infinite(work, negative)
    return propagate(work, (Datum(x.format, _code_with_sign(x, negative)) if x.format.signed else x,))


def _code_with_sign(x: Datum, negative: bool) -> int:
    """Return the code of x with this sign bit; if the NaN has the code of −0, NaN and 0 are returned unchanged."""
    sign = 1 << (x.format.width - 1)
    code = (x.code & (sign - 1)) | sign * negative
    if x.format.nan_in_place_of_negative_zero and sign in (code, x.code):  # x is 0, or the NaN with the code of −0
        return x.code if x.is_nan else 0
    return code


def _power(n: object) -> int:
    """Return the argument n of `scale_b` as an int. Raises LiteralError unless it is an integer in range."""
    given = in_own_format(n)
    whole = whole_number(given)
    if isinstance(given, str):
        value = parse_literal(given).value
        if isinstance(value, Ratio) and value.is_short(1 << 12) and value.as_fraction().denominator == 1:
            whole = int(value.as_fraction())
    elif isinstance(given, Datum) and given.is_finite and given.exact.as_fraction().denominator == 1:
        whole = int(given.exact.as_fraction())
    if whole is None or not -MOST_SCALED <= whole <= MOST_SCALED:
        raise LiteralError(f"the power of scaleB must be an integer from −2^20 to 2^20, not {quoted(str(n))}")
    return whole


def _neighbour(work: DerivationBuilder, up: bool) -> Derivation:
    x = work.operands[0]
    if x.format != work.format:
        raise FormatError(f"a neighbour must be a number of the operand's own format, {x.format.name}: leave out -f")
    if counts_as_nan(x):
        return propagate(work, work.operands)
    if not x.is_infinite and not work.exact(0):  # zero, or a subnormal number that is read as zero
        x = Datum(x.format, x.format.compose(bool(x.sign_bit) and x.format.negative_zero, 0))
    found = x.next_up if up else x.next_down
    work.steps.append(Special(Rule.NEIGHBOUR, Flags.NONE))
    return work.close(found.code, Flags.NONE, found.finite_value)
