"""Sentences that explain a rounding and its result: the decision, the code, the error."""

from __future__ import annotations

from fractions import Fraction

from floatlab.arith import Comparison, Contrast, IntegerResult, Relation
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation, Direction, Exact, Flags, Overflow, Rounded, Tail
from floatlab.numbers.derivation import Combine, Encode, Round
from floatlab.numbers.exact import GUARD_DIGITS
from floatlab.numbers.printing import rounded_decimal
from floatlab.numbers.projection import Between, given_by_table
from floatlab.numbers.rounding import IN_WORDS
from floatlab.page.model import Line, line
from floatlab.page.words import (
    bracketed,
    brief,
    counted,
    cut,
    draw_comparison,
    integer_not_held,
    plain_error,
    replaced_words,
)

_SIMPLE = 4096  # fractions with denominators up to this limit are written in full
_LAST = "last kept digit"
# The effect of each directed rounding, on positive and on negative numbers.
_DIRECTED = {
    Direction.RTZ: ("rounding toward zero drops the discarded digits",) * 2,
    Direction.RAZ: ("rounding away from zero adds a unit whenever a discarded digit is nonzero",) * 2,
    Direction.RTP: (
        "rounding toward +∞ increases a positive number",
        "rounding toward +∞ drops the discarded digits of a negative number",
    ),
    Direction.RTN: (
        "rounding toward −∞ drops the discarded digits of a positive number",
        "rounding toward −∞ increases the magnitude of a negative number",
    ),
}


def portion(part: Fraction) -> str:
    """Return a positive number of ulps as text.

    The text is a short fraction, or a phrase such as "just over 1/2", or a rounded decimal after ≈.

    >>> from fractions import Fraction
    >>> portion(Fraction(9, 16)), portion(Fraction(1, 3)), portion(Fraction(2**30 + 1, 2**31))
    ('9/16', '1/3', 'just over 1/2')
    """
    if part.denominator <= _SIMPLE:
        return str(part)
    for landmark, name in ((1, "1"), (2, "1/2")):
        beside = part * landmark - 1
        if abs(beside) * 10_000 < 1:
            return f"just {'over' if beside > 0 else 'under'} {name}"
    return f"≈ {rounded_decimal(part, 4)}"


def _discarded_part(rounded: Rounded) -> str:
    """Return the discarded part in ulps, as text: a short fraction, a rounded decimal, or a bound."""
    part = Fraction(rounded.rest2, 2 * rounded.unit)
    if not rounded.kept and rounded.unit == 1 << GUARD_DIGITS and rounded.rest2 == 2:
        return f"less than 2^-{GUARD_DIGITS - 1}"
    if not part:
        return "almost nothing"
    text = portion(part)
    return f"a little more than {text}" if rounded.sticky_below and part.denominator <= _SIMPLE else text


def rounding_reason(rounded: Rounded, format: Format, context: Context) -> list[str]:
    """Return sentences on the discarded digits, the effect of the rounding direction, and overflow or underflow."""
    return [*_cut(rounded, format, context), *_range(rounded, format, context)]


def _between(rounded: Rounded, between: Between, fmt: Format, context: Context) -> list[str]:
    """Explain a rounding in a format that is defined by a table of numbers."""
    direction = context.rounding
    if rounded.tail is Tail.ZERO:
        return [f"It is a number of {fmt.name} already, so there is nothing to round."]
    if between.lower == between.upper:
        return [f"It lies beyond the last number of {fmt.name}."]
    lower, upper = (brief(Datum(fmt, code)) for code in (between.lower, between.upper))
    chosen = f"so it becomes {upper if rounded.increment else lower}."
    seen = f"{fmt.name} has {lower} and {upper} next to it."
    if direction in (Direction.RNE, Direction.RNA):
        x = between.boundary
        where = "" if x is None else f", {brief(Exact(rounded.negative, x.c, x.q))}"
        side = {Tail.BELOW_HALF: "short of", Tail.HALF: "on", Tail.ABOVE_HALF: "past"}[rounded.tail]
        return [seen, f"It is {side} the boundary between them{where}, {chosen}"]
    if direction.has_few_bits:
        return [seen, f"{_few_bits(rounded, context)}, {chosen}"]
    if direction is Direction.SR:
        return [seen, _drawn(rounded, chosen.removesuffix("."))]
    return [seen, f"Rounding {IN_WORDS[direction]}, {chosen.removeprefix('so ')}"]


def _cut(rounded: Rounded, fmt: Format, context: Context) -> list[str]:
    if rounded.between is not None:
        return _between(rounded, rounded.between, fmt, context)
    p, kept = fmt.precision, f"{fmt.name} keeps {counted(fmt.precision, 'digit')}"
    if rounded.tail is Tail.ZERO:
        if not rounded.kept:
            return ["Zero has no digits to discard."]
        where = f"down to 2^{fmt.qmin}, its last place" if rounded.tiny_before else ""
        return [f"{kept}{f', {where}' if where else ''}: no digit is discarded, so the value is exact."]
    digits, share = cut(rounded, fmt)[1], _discarded_part(rounded)
    if rounded.tiny_before and not fmt.subnormals:
        gap = "between 0 and" if fmt.zero else "below"
        seen = f"{fmt.name} has no number {gap} 2^{fmt.emin}, and the magnitude is {share} of 2^{fmt.emin}."
    elif rounded.tiny_before:
        last = f"Below 2^{fmt.emin} the last digit of {fmt.name} is always worth 2^{fmt.qmin}"
        seen = f"{last}, and |{digits} is discarded: {share} of a unit in the last place."
    else:
        seen = f"{kept} and |{digits} is discarded: {share} of a unit in the last place."
    one = ""
    if p == 1:
        even = fmt.ties_to_even_code and context.rounding is Direction.RNE
        one = "the one with the even code" if even else "the one of larger magnitude"
    return [seen, _decided(rounded, context, _LAST, one)]


def _decided(rounded: Rounded, context: Context, what: str, one: str = "") -> str:
    """Explain how the rounding direction and the discarded part decide whether the number is rounded up.

    `what` names the digit or the integer that goes up or stays. If the precision is 1, `one` describes the neighbour to
    which a tie is rounded.
    """
    stay = "the kept digits stay" if what == _LAST else f"the {what} stays"
    up = f"so the {what} goes up by one" if rounded.increment else f"so {stay}"
    it = f"so it {'goes up by one' if rounded.increment else 'stays'}"
    direction, parity = context.rounding, "odd" if rounded.odd else "even"
    if direction in (Direction.RNE, Direction.RNA):
        if rounded.tail is not Tail.HALF:
            return f"That is {'more' if rounded.tail is Tail.ABOVE_HALF else 'less'} than half, {up}."
        if direction is Direction.RNA:
            return f"That is a tie, and ties are rounded away from zero, {up}."
        if one:
            return f"That is a tie, which is rounded to {one}, {up}."
        return f"That is a tie, which is rounded to even; the {what} is {parity}, {it}."
    if direction is Direction.RTO:
        code = "code" if one else what
        return f"An inexact result is made odd, which records that digits were lost; the {code} is {parity}, {it}."
    if direction.has_few_bits:
        return f"{_few_bits(rounded, context)}, {up}."
    if direction is Direction.SR:
        return _drawn(rounded, up)
    rule = _DIRECTED[direction][rounded.negative]
    return f"{rule[0].upper()}{rule[1:]}, {up}."


def _few_bits(rounded: Rounded, context: Context) -> str:
    draw = f"With {counted(context.random_bits, 'random bit')} the draw is {rounded.drawn}"
    return f"{draw}: {draw_comparison(rounded, context)}"


def _drawn(rounded: Rounded, up: str) -> str:
    share = Fraction(100 * rounded.threshold, 1 << 32)
    chance = f"{rounded_decimal(share, 3)}%" if share else "almost 0"
    relation = "below" if rounded.increment else "not below"
    draw = f"The draw {rounded.drawn or 0:#010x} is {relation} 2^32 × the discarded fraction, {rounded.threshold:#010x}"
    return f"{draw}, {up} (the probability of rounding up was {chance})."


def _range(rounded: Rounded, fmt: Format, context: Context) -> list[str]:
    words = []
    if rounded.carried:
        ones = "That digit was a one" if fmt.precision == 1 else f"All {fmt.precision} kept digits were ones"
        words.append(f"{ones}, so the carry increases the exponent.")
    if Flags.INVALID in rounded.flags:
        lacks = "a sign" if rounded.significand else "a zero"
        words.append(f"{fmt.name} does not have {lacks}: invalid operation.")
    elif rounded.overflowed:
        largest = Datum(fmt, fmt.compose(rounded.negative and fmt.signed, fmt.largest_magnitude))
        words.append(f"That is beyond the largest number, {brief(largest)}: overflow.")
    elif not rounded.significand and not fmt.zero:
        words.append(f"{fmt.name} has no zero: underflow.")
    elif Flags.UNDERFLOW in rounded.flags:
        words.append(_underflow(rounded, fmt, context))
    elif rounded.tiny_before and not rounded.tiny_after and rounded.tail is not Tail.ZERO:
        words.append(
            f"With an unbounded exponent it would also round to 2^{fmt.emin}: not tiny after rounding, so no underflow."
        )
    return words


def _underflow(rounded: Rounded, fmt: Format, context: Context) -> str:
    if context.flush_results and fmt.zero:
        return f"Results below 2^{fmt.emin} are flushed to zero here (--ftz): underflow."
    if not rounded.tiny_after:
        return (
            f"It was below 2^{fmt.emin} before rounding, and this context detects tininess before rounding: underflow."
        )
    return f"It is tiny, below 2^{fmt.emin}, and inexact: underflow."


def integral_reason(rounded: Rounded, context: Context) -> list[str]:
    """Return sentences on the rounding to an integer: the digits after the binary point, and the decision."""
    if rounded.tail is Tail.ZERO:
        return ["There are no digits after the binary point: the number is an integer already."]
    return [f"The part after the binary point is {_discarded_part(rounded)}.", _decided(rounded, context, "integer")]


_FAR = 1_000_000  # errors larger than this, in ulps, are written as plain numbers

# The name of each operation's exact result.
_NOUNS = {
    "add": "sum", "subtract": "difference", "multiply": "product", "divide": "quotient", "sqrt": "root",
    "remainder": "remainder", "scale_b": "scaled number", "log_b": "exponent",
    "fma": "a × b + c", "multiply_then_add": "a × b + c", "read": "number",
}  # fmt: skip


def capital(words: str) -> str:
    """Return a sentence with an initial capital, unless it begins with the name of an operand or a format."""
    return words[0].upper() + words[1:] if words.startswith(("the ", "beyond ", "an ")) else words


def encoding_reason(step: Encode, derivation: Derivation, index: int) -> list[str]:
    """Return sentences on the encoding of the result, and on the error of the result."""
    before = derivation.steps[index - 1] if index else None
    last = index == len(derivation.steps) - 1
    datum, error = step.datum, _error(derivation) if last else ""
    rounded = before.rounded if isinstance(before, Round) else None
    if rounded is not None and rounded.overflowed:
        return [_overflowed(datum, derivation.context), error]
    if last and (replaced := replaced_words(derivation)):
        return [f"{capital(replaced)}.", error]
    return [_encoding_words(datum, rounded), _lost_term(derivation) if last else "", error]


def _lost_term(derivation: Derivation) -> str:
    """If a term was too small to change the other term, return a sentence on this; otherwise return an empty text."""
    if derivation.operation not in ("add", "subtract") or Flags.INEXACT not in derivation.flags:
        return ""
    a, b = derivation.operands
    if derivation.result == a:
        return "The result equals a: b was too small to change it."
    if derivation.result == b and derivation.operation == "add":
        return "The result equals b: a was too small to change it."
    return ""


def _encoding_words(datum: Datum, rounded: Rounded | None) -> str:
    """Describe how a datum is encoded in its fields."""
    fmt, field = datum.format, datum.biased_exponent
    if given_by_table(fmt) and datum.is_finite:
        return f"Its code is read as {fmt.reading(datum.code)}." if datum.exact else "It is the code of zero."
    if datum.is_nan:
        fields = "all ones in the exponent, and a mantissa that is not zero" if fmt.ieee_nans else "its own code"
        return f"In {fmt.name} a NaN has {fields}."
    if datum.is_infinite:
        fields = "all ones in the exponent, and zero in the mantissa" if fmt.ieee_nans else "its own code"
        return f"In {fmt.name} ∞ has {fields}."
    if not datum.is_finite:
        return "The code does not represent a number."
    if not datum.exact:
        return "In the code of a zero, all bits are 0, except perhaps the sign."
    if datum.is_subnormal:
        return f"The number is subnormal: the exponent field is 0, the hidden bit is 0, and the exponent is {fmt.emin}."
    carry = "The carry increases the exponent by one. " * (rounded is not None and rounded.carried)
    e, bias = datum.exact.exponent, fmt.bias
    sums = f"{e} + {bracketed(bias)} = {field}"
    kept = "the mantissa field holds the digits after the point" if fmt.trailing_bits else "there is no mantissa field"
    return f"{carry}The exponent is stored with the bias, {sums}; {kept}."


def _overflowed(datum: Datum, context: Context) -> str:
    fmt, direction = datum.format, IN_WORDS[context.rounding]
    if datum.is_infinite:
        return f"When rounding {direction}, results beyond the largest number become ∞."
    if datum.is_nan:
        return f"{fmt.name} has no ∞, so results beyond the largest number become NaN."
    if context.overflow is not Overflow.NATIVE:
        return f"Overflow rule '{context.overflow.value}': results beyond the largest number become the largest number."
    if fmt.infinities or fmt.has_nan:
        return f"When rounding {direction}, results beyond the largest number become the largest number."
    return f"{fmt.name} has neither ∞ nor NaN, so results beyond the largest number become the largest number."


def _error(derivation: Derivation) -> str:
    result, ulps = derivation.result, derivation.approximate_error_ulps
    if ulps is None:
        return ""
    integer = integer_not_held(derivation)
    noun = f"exact {_NOUNS.get(derivation.operation, 'operand')}" if integer is None else f"integer {brief(integer)}"
    if not ulps:
        return "The result is exact."
    raised = ": inexact" * (Flags.INEXACT in derivation.flags)
    if abs(ulps) > _FAR or not result.magnitude or derivation.operation == "round_to_integral":
        return f"The result differs from the {noun} by {plain_error(ulps * result.ulp.as_fraction())}{raised}."
    return f"The result is {portion(abs(ulps))} ulp {'above' if ulps > 0 else 'below'} the {noun}{raised}."


def verdict_reason(contrast: Contrast) -> Line:
    """Explain why fma and multiply-then-add give the same or different bits."""
    return line(" ".join(_verdict(contrast)))


def _verdict(contrast: Contrast) -> list[str]:
    product, rounding = contrast.product, contrast.product_rounding
    exact = next((step.exact for step in contrast.fused.steps if isinstance(step, Combine)), None)
    if exact is None or product is None:
        return ["A rule for special values gave the result, so no product was rounded."]
    if rounding is None:
        if contrast.same:
            return ["The product was exact, so both computations added the same numbers and rounded once."]
        return ["The product was exact but subnormal, and the addition read it as zero."]
    if not product.is_finite:
        same = " Here both have the same bits." * contrast.same
        return [f"The rounded product was {brief(product)}; the fma used all digits of the exact product.{same}"]
    lost = f"Rounding the product changed it by {plain_error((product.exact - exact).as_fraction())}."
    if contrast.same:
        return [lost, "The second rounding still gave the same number."]
    return [lost, "The sum used the rounded product, and the second rounding did not compensate for that."]


def comparison_reason(found: Comparison) -> Line:
    """Explain why two operands compare as they do."""
    a, b = found.operands
    if found.relation is Relation.UNORDERED:
        return line("A NaN is not a number: it is neither less than, nor equal to, nor greater than another value.")
    if not a.is_finite or not b.is_finite:
        return line("∞ is greater than every number, −∞ is less than every number, and an infinity equals itself.")
    flushed = found.context.flush_inputs and (a.is_subnormal or b.is_subnormal)
    zero = " A subnormal operand counts as zero (--daz)." * flushed
    return line(f"The exact values are compared, not the codes; nothing is rounded.{zero}")


def integer_reason(found: IntegerResult) -> Line:
    """Explain why a datum is converted to this integer."""
    words = [] if found.rounded is None else integral_reason(found.rounded, found.context)
    kind = found.kind
    if Flags.INVALID in found.flags:
        outside = "That is" if found.rounded is not None else "The operand is not a number, or"
        words.append(
            f"{outside} outside the range of this integer type, {kind.least} to {kind.greatest}: invalid operation."
        )
    return line(" ".join(words))
