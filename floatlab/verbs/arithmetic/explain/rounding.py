"""Why a rounding kept or raised the last digit, in sentences with the tail and the direction's rule in them."""

from __future__ import annotations

from fractions import Fraction

from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction, Flags, Rounded, Tail
from floatlab.numbers.decimals import rounded_decimal
from floatlab.numbers.exact import GUARD_DIGITS
from floatlab.page.words import brief, counted, cut

_SIMPLE = 4096  # fractions with denominators up to this are written as they are
_LAST = "last kept digit"
# What a direction that looks at the sign only makes of a positive and of a negative number.
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
    """Return a positive number of units: as a fraction where that is short, else rounded after ≈.

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
    """Return the tail in units: exact where that is short, with what is known where it is not."""
    from fractions import Fraction

    part = Fraction(rounded.rest2, 2 * rounded.unit)
    if not rounded.kept and rounded.unit == 1 << GUARD_DIGITS and rounded.rest2 == 2:
        return f"less than 2^-{GUARD_DIGITS - 1}"
    if not part:
        return "next to nothing"
    text = portion(part)
    return f"a little more than {text}" if rounded.sticky_below and part.denominator <= _SIMPLE else text


def rounding_reason(rounded: Rounded, format: Format, context: Context) -> list[str]:
    """Say what was cut off, what the direction made of it, and what came of the range."""
    return [*_cut(rounded, format, context.rounding), *_range(rounded, format, context)]


def _cut(rounded: Rounded, fmt: Format, direction: Direction) -> list[str]:
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
    """Say what the direction made of a tail; `one` names the neighbour that gets ties where there is but one digit."""
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
    from fractions import Fraction

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
    """Say what stands after the binary point, and what the direction made of it."""
    if rounded.tail is Tail.ZERO:
        return ["There are no digits after the binary point: it is an integer already."]
    return [f"After the binary point stands {_tail(rounded)}.", _decided(rounded, direction, "integer")]
