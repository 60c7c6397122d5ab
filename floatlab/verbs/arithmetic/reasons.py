"""The reason for each step of a derivation, in sentences that contain its numbers."""

from __future__ import annotations

from fractions import Fraction
from math import gcd

from floatlab.arith import readings
from floatlab.formats import Format
from floatlab.numbers import Datum, Derivation, Direction, Exact, Flags
from floatlab.numbers import derivation as steps
from floatlab.numbers.derivation import Combination, Preference, Rule, Step
from floatlab.numbers.printing import rounded_decimal
from floatlab.numbers.rounding import IN_WORDS
from floatlab.page.model import Line, line
from floatlab.page.words import abbreviated, bracketed, brief, counted, listed
from floatlab.verbs.arithmetic.outcomes import capital, encoding_reason, integral_reason, rounding_reason

_LARGE_FACTOR = 1_000_000  # factors from this size on are not written out
_LEGIBLE = 24  # with more digits than this, a difference is hard to see
_BEYOND = (
    "It has more binary digits than the rounding needs. For the remaining digits, it matters only whether any of them "
    "is nonzero."
)
_STICKY = "For the following digits, it matters only whether any of them is nonzero: that is the sticky bit."

_RULES = {
    Rule.INFINITY: "∞ is not rounded: it stays ∞ if the format has one.",
    Rule.NAN: "A NaN is not rounded: it stays a NaN, with as much of its payload as the format can hold.",
    Rule.NAN_OPERAND: "An operation on a NaN gives a NaN.",
    Rule.SIGNALING_OPERAND: "A signaling NaN raises invalid at its first use, and the result is a quiet NaN.",
    Rule.UNSUPPORTED_OPERAND: "Its integer bit contradicts its exponent, so the code does not represent a number.",
    Rule.INFINITY_MINUS_INFINITY: (
        "The sum of two quantities that grow without bound, one positive and one negative, can have any limit."
    ),
    Rule.ZERO_TIMES_INFINITY: "A factor that tends to zero times a factor that tends to ∞ can have any limit.",
    Rule.ZERO_OVER_ZERO: "Every number times 0 is 0, so every number could be the quotient.",
    Rule.INFINITY_OVER_INFINITY: "Both grow without bound, and their quotient can have any limit.",
    Rule.REMAINDER_INVALID: "No multiple of b is nearest to a, so there is nothing to subtract.",
    Rule.NEGATIVE_ROOT: "The square of a real number is never negative.",
    Rule.DIVISION_BY_ZERO: (
        "As the divisor tends to zero, the quotient grows without bound; the signs of both give its sign. The "
        "result is exact, so the flag is divide-by-zero, not inexact."
    ),
    Rule.INFINITE_RESULT: "Operations on infinity are exact: the result is ∞, and no digit is lost.",
    Rule.OVER_INFINITY: "As the divisor grows without bound, the quotient tends to zero.",
    Rule.REMAINDER_BY_INFINITY: "The nearest multiple of ∞ is 0 × ∞, which counts as 0 here: all of a remains.",
    Rule.ZERO_ROOT: "The root of zero is zero with the same sign.",
    Rule.LOGARITHM_OF_ZERO: "The nearer a number is to zero, the lower is its exponent, without a limit. The result is "
    "exact, so the flag is divide-by-zero, not inexact.",
    Rule.SIGN_BIT: "The other bits are copied: nothing is rounded, and even a signaling NaN stays as it is.",
    Rule.NEIGHBOUR: "Codes are in the order of their values, so the neighbour has the next code. From either zero, one "
    "step leads to the smallest positive or negative number.",
}

_CHOSEN = {
    Preference.VALUE: "The values are compared, exactly.",
    Preference.MAGNITUDE: "The values are compared without their signs, exactly.",
    Preference.ZERO: "The values are equal; here, unlike in comparisons, −0 counts as less than +0.",
    Preference.NUMBER: "A number is chosen rather than a NaN; a signaling NaN still raises invalid.",
    Preference.SAME: "The values and their signs are equal, so either would do.",
}


def reason(derivation: Derivation, index: int) -> Line:
    """Explain the step at this index.

    >>> from floatlab.arith import add
    >>> from floatlab.page.model import text_of
    >>> d = add("1.125", "0.12457275390625", "fp16")
    >>> print(text_of(reason(d, 4)).partition(". ")[2])
    That is more than half, so the last kept digit goes up by one.
    """
    return line(" ".join(filter(None, _words(derivation.steps[index], derivation, index))))


def _words(step: Step, derivation: Derivation, index: int) -> list[str]:
    fmt, context = derivation.result.format, derivation.context
    match step:
        case steps.Read(_, True):
            return [_BEYOND]
        case steps.Read():
            return ["Its binary expansion is finite, so the exact value is rounded."]
        case steps.Decode():
            return _decode(derivation)
        case steps.Promote():
            narrow = dict.fromkeys(
                each.datum.format.name for each in derivation.steps if isinstance(each, steps.Promote)
            )
            return [f"{fmt.name} contains every number of {listed([*narrow])}, so the conversion is exact."]
        case steps.Align():
            return _align(step, derivation)
        case steps.Combine(Combination.SUM, total):
            return _sum(total, derivation, index)
        case steps.Combine(Combination.PRODUCT, product):
            return _product(product, derivation)
        case steps.Combine(Combination.REMAINDER, left):
            return _remainder(left, derivation, index)
        case steps.Combine(Combination.SCALED, scaled):
            return [
                f"Only the exponent changes, so the leading digit is at 2^{scaled.exponent} now."
                if scaled.c
                else "Zero times a power of two is zero."
            ]
        case steps.Combine(Combination.EXPONENT, exponent):
            return [f"The leading digit is at 2^{brief(exponent)}; subnormal numbers follow the same rule."]
        case steps.Combine(Combination.TOTAL, _):
            return ["Every product of an element and its scale is exact, and so is their sum."]
        case steps.Choose(_, why):
            return [_CHOSEN[why]]
        case steps.Combine(_, integer):
            if derivation.rounded is None or derivation.rounded.flags:
                return [f"The integer is then rounded to {fmt.name}, which cannot represent it."]
            return [f"{fmt.name} can represent the integer {brief(integer)}, so the next rounding is exact."]
        case steps.Divide():
            return _divide(step, derivation)
        case steps.Root(root, sticky):
            radicand = _data(derivation)[0].exact.exponent
            halved = (
                f"The exponent of the root is half the operand's exponent, rounded down: {radicand} gives "
                f"{root.exponent}."
            )
            end = f"The root has more digits. {_STICKY}" if sticky else f"The root is exact: {brief(root)}."
            return [halved, end]
        case steps.Special():
            return _special(step, derivation)
        case steps.Round(format, rounded):
            return rounding_reason(rounded, format, context)
        case steps.Integral(rounded):
            return integral_reason(rounded, context)
        case steps.Encode():
            return encoding_reason(step, derivation, index)
    return []


def _data(derivation: Derivation) -> tuple[Datum, ...]:
    return tuple(each for each in derivation.operands if isinstance(each, Datum))


def _compare_length(digits: int, noun: str, fmt: Format) -> str:
    """Compare the length of an exact result with the precision of the format."""
    room = f"{fmt.name} keeps {counted(fmt.precision, 'digit')}"
    return f"The exact {noun} has {counted(digits, 'binary digit')}; {room}{' at most' * (digits <= fmt.precision)}."


def _decode(derivation: Derivation) -> list[str]:
    data, fmt = _data(derivation), derivation.result.format
    if not data:
        return ["The operand is a code: its bits determine the number."]
    whose = "each operand's bits are" if len(data) > 1 else "the operand's bits are"
    words = [f"Nothing is computed yet: {whose} split into sign, exponent and mantissa."]
    for name, datum, reading in zip("abc", data, readings(data, derivation.literals, derivation.context), strict=False):
        literal = derivation.literals[("abc").index(name)] if derivation.literals else None
        if reading is None or not reading.flags or literal is None:
            continue
        typed, own = abbreviated(literal.strip(), 30), datum.format.name
        if Flags.OVERFLOW in reading.flags:
            words.append(f"{name} was typed as {typed}, too large for {own}.")
        elif Flags.INVALID in reading.flags:
            words.append(f"{name} was typed as {typed}, which {own} cannot represent.")
        elif datum.is_finite:
            words.append(
                f"{name} was rounded when it was read: {own} cannot represent {typed}, and "
                f"{_distinct_number(reading)} is the nearest number."
            )
    if any(each.format != fmt for each in data) and not any(
        isinstance(each, steps.Promote) for each in derivation.steps
    ):
        words.append(f"The result is rounded once, to {fmt.name}.")
    return words


def _distinct_number(reading: Derivation) -> str:
    """Return the number that was read, with enough digits to show that it differs from the typed number.

    If this takes more than `_LEGIBLE` digits, return fewer digits, and the difference between the two numbers.
    """
    datum, ulps = reading.result, reading.approximate_error_ulps
    text = brief(datum)
    if not ulps or not text.startswith("≈ ") or datum.symbol:
        return text
    number, error = datum.exact.as_fraction(), ulps * datum.ulp.as_fraction()
    digits = len(str(int(abs(number / error)))) + 2
    if abs(Fraction(text.removeprefix("≈ ")) - (number - error)) >= abs(error) / 100:
        return text
    if digits > _LEGIBLE:
        return f"{text} ({rounded_decimal(abs(error), 2)} {'more' if error > 0 else 'less'})"
    return f"≈ {rounded_decimal(number, digits)}"


def _align(step: steps.Align, derivation: Derivation) -> list[str]:
    names = _terms(derivation)
    top, low = (step.left, step.right) if step.moved else (step.right, step.left)
    big, small = names if step.moved else names[::-1]
    first = "Subtracting b is adding −b." * (derivation.operation == "subtract")
    if not step.shift:
        both = f"the leading digits of {names[0]} and {names[1]} are both at 2^{top.exponent}"
        return [first, f"{capital(both)}, so the digits are aligned already."]
    moves = (
        f"the leading digit of {big} is at 2^{top.exponent}, that of {small} at 2^{low.exponent}, so {small} is "
        "shifted right by"
    )
    words = [first, "Digits can be added if they belong to the same power of two."]
    words.append(f"{capital(moves)} {top.exponent} − {bracketed(low.exponent)} = {counted(step.shift, 'place')}.")
    if step.shift > derivation.rounding_format.precision + 1:
        words.append("All its digits are then past the last digit kept, but they can still decide the rounding.")
    return words


def _terms(derivation: Derivation) -> tuple[str, str]:
    fused = {"fma": "the product", "multiply_then_add": "the rounded product"}
    if derivation.operation in fused:
        return fused[derivation.operation], "c"
    return "a", "−b" if derivation.operation == "subtract" else "b"


def _sum(x: Exact, derivation: Derivation, index: int) -> list[str]:
    aligned, fmt = derivation.steps[index - 1], derivation.rounding_format
    settled = next((each for each in derivation.steps[index + 1 :] if isinstance(each, steps.Special)), None)
    if not isinstance(aligned, steps.Align):
        if x.c:
            return ["One term is zero, so the sum is the other term."]
        signs = "with opposite signs; a rule gives the sign" if settled else "with the same sign, and so is the sum"
        return [f"Both terms are zero, {signs}."]
    if not x.c:
        return ["The terms have equal magnitudes and opposite signs: the sum is exactly zero."]
    moved = max(aligned.left.exponent, aligned.right.exponent) - x.exponent
    if aligned.left.negative == aligned.right.negative:
        words = [
            f"Both terms are {'negative' if x.negative else 'positive'}, so the digits are added column by column."
        ]
        if moved:
            words.append(f"A carry out of the first column moves the leading digit of the sum up to 2^{x.exponent}.")
    else:
        words = ["The signs differ, so the smaller magnitude is subtracted from the larger."]
        if moved:
            digits = "leading digit cancels" if moved == 1 else f"{moved} leading digits cancel"
            words.append(
                f"{'One' if moved == 1 else 'The'} {digits}, and the leading digit of the sum is at 2^{x.exponent}."
            )
    return [*words, _compare_length(x.normalized().c.bit_length(), "sum", fmt)]


def _product(x: Exact, derivation: Derivation) -> list[str]:
    a, b = _data(derivation)[:2]
    if not x.c:
        return [f"A factor is zero, and so is the product{'; the signs differ, so the product is −0' * x.negative}."]
    p, q = a.exact.exponent, b.exact.exponent
    words = f"The exponents are added, {p} + {bracketed(q)} = {p + q}, and the significands are multiplied"
    if x.exponent > p + q:
        words += f"; their product is 2 or more, so the leading digit is at 2^{x.exponent}"
    signs = "The signs differ, so the product is negative." * x.negative
    return [f"{words}.", signs, _compare_length(x.normalized().c.bit_length(), "product", derivation.rounding_format)]


def _remainder(x: Exact, derivation: Derivation, index: int) -> list[str]:
    a, b = (each.exact for each in _data(derivation)[:2])
    before = derivation.steps[index - 1]
    n = before.quotient if isinstance(before, steps.Divide) else Exact(False, 0, 0)
    if not n.c:
        return ["0 × b is subtracted, so the remainder is a."]
    left = f"the remainder is {brief(x)}" if x.c else "the remainder is zero, with the sign of a"
    parts = [brief(each) for each in (a, n, b)]
    if any("≈" in each for each in parts):
        return [f"a − n × b is computed exactly: {left}."]
    parts = [bracketed(each) for each in parts]
    return [f"n × b = {parts[1]} × {parts[2]} is subtracted exactly from a = {parts[0]}: {left}."]


def _divide(step: steps.Divide, derivation: Derivation) -> list[str]:
    n = step.quotient
    if derivation.operation == "remainder":
        if not step.sticky:
            return ["a is a multiple of b."]
        return [
            "The remainder is the distance of a from the nearest multiple n × b; if two are equally near, n is even."
        ]
    if not n.c:
        return ["Zero divided by a number is zero."]
    if not step.sticky:
        return [f"The division ends: {counted(n.normalized().c.bit_length(), 'binary digit')}, without a remainder."]
    factor = _odd_factor(*(each.exact.c for each in _data(derivation)[:2]))
    if factor == 1:
        return ["The quotient has more digits than are computed.", _STICKY]
    why = f"the odd factor {factor}" if factor < _LARGE_FACTOR else "an odd factor"
    return [f"In lowest terms the denominator has {why}, so the binary expansion of the quotient never ends.", _STICKY]


def _odd_factor(dividend: int, divisor: int) -> int:
    """Reduce `dividend` / `divisor` to lowest terms, and return the odd factor of the denominator.

    If this factor is 1, the binary expansion terminates.
    """
    least = divisor // gcd(dividend, divisor)
    return least // (least & -least)


def _special(step: steps.Special, derivation: Derivation) -> list[str]:
    if step.rule is Rule.FLUSHED_INPUT:
        formats = [each.format for each in _data(derivation) if each.is_subnormal]
        fmt = formats[0] if formats else derivation.result.format
        low = f"Numbers of {fmt.name} below 2^{fmt.emin} are subnormal"
        return [f"{low}; here they are replaced by zero, as some hardware does to save time."]
    if step.rule is Rule.ZERO_SUM:
        direction = derivation.context.rounding
        sign = "−0" if direction is Direction.RTN else "+0"
        return [
            (
                f"The exact sum is zero; when rounding {IN_WORDS[direction]}, its sign is {sign[0]}, so the "
                f"result is {sign}."
            )
        ]
    quiet = step.rule is Rule.NAN_OPERAND and not derivation.flags
    return [_who(derivation), _RULES[step.rule], "The operand is quiet, so no flag is raised." * quiet]


def _who(derivation: Derivation) -> str:
    """Name the operands that are NaN, infinite or zero."""
    if derivation.operation == "multiply_then_add":
        return ""  # the special value may be the product
    words = [f"{name} is {_kind(each)}" for name, each in zip("abc", _data(derivation), strict=False) if _kind(each)]
    return f"{listed(words)}." if words else ""


def _kind(datum: Datum) -> str:
    if datum.is_nan:
        return "a signaling NaN" if datum.is_signaling else "a NaN"
    if datum.is_infinite:
        return "−∞" if datum.sign_bit else "∞"
    if not datum.is_finite:
        return "not a number"
    return "" if datum.exact else "zero"
