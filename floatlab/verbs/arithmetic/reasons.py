"""The reason for each step of a derivation, in sentences that contain its numbers."""

from __future__ import annotations

from math import gcd

from floatlab.arith import readings
from floatlab.formats import Format
from floatlab.numbers import Datum, Derivation, Direction, Exact, Flags, steps
from floatlab.numbers.rounding import IN_WORDS
from floatlab.numbers.steps import Combination, Preference, Rule, Step
from floatlab.page.model import Line, line
from floatlab.page.words import abbreviated, bracketed, brief, counted, listed
from floatlab.verbs.arithmetic.outcomes import capital, encoding_reason, integral_reason, rounding_reason

_GLANCED = 1_000_000  # factors below this are written out
_BEYOND = "Its binary digits go on past those that rounding looks at; of the rest it only counts that it is there."
_STICKY = "Of what follows, rounding needs to know only that it is not zero: that is the sticky bit."

_RULES = {
    Rule.INFINITY: "∞ is not a number that could be rounded: it stays ∞ where the format has one.",
    Rule.NAN: "A NaN has no value that could be rounded: it stays a NaN, with what room there is for its payload.",
    Rule.NAN_OPERAND: "What is computed from no number is no number.",
    Rule.SIGNALING_OPERAND: "A signaling NaN is there to be noticed: its first use raises invalid, and a quiet NaN "
    "goes on in its place.",
    Rule.UNSUPPORTED_OPERAND: "Its integer bit contradicts its exponent, so that it stands for nothing.",
    Rule.INFINITY_MINUS_INFINITY: "Two sums that grow without bound, one up and one down, may end anywhere.",
    Rule.ZERO_TIMES_INFINITY: "One factor asks for zero and the other for ∞: any answer could be defended, so none is.",
    Rule.ZERO_OVER_ZERO: "Every number times 0 is 0, so every number could be the quotient.",
    Rule.INFINITY_OVER_INFINITY: "Both grow without bound, and nothing says which one faster.",
    Rule.REMAINDER_INVALID: "No whole multiple of b comes nearest to a, so there is nothing to subtract.",
    Rule.NEGATIVE_ROOT: "No real number times itself is negative.",
    Rule.DIVISION_BY_ZERO: "Quotients by ever smaller numbers grow past every bound; the two signs together give "
    "the sign. The answer is exact, so it has a flag of its own and is not inexact.",
    Rule.INFINITE_RESULT: "Beside ∞ every finite number counts for nothing, and no digit is lost.",
    Rule.OVER_INFINITY: "Quotients by ever larger numbers come as close to zero as one likes.",
    Rule.REMAINDER_BY_INFINITY: "The nearest multiple of ∞ is 0 × ∞, taken as nothing: all of a remains.",
    Rule.ZERO_ROOT: "Zero is its own square, and it keeps its sign.",
    Rule.LOGARITHM_OF_ZERO: "The nearer to zero, the lower the exponent, without end. The answer is exact, so it has a "
    "flag of its own and is not inexact.",
    Rule.SIGN_BIT: "The other bits are copied: nothing is rounded, and even a signaling NaN stays as it is.",
    Rule.NEIGHBOUR: "Codes count up with their values, so the neighbour has the next code; zero has one step to each "
    "side.",
}

_CHOSEN = {
    Preference.VALUE: "The values are compared, exactly.",
    Preference.MAGNITUDE: "The values are compared without their signs, exactly.",
    Preference.ZERO: "The values are equal; here, unlike in comparisons, −0 counts as less than +0.",
    Preference.NUMBER: "A NaN is passed over where there is a number; a signaling one still raises invalid.",
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
            return ["It is a binary number of finite length, so all of it is there to be rounded."]
        case steps.Decode():
            return _decode(derivation)
        case steps.Promote():
            narrow = dict.fromkeys(
                each.datum.format.name for each in derivation.steps if isinstance(each, steps.Promote)
            )
            return [f"{fmt.name} has every number of {listed([*narrow])}, so the move there changes no value."]
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
                f"Only the exponent changes, so the number leads at 2^{scaled.exponent} now."
                if scaled.c
                else "Zero times a power of two is zero."
            ]
        case steps.Combine(Combination.EXPONENT, exponent):
            return [f"The leading digit stands at 2^{brief(exponent)}; that of a subnormal number counts as it is."]
        case steps.Combine(Combination.TOTAL, _):
            return ["Every product of an element and its scale is exact, and so is their sum."]
        case steps.Choose(_, why):
            return [_CHOSEN[why]]
        case steps.Combine(_, integer):
            if derivation.rounded is None or derivation.rounded.flags:
                return [f"The integer goes on to be rounded into {fmt.name}, which does not hold it as it is."]
            return [f"The integer {brief(integer)} is a number of {fmt.name} already: what follows loses nothing."]
        case steps.Divide():
            return _divide(step, derivation)
        case steps.Root(root, sticky):
            radicand = _data(derivation)[0].exact.exponent
            halved = f"A root's exponent is half the number's, rounded down: {radicand} gives {root.exponent}."
            end = (
                f"The digits go on. {_STICKY}" if sticky else f"The root is exact: {brief(root)}, and no digit follows."
            )
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


def _room(digits: int, noun: str, fmt: Format) -> str:
    """Compare the length of an exact result with the precision of the format."""
    room = f"{fmt.name} keeps {counted(fmt.precision, 'digit')}"
    return f"The exact {noun} takes {counted(digits, 'binary digit')}; {room}{' at most' * (digits <= fmt.precision)}."


def _decode(derivation: Derivation) -> list[str]:
    data, fmt = _data(derivation), derivation.result.format
    if not data:
        return ["The code is taken as it is: its bits say what the number is."]
    whose = "each operand's bits are" if len(data) > 1 else "the operand's bits are"
    words = [f"Nothing is computed yet: {whose} taken apart into sign, exponent and mantissa."]
    for name, datum, reading in zip("abc", data, readings(data, derivation.literals, derivation.context), strict=False):
        literal = derivation.literals[("abc").index(name)] if derivation.literals else None
        if reading is None or not reading.flags or literal is None:
            continue
        typed, own = abbreviated(literal.strip(), 30), datum.format.name
        if Flags.OVERFLOW in reading.flags:
            words.append(f"{name} was typed as {typed}, too large for {own}.")
        elif Flags.INVALID in reading.flags:
            words.append(f"{name} was typed as {typed}, for which {own} has no code.")
        elif datum.is_finite:
            words.append(f"{name} was rounded on the way in: {own} has no {typed}, and {brief(datum)} is the nearest.")
    if any(each.format != fmt for each in data) and not any(
        isinstance(each, steps.Promote) for each in derivation.steps
    ):
        words.append(f"The result goes into {fmt.name}, rounded once.")
    return words


def _align(step: steps.Align, derivation: Derivation) -> list[str]:
    names = _terms(derivation)
    top, low = (step.left, step.right) if step.moved else (step.right, step.left)
    big, small = names if step.moved else names[::-1]
    first = "Subtracting b is adding −b." * (derivation.operation == "subtract")
    if not step.shift:
        both = f"{names[0]} and {names[1]} both lead at 2^{top.exponent}"
        return [first, f"{capital(both)}, so their digits already stand one below the other."]
    moves = f"{big} leads at 2^{top.exponent} and {small} at 2^{low.exponent}, so {small} moves right"
    words = [first, "Digits add up where they stand for the same power of two."]
    words.append(f"{capital(moves)} {top.exponent} − {bracketed(low.exponent)} = {counted(step.shift, 'place')}.")
    if step.shift > derivation.result.format.precision + 1:
        words.append("That takes all of it past the last digit kept; it can still decide the rounding.")
    return words


def _terms(derivation: Derivation) -> tuple[str, str]:
    fused = {"fma": "the product", "multiply_then_add": "the rounded product"}
    if derivation.operation in fused:
        return fused[derivation.operation], "c"
    return "a", "−b" if derivation.operation == "subtract" else "b"


def _sum(x: Exact, derivation: Derivation, index: int) -> list[str]:
    aligned, fmt = derivation.steps[index - 1], derivation.result.format
    settled = next((each for each in derivation.steps[index + 1 :] if isinstance(each, steps.Special)), None)
    if not isinstance(aligned, steps.Align):
        if x.c:
            return ["One term is zero, so the sum is the other one."]
        signs = "with opposite signs; a rule gives the sign" if settled else "with the same sign, and so is the sum"
        return [f"Both terms are zero, {signs}."]
    if not x.c:
        return ["The terms are equal with opposite signs: nothing is left, exactly."]
    moved = max(aligned.left.exponent, aligned.right.exponent) - x.exponent
    if aligned.left.negative == aligned.right.negative:
        words = [
            f"Both terms are {'negative' if x.negative else 'positive'}, so their digits add up, column by column."
        ]
        if moved:
            words.append(f"A carry out of the first column makes the sum lead one place higher, at 2^{x.exponent}.")
    else:
        words = ["The signs differ, so the smaller term is taken from the larger."]
        if moved:
            digits = "leading digit cancels" if moved == 1 else f"{moved} leading digits cancel"
            words.append(f"{'One' if moved == 1 else 'The'} {digits}, and the sum leads at 2^{x.exponent}.")
    return [*words, _room(x.normalized().c.bit_length(), "sum", fmt)]


def _product(x: Exact, derivation: Derivation) -> list[str]:
    a, b = _data(derivation)[:2]
    if not x.c:
        return [f"A factor is zero, and so is the product{'; the signs differ, so it is −0' * x.negative}."]
    p, q = a.exact.exponent, b.exact.exponent
    words = f"The exponents add, {p} + {bracketed(q)} = {p + q}, and the significands multiply"
    if x.exponent > p + q:
        words += f"; they give 2 or more, so the product leads at 2^{x.exponent}"
    signs = "The signs differ, so it is negative." * x.negative
    return [f"{words}.", signs, _room(x.normalized().c.bit_length(), "product", derivation.result.format)]


def _remainder(x: Exact, derivation: Derivation, index: int) -> list[str]:
    a, b = (each.exact for each in _data(derivation)[:2])
    before = derivation.steps[index - 1]
    n = before.quotient if isinstance(before, steps.Divide) else Exact(False, 0, 0)
    if not n.c:
        return ["0 × b is subtracted, so a itself remains."]
    left = f"{brief(x)} remains" if x.c else "nothing remains, and the zero takes the sign of a"
    parts = [brief(each) for each in (a, n, b)]
    if any("≈" in each for each in parts):
        return [f"a − n × b is computed exactly: {left}."]
    parts = [bracketed(each) for each in parts]
    return [f"From a = {parts[0]} goes n × b = {parts[1]} × {parts[2]}, exactly: {left}."]


def _divide(step: steps.Divide, derivation: Derivation) -> list[str]:
    n = step.quotient
    if derivation.operation == "remainder":
        if not step.sticky:
            return ["b goes into a a whole number of times."]
        return ["The remainder counts from the nearest whole multiple of b (of two as near, the even one)."]
    if not n.c:
        return ["Zero over a number is zero."]
    if not step.sticky:
        return [
            f"The division ends: {counted(n.normalized().c.bit_length(), 'binary digit')}, and nothing is left over."
        ]
    factor = _odd_factor(*(each.exact.c for each in _data(derivation)[:2]))
    if factor == 1:
        return ["The division does not end within the digits that are looked at.", _STICKY]
    why = f"the odd factor {factor}" if factor < _GLANCED else "an odd factor"
    return [f"In lowest terms the divisor keeps {why}, which divides no power of two: the digits never end.", _STICKY]


def _odd_factor(dividend: int, divisor: int) -> int:
    """Return the odd part of a fraction's denominator in lowest terms; if it is 1, the binary expansion terminates."""
    least = divisor // gcd(dividend, divisor)
    return least // (least & -least)


def _special(step: steps.Special, derivation: Derivation) -> list[str]:
    if step.rule is Rule.FLUSHED_INPUT:
        formats = [each.format for each in _data(derivation) if each.is_subnormal]
        fmt = formats[0] if formats else derivation.result.format
        low = f"Numbers of {fmt.name} below 2^{fmt.emin} are subnormal"
        return [f"{low}; here they count as zero, as on hardware that gives them up for speed."]
    if step.rule is Rule.ZERO_SUM:
        direction = derivation.context.rounding
        sign = "−0" if direction is Direction.RTN else "+0"
        return [f"Nothing is left, and zero may have either sign: rounding {IN_WORDS[direction]}, it is {sign}."]
    quiet = step.rule is Rule.NAN_OPERAND and not derivation.flags
    return [_who(derivation), _RULES[step.rule], "Nothing new went wrong, so no flag is raised." * quiet]


def _who(derivation: Derivation) -> str:
    """Name the operands that are NaN, infinite or zero."""
    if derivation.operation == "multiply_then_add":
        return ""  # the product may be the special value
    words = [f"{name} is {_kind(each)}" for name, each in zip("abc", _data(derivation), strict=False) if _kind(each)]
    return f"{listed(words)}." if words else ""


def _kind(datum: Datum) -> str:
    if datum.is_nan:
        return "a signaling NaN" if datum.is_signaling else "a NaN"
    if datum.is_infinite:
        return "−∞" if datum.sign_bit else "∞"
    if not datum.is_finite:
        return "no number"
    return "" if datum.exact else "zero"
