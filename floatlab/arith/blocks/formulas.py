"""Evaluates the formulas of scale rules (`formats.scaling`) on single numbers; operations are exact or rounded.

A scale rule computes the scale of a block from the block's values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from functools import reduce

from floatlab.errors import FormatError, UnsupportedError
from floatlab.formats import parse_format
from floatlab.formats.format import Format
from floatlab.formats.formulas import WORKING, Formula, parse_formula
from floatlab.formats.scaling import ScaleChoice
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import Infinity, NotANumber, Ratio
from floatlab.numbers.projection import round_exact
from floatlab.numbers.rounding import DEFAULT, Context

Value = Ratio | Infinity | NotANumber

NAN = NotANumber(False)
_LOG_BITS = 96  # number of fractional bits of a logarithm, far more than any working precision keeps
_GUARD_BITS = 320
_BEYOND = 128


def ratio(x: Fraction | int, negative: bool | None = None) -> Ratio:
    """Return a fraction as a Ratio. If `negative` is given, it is the sign of the result, also for zero.

    >>> from fractions import Fraction
    >>> ratio(Fraction(-1, 3))
    Ratio(negative=True, numerator=1, denominator=3, twos=0, tens=0, truncated=False)
    """
    return Ratio(x < 0 if negative is None else negative, abs(x.numerator), x.denominator)


def value_of(datum: Datum) -> Value:
    """Return the exact value of a datum.

    >>> from floatlab import encode
    >>> value_of(encode("-inf", "fp16"))
    Infinity(negative=True)
    """
    if datum.is_nan:
        return NotANumber(bool(datum.sign_bit))
    if datum.is_infinite:
        return Infinity(bool(datum.sign_bit))
    return ratio(datum.exact.as_fraction(), datum.exact.negative)


def rounded(value: Value, working: Format | None, context: Context = DEFAULT) -> Value:
    """Return a finite value rounded to a format; unchanged if the format is None or the value is not finite.

    >>> from floatlab import parse_format
    >>> rounded(ratio(449), parse_format("e4m3")).as_fraction()
    Fraction(448, 1)
    """
    if working is None or not isinstance(value, Ratio):
        return value
    exact, sticky = value.enclose(working)
    return value_of(Datum(working, round_exact(exact, working, context, sticky).code))


def stored(value: Value, kind: Format, saturates: bool, direction: str = "RNE") -> Datum:
    """Round a rule's result into the format `kind`, in which the result is stored.

    A finite result that overflows becomes ∞. If `saturates` is true or the format has no ∞, such a result becomes the
    largest number instead.

    >>> stored(ratio(1 << 20), parse_format("fp16"), False), stored(ratio(1 << 20), parse_format("e4m3"), False)
    (Datum(binary16 0x7c00 = inf), Datum(e4m3fn 0x7e = 450))
    """
    if isinstance(value, NotANumber):
        return Datum(kind, kind.nan_code)
    if isinstance(value, Infinity):
        top = kind.infinity_magnitude if kind.infinities else kind.largest_magnitude
        return Datum(kind, kind.compose(value.negative and kind.signed, top))
    exact, sticky = value.enclose(kind)
    context = Context(direction, overflow="saturate" if saturates or not kind.infinities else "native")
    return Datum(kind, round_exact(exact, kind, context, sticky).code)


def positive(scale: Datum) -> Datum:
    """Return the scale, or the smallest positive number if the scale is zero, since elements are divided by the scale.

    >>> positive(Datum(parse_format("fp16"), 0))
    Datum(binary16 0x0001 = 6e-8)
    """
    kind = scale.format
    return scale if scale.magnitude or not kind.zero else Datum(kind, kind.compose(False, kind.smallest_magnitude))


def exponent_of(x: Fraction) -> int:
    """Return ⌊log2 x⌋ of x > 0.

    >>> from fractions import Fraction
    >>> exponent_of(Fraction(957)), exponent_of(Fraction(1, 3))
    (9, -2)
    """
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if power_of_two(e) <= x else e - 1


def power_of_two(exponent: int) -> Fraction:
    """Return 2^exponent."""
    return Fraction(1 << exponent) if exponent >= 0 else Fraction(1, 1 << -exponent)


def evaluate(term: Formula, known: Mapping[str, Value], working: Format | None) -> Value:
    """Return the value of a formula; each operation is rounded to `working`, or exact if `working` is None.

    `known` has the values of the variables. Operations inside `fp32(…)` and `fp64(…)` are rounded to fp32 and fp64
    instead of `working`.

    >>> from floatlab.formats.formulas import parse_formula
    >>> evaluate(parse_formula("amax / 6"), {"amax": ratio(3)}, None).as_fraction()
    Fraction(1, 2)
    """
    if term.number is not None:
        return rounded(ratio(term.number), working)
    if not term.arguments:
        if term.name not in known:
            raise FormatError(f"the formula has an unknown name {term.name!r}; it knows {' '.join(known)}")
        return known[term.name]
    if term.name in _CASTS:
        wide = parse_format(term.name)
        return rounded(evaluate(term.arguments[0], known, wide), wide)
    if term.name == WORKING:
        return rounded(evaluate(term.arguments[0], known, working), working)
    values = [evaluate(each, known, working) for each in term.arguments]
    if term.name in _CHOICES:
        return _CHOICES[term.name](*values)
    if any(isinstance(each, NotANumber) for each in values):
        return NAN
    if term.name not in _OPERATIONS:
        raise FormatError(f"a formula has no operation {term.name!r}")
    return rounded(_OPERATIONS[term.name](*values), working)


_CASTS = ("fp32", "fp64")


def _add(a: Value, b: Value) -> Value:
    if isinstance(a, Ratio) and isinstance(b, Ratio):
        return ratio(a.as_fraction() + b.as_fraction(), (a.negative and b.negative) or None)
    if isinstance(a, Infinity) and isinstance(b, Infinity):
        return a if a == b else NAN
    return a if isinstance(a, Infinity) else b


def _negated(a: Value) -> Value:
    if isinstance(a, Ratio):
        return a.replace(negative=not a.negative)
    return Infinity(not a.negative)


def _subtract(a: Value, b: Value) -> Value:
    return _add(a, _negated(b))


def _multiply(a: Value, b: Value) -> Value:
    negative = a.negative != b.negative
    if isinstance(a, Ratio) and isinstance(b, Ratio):
        return ratio(abs(a.as_fraction() * b.as_fraction()), negative)
    if _is_zero(a) or _is_zero(b):
        return NAN
    return Infinity(negative)


def _divide(a: Value, b: Value) -> Value:
    negative = a.negative != b.negative
    if isinstance(b, Infinity):
        return NAN if isinstance(a, Infinity) else ratio(0, negative)
    if isinstance(a, Infinity):
        return Infinity(negative)
    assert isinstance(a, Ratio)
    assert isinstance(b, Ratio)
    if _is_zero(b):
        return NAN if _is_zero(a) else Infinity(negative)
    return ratio(abs(a.as_fraction() / b.as_fraction()), negative)


def _is_zero(a: Value) -> bool:
    return isinstance(a, Ratio) and not a.numerator


def is_less(a: Value, b: Value) -> bool:
    """Return whether a < b. The result is False if a or b is NaN.

    >>> is_less(ratio(1), Infinity(False)), is_less(NAN, ratio(1))
    (True, False)
    """
    if isinstance(a, NotANumber) or isinstance(b, NotANumber) or a == b:
        return False
    if isinstance(a, Infinity):
        return a.negative
    if isinstance(b, Infinity):
        return not b.negative
    return a.as_fraction() < b.as_fraction()


def _minimum(a: Value, b: Value) -> Value:
    return b if is_less(b, a) or isinstance(b, NotANumber) else a


def _maximum(a: Value, b: Value) -> Value:
    return b if is_less(a, b) or isinstance(b, NotANumber) else a


def _log2(a: Value) -> Value:
    if isinstance(a, Infinity):
        return NAN if a.negative else a
    assert isinstance(a, Ratio)
    x = a.as_fraction()
    if x <= 0:
        return NAN if x else Infinity(True)
    e = exponent_of(x)
    digits = x / power_of_two(e)
    c, fraction = (digits.numerator << _GUARD_BITS) // digits.denominator, 0
    if digits == 1:
        return ratio(e)
    for _ in range(_LOG_BITS):
        c = c * c >> _GUARD_BITS
        fraction = 2 * fraction + (c >> _GUARD_BITS + 1)
        c >>= c >> _GUARD_BITS + 1
    # The logarithm is irrational, unless the number is a power of two. A final digit 1 represents the other digits.
    return ratio(e + (2 * fraction + 1) * power_of_two(-_LOG_BITS - 1))


def _exp2(a: Value) -> Value:
    if isinstance(a, Infinity):
        return ratio(0) if a.negative else a
    assert isinstance(a, Ratio)
    exponent = a.as_fraction()
    if exponent.denominator != 1:
        raise UnsupportedError("the argument of exp2 must be an integer")
    return ratio(power_of_two(int(exponent)))


def _floor(a: Value) -> Value:
    return ratio(a.as_fraction().__floor__()) if isinstance(a, Ratio) else a


def _ceil(a: Value) -> Value:
    return ratio(a.as_fraction().__ceil__()) if isinstance(a, Ratio) else a


def _exponent(a: Value) -> Value:
    """Return the exponent of the leading digit. Return −∞ for zero, and 128 for infinities.

    Libraries read the exponent from the bits of a binary32 number. The bits of ∞ give 255 − 127 = 128.
    """
    if isinstance(a, Infinity):
        return ratio(_BEYOND)
    assert isinstance(a, Ratio)
    return ratio(exponent_of(abs(a.as_fraction()))) if a.numerator else Infinity(True)


def _rounded_to(a: Value, count: Value) -> Value:
    """Return a positive number rounded to `count` binary digits, ties up; return 0, ∞ and NaN unchanged."""
    if not isinstance(a, Ratio) or not isinstance(count, Ratio) or not a.numerator:
        return a
    x = a.as_fraction()
    unit = power_of_two(exponent_of(x) - int(count.as_fraction()) + 1)
    return ratio((x / unit + Fraction(1, 2)).__floor__() * unit)


def _modulo(a: Value, b: Value) -> Value:
    if not isinstance(a, Ratio) or not isinstance(b, Ratio):
        return a
    return ratio(a.as_fraction() % b.as_fraction())


def _nonzero(a: Value, otherwise: Value) -> Value:
    return otherwise if _is_zero(a) else a


def _finite(a: Value, otherwise: Value) -> Value:
    return a if isinstance(a, Ratio) else otherwise


def _less(a: Value, b: Value, then: Value, otherwise: Value) -> Value:
    return then if is_less(a, b) else otherwise


def _at_most(a: Value, b: Value, then: Value, otherwise: Value) -> Value:
    return then if a == b or is_less(a, b) else otherwise


_OPERATIONS: dict[str, Callable[..., Value]] = {
    "+": _add,
    "-": _subtract,
    "*": _multiply,
    "/": _divide,
    "log2": _log2,
    "exp2": _exp2,
    "floor": _floor,
    "ceil": _ceil,
    "exponent": _exponent,
    "rounded": _rounded_to,
    "mod": _modulo,
}
# These functions return one of their arguments without rounding it.
_CHOICES: dict[str, Callable[..., Value]] = {
    "min": _minimum,
    "max": _maximum,
    "nonzero": _nonzero,
    "finite": _finite,
    "less": _less,
    "at_most": _at_most,
}


_SQUARE, _SUM = parse_formula("e * e"), parse_formula("a + b")


def measured(choice: ScaleChoice, errors: list[Value], working: Format | None, columns: int) -> Value:
    """Return the error of a block, computed from the errors of its elements as `ScaleChoice` describes.

    `columns` is the length of the block's rows. Every operation is rounded to `working`, or exact if `working` is None.

    >>> measured(ScaleChoice(("1",), "q - x", "absolute"), [ratio(-1), ratio(2)], None, 2).as_fraction()
    Fraction(3, 1)
    """

    def add(a: Value, b: Value) -> Value:
        return evaluate(_SUM, {"a": a, "b": b}, working)

    if choice.measure == "square":
        sizes = [evaluate(_SQUARE, {"e": error}, working) for error in errors]
    else:
        sizes = [magnitude(error) for error in errors]
    if choice.measure == "largest":
        return reduce(_maximum, sizes)
    rows = [reduce(add, sizes[first : first + columns]) for first in range(0, len(sizes), columns)]
    while len(rows) > 1:
        half = (len(rows) + 1) // 2
        rows = [add(*pair) for pair in zip(rows, rows[half:], strict=False)] + rows[len(rows) - half : half]
    return rows[0]


def magnitude(value: Value) -> Value:
    """Return a value without its sign.

    >>> magnitude(Infinity(True))
    Infinity(negative=False)
    """
    return value.replace(negative=False)
