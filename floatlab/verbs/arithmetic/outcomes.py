"""Why a rounding kept or raised the last digit, and the outcome: the result's code, its error, how two ways compare."""

from __future__ import annotations

from fractions import Fraction

from floatlab.arith import Comparison, Contrast, IntegerResult, Relation
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation, Direction, Exact, Flags, Overflow, Rounded, Tail
from floatlab.numbers.decimals import rounded_decimal
from floatlab.numbers.exact import GUARD_DIGITS
from floatlab.numbers.projection import Between, given_by_table
from floatlab.numbers.rounding import IN_WORDS
from floatlab.numbers.steps import Combine, Encode, Round
from floatlab.page.model import Line, line
from floatlab.page.words import bracketed, brief, counted, cut, integer_not_held, plain_error, replaced_words

_SIMPLE = 4096  # fractions with denominators up to this are written in full
_LAST = "last kept digit"
# For directions that depend only on the sign: effect on positive and on negative numbers.
_DIRECTED = {
    Direction.RTZ: ("toward zero, what is left over is dropped",) * 2,
    Direction.RAZ: ("away from zero, anything left over counts for a whole unit",) * 2,
    Direction.RTP: ("toward +∞ a positive number goes up", "toward +∞ a negative number loses what is left over"),
    Direction.RTN: (
        "toward −∞ a positive number loses what is left over",
        "toward −∞ a negative number grows in magnitude",
    ),
}


def portion(part: Fraction) -> str:
    """Return a positive number of ulps as text: as a fraction if that is short, else rounded after ≈.

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


def _tail(rounded: Rounded) -> str:
    """Return the tail in ulps: exact if that is short, else with the known bounds."""
    part = Fraction(rounded.rest2, 2 * rounded.unit)
    if not rounded.kept and rounded.unit == 1 << GUARD_DIGITS and rounded.rest2 == 2:
        return f"less than 2^-{GUARD_DIGITS - 1}"
    if not part:
        return "next to nothing"
    text = portion(part)
    return f"a little more than {text}" if rounded.sticky_below and part.denominator <= _SIMPLE else text


def rounding_reason(rounded: Rounded, format: Format, context: Context) -> list[str]:
    """Return sentences on the digits cut off, the effect of the rounding direction, and overflow or underflow."""
    return [*_cut(rounded, format, context.rounding), *_range(rounded, format, context)]


def _between(rounded: Rounded, between: Between, fmt: Format, direction: Direction) -> list[str]:
    """Explain a rounding between two entries of a table."""
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
    if direction is Direction.SR:
        return [seen, _drawn(rounded, chosen.removesuffix("."))]
    return [seen, f"Rounding {IN_WORDS[direction]}, {chosen.removeprefix('so ')}"]


def _cut(rounded: Rounded, fmt: Format, direction: Direction) -> list[str]:
    if rounded.between is not None:
        return _between(rounded, rounded.between, fmt, direction)
    p, kept = fmt.precision, f"{fmt.name} keeps {counted(fmt.precision, 'digit')}"
    if rounded.tail is Tail.ZERO:
        if not rounded.kept:
            return ["Zero has no digits that could be cut off."]
        where = f"down to 2^{fmt.qmin}, its last place" if rounded.tiny_before else ""
        return [f"{kept}{f', {where}' if where else ''}: nothing is cut off, so there is nothing to round."]
    digits, share = cut(rounded, fmt)[1], _tail(rounded)
    if rounded.tiny_before and not fmt.subnormals:
        gap = "between 0 and" if fmt.zero else "below"
        seen = f"{fmt.name} has nothing {gap} 2^{fmt.emin}, and this is {share} of it."
    elif rounded.tiny_before:
        last = f"Below 2^{fmt.emin} the last place of {fmt.name} stays at 2^{fmt.qmin}"
        seen = f"{last}, and |{digits} is left over: {share} of a unit there."
    else:
        seen = f"{kept} and |{digits} is left over: {share} of a unit in the last place."
    one = ""
    if p == 1:
        even = fmt.ties_to_even_code and direction is Direction.RNE
        one = "the one with the even code" if even else "the one of larger magnitude"
    return [seen, _decided(rounded, direction, _LAST, one)]


def _decided(rounded: Rounded, direction: Direction, what: str, one: str = "") -> str:
    """Explain how the direction treats a tail; `one` names the neighbour chosen on ties in formats of precision 1."""
    stay = "the kept digits stay" if what == _LAST else f"the {what} stays"
    up = f"so the {what} goes up by one" if rounded.increment else f"so {stay}"
    it = f"so it {'goes up by one' if rounded.increment else 'stays'}"
    parity = "odd" if rounded.odd else "even"
    if direction in (Direction.RNE, Direction.RNA):
        if rounded.tail is not Tail.HALF:
            return f"That is {'more' if rounded.tail is Tail.ABOVE_HALF else 'less'} than half, {up}."
        if direction is Direction.RNA:
            return f"That is a tie, and ties go away from zero, {up}."
        if one:
            return f"That is a tie; of two neighbours with one digit each, {one} gets it, {up}."
        return f"That is a tie, which goes to the even neighbour; the {what} is {parity}, {it}."
    if direction is Direction.RTO:
        code = "code" if one else what
        return f"What is inexact ends odd, as a trace of what was lost; the {code} is {parity}, {it}."
    if direction is Direction.SR:
        return _drawn(rounded, up)
    rule = _DIRECTED[direction][rounded.negative]
    return f"{rule[0].upper()}{rule[1:]}, {up}."


def _drawn(rounded: Rounded, up: str) -> str:
    share = Fraction(100 * rounded.threshold, 1 << 32)
    chance = f"{rounded_decimal(share, 3)}%" if share else "next to none"
    relation = "below" if rounded.increment else "not below"
    draw = f"The draw {rounded.drawn or 0:#010x} is {relation} the tail's share of 2^32, {rounded.threshold:#010x}"
    return f"{draw}, {up} (the chance to go up was {chance})."


def _range(rounded: Rounded, fmt: Format, context: Context) -> list[str]:
    words = []
    if rounded.carried:
        ones = "That digit was a one" if fmt.precision == 1 else f"All {fmt.precision} kept digits were ones"
        words.append(f"{ones}, so the carry runs into the exponent.")
    if Flags.INVALID in rounded.flags:
        lacks = "a sign" if rounded.significand else "a zero"
        words.append(f"{fmt.name} does not have {lacks}: invalid.")
    elif rounded.overflowed:
        largest = Datum(fmt, fmt.compose(rounded.negative and fmt.signed, fmt.largest_magnitude))
        words.append(f"That is beyond the largest number, {brief(largest)}: overflow.")
    elif not rounded.significand and not fmt.zero:
        words.append(f"{fmt.name} has no zero to go down to: underflow.")
    elif Flags.UNDERFLOW in rounded.flags:
        words.append(_underflow(rounded, fmt, context))
    elif rounded.tiny_before and not rounded.tiny_after and rounded.tail is not Tail.ZERO:
        words.append(f"With room below it would round to 2^{fmt.emin} too: not tiny after rounding, so no underflow.")
    return words


def _underflow(rounded: Rounded, fmt: Format, context: Context) -> str:
    if context.flush_results and fmt.zero:
        return f"Results below 2^{fmt.emin} are flushed to zero here (--ftz): underflow."
    if not rounded.tiny_after:
        return f"It was below 2^{fmt.emin} before rounding, which is when this context looks: underflow."
    return f"It is tiny, below 2^{fmt.emin}, and inexact: underflow."


def integral_reason(rounded: Rounded, direction: Direction) -> list[str]:
    """Return sentences on the digits after the binary point, and on how the direction decided."""
    if rounded.tail is Tail.ZERO:
        return ["There are no digits after the binary point: it is an integer already."]
    return [f"After the binary point stands {_tail(rounded)}.", _decided(rounded, direction, "integer")]


_FAR = 1_000_000  # above this many ulps, the error is given as a number

# The name of each operation's exact result.
_NOUNS = {
    "add": "sum", "subtract": "difference", "multiply": "product", "divide": "quotient", "sqrt": "root",
    "remainder": "remainder", "fma": "a × b + c", "multiply_then_add": "a × b + c", "read": "number",
}  # fmt: skip


def capital(words: str) -> str:
    """Capitalise the start of a sentence that begins with a word, but not names of operands and formats."""
    return words[0].upper() + words[1:] if words.startswith(("the ", "beyond ", "an ")) else words


def encoding_reason(step: Encode, derivation: Derivation, index: int) -> list[str]:
    """Return sentences on how the result's code comes about, and on its error."""
    before = derivation.steps[index - 1] if index else None
    last = index == len(derivation.steps) - 1
    datum, error = step.datum, _error(derivation) if last else ""
    rounded = before.rounded if isinstance(before, Round) else None
    if rounded is not None and rounded.overflowed:
        return [_overflowed(datum, derivation.context), error]
    if last and (replaced := replaced_words(derivation)):
        return [f"{capital(replaced)}.", error]
    return [_packed(datum, rounded), _lost(derivation) if last else "", error]


def _lost(derivation: Derivation) -> str:
    """Return a sentence if a term was lost, which is why small updates leave a weight unchanged."""
    if derivation.operation not in ("add", "subtract") or Flags.INEXACT not in derivation.flags:
        return ""
    a, b = derivation.operands
    if derivation.result == a:
        return "The result is a again: b was too small to change it."
    if derivation.result == b and derivation.operation == "add":
        return "The result is b again: a was too small to change it."
    return ""


def _packed(datum: Datum, rounded: Rounded | None) -> str:
    """Describe how a datum's fields come about."""
    fmt, field = datum.format, datum.biased_exponent
    if given_by_table(fmt) and datum.is_finite:
        return f"Its code is read as {fmt.reading(datum.code)}." if datum.exact else "It is the code of zero."
    if datum.is_nan:
        fields = ": all ones in the exponent, and a mantissa that is not zero" if fmt.ieee_nans else " of its own"
        return f"In {fmt.name} a NaN has a code{fields}."
    if datum.is_infinite:
        fields = ": all ones in the exponent, and zero in the mantissa" if fmt.ieee_nans else " of its own"
        return f"In {fmt.name} ∞ has a code{fields}."
    if not datum.is_finite:
        return "The code stands for no number."
    if not datum.exact:
        return "Zero is the code with nothing but zeros, or a sign before them."
    if datum.is_subnormal:
        return f"The exponent field is 0: no hidden 1, and the digits count from 2^{fmt.emin} on. It is subnormal."
    carry = "With the carry the exponent is one more. " * (rounded is not None and rounded.carried)
    e, bias = datum.exact.exponent, fmt.bias
    sums = f"{e} + {bracketed(bias)} = {field}"
    kept = "the mantissa field holds the digits after the point" if fmt.trailing_bits else "there is no mantissa field"
    return f"{carry}The exponent is stored with the bias, {sums}; {kept}."


def _overflowed(datum: Datum, context: Context) -> str:
    fmt, direction = datum.format, IN_WORDS[context.rounding]
    if datum.is_infinite:
        return f"Rounding {direction}, what passes the largest number becomes ∞."
    if datum.is_nan:
        return f"{fmt.name} has no ∞ to become, so a NaN marks what passes the largest number."
    if context.overflow is not Overflow.NATIVE:
        return f"The context asks for it ({context.overflow.value}): what passes the largest number stops there."
    if fmt.infinities or fmt.has_nan:
        return f"Rounding {direction} does not step past the largest number, so that is the result."
    return f"{fmt.name} has neither ∞ nor a NaN, so the largest number stands for what passes it."


def _error(derivation: Derivation) -> str:
    """Describe the error of the result."""
    result, ulps = derivation.result, derivation.nearby_error_ulps
    if ulps is None:
        return ""
    integer = integer_not_held(derivation)
    noun = f"exact {_NOUNS.get(derivation.operation, 'operand')}" if integer is None else f"integer {brief(integer)}"
    if not ulps:
        return "It is exact."
    raised = ": inexact" * (Flags.INEXACT in derivation.flags)
    if abs(ulps) > _FAR or not result.magnitude or derivation.operation == "round_to_integral":
        return f"It differs from the {noun} by {plain_error(ulps * result.ulp.as_fraction())}{raised}."
    return f"It lies {portion(abs(ulps))} ulp {'above' if ulps > 0 else 'below'} the {noun}{raised}."


def verdict_reason(contrast: Contrast) -> Line:
    """Explain why the two ways give the same or different bits."""
    return line(" ".join(_verdict(contrast)))


def _verdict(contrast: Contrast) -> list[str]:
    product, parting = contrast.product, contrast.parting
    exact = next((step.exact for step in contrast.fused.steps if isinstance(step, Combine)), None)
    if exact is None or product is None:
        return ["A rule decided, so there was no product to round."]
    if parting is None:
        if contrast.same:
            return ["The product was exact, so both ways added the same numbers and rounded once."]
        return ["The product was exact but subnormal, and counted as zero when it was read again."]
    if not product.is_finite:
        same = " Here both end in the same bits." * contrast.same
        return [f"The rounded product was {brief(product)} already; the fused way went on with its digits.{same}"]
    lost = f"Rounding the product moved it by {plain_error((product.exact - exact).as_fraction())}."
    if contrast.same:
        return [lost, "The second rounding led to the same number all the same."]
    return [lost, "The sum started from there, and the second rounding did not make up for it."]


def comparison_reason(found: Comparison) -> Line:
    """Explain why two operands compare as they do."""
    a, b = found.operands
    if found.relation is Relation.UNORDERED:
        return line("A NaN is no number: it is neither less than another, nor equal to it, nor greater.")
    if not a.is_finite or not b.is_finite:
        return line("∞ lies beyond every number, −∞ below every one, and each equals itself.")
    flushed = found.context.flush_inputs and (a.is_subnormal or b.is_subnormal)
    zero = " A subnormal operand counts as zero (--daz)." * flushed
    return line(f"The values are compared, not the codes, and exactly: nothing is rounded.{zero}")


def integer_reason(found: IntegerResult) -> Line:
    """Explain why a datum becomes this integer."""
    words = [] if found.rounded is None else integral_reason(found.rounded, found.context.rounding)
    kind = found.kind
    if Flags.INVALID in found.flags:
        outside = "That is" if found.rounded is not None else "The operand is no number, or"
        words.append(
            f"{outside} outside {kind.least} to {kind.greatest}, where the integers of this type lie: invalid."
        )
    return line(" ".join(words))
