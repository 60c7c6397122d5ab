"""Text for pages: a rounding, an error, a special value or a set of flags in words."""

from __future__ import annotations

from floatlab.errors import counted as counted
from floatlab.errors import listed as listed
from floatlab.errors import plural as plural
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation, Direction, Flags, Rounded, Tail
from floatlab.numbers.datum import shortest
from floatlab.numbers.derivation import EXACT_ERROR_BITS, Read, Round, Rule, Special
from floatlab.numbers.exact import FAR, GUARD_DIGITS, Exact, Literal, Ratio
from floatlab.numbers.printing import decimal_within, ratio_text, rounded_decimal, terminating_decimal
from floatlab.numbers.rounding import IN_WORDS
from floatlab.page.model import Block, Line, Note, Role, Span, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

# A page shows decimals of up to this many digits in full (binary64's longest has 767), longer ones as a product.
PAGE_DIGITS = 800
# In running text, an exact decimal is shown if it has at most this many characters.
GLANCE = 20
_BOUNDARY = {Tail.BELOW_HALF: "short of", Tail.HALF: "a tie, on", Tail.ABOVE_HALF: "past"}
UNBROKEN = "\N{NO-BREAK SPACE}"
_TAIL_SHOWN = 4
_FIGURES = 5  # a rounded number has at least this many digits


def brief(number: Datum | Exact) -> str:
    """Return a number in a few characters: a short exact decimal, a power of two, or ≈ and a rounded decimal.

    >>> [brief(Exact(False, c, -70)) for c in (5 << 68, 1, 3)]
    ['1.25', '2^-70', '≈ 2.5411e-21']
    """
    if isinstance(number, Datum) and not number.is_finite:
        return shortest(number)
    if isinstance(number, Datum) and number.symbol:
        return f"≈ {rounded_decimal(number.bounds(64)[0].as_fraction(), _FIGURES)}"
    x = number.exact if isinstance(number, Datum) else number
    decimal = decimal_within(x, GLANCE)
    if decimal is not None:
        return decimal
    if abs(x).normalized().c == 1:
        return f"{'-' * x.negative}2^{x.exponent}"
    digits = _FIGURES
    if isinstance(number, Datum):  # enough digits to distinguish the number from its neighbours
        figures = shortest(number).partition("e")[0].replace("-", "").replace(".", "").strip("0")
        digits = max(len(figures), digits)
    return f"≈ {rounded_decimal(x.as_fraction(), digits)}"


def equals(datum: Datum) -> str:
    """Return `= value` if the exact value is short enough, and `≈ value` otherwise."""
    text = brief(datum)
    return text if text.startswith("≈") else f"= {text}"


def abbreviated(text: str, limit: int = 44) -> str:
    """Return a text; if it is longer than `limit`, return its two ends and its length."""
    return text if len(text) <= limit else f"{text[:24]}…{text[-6:]} ({len(text):,} characters)"


def bracketed(number: object) -> str:
    """Return a number as text, in brackets if it is negative, for use after an operator.

    >>> bracketed(-3), bracketed("0.5")
    ('(-3)', '0.5')
    """
    text = str(number)
    return f"({text})" if text.startswith("-") else text


def ulps_text(ulps: Fraction) -> str:
    """Return an error in ulps as text: an exact decimal if it is short, otherwise ≈ and a rounded decimal.

    If the error is not a finite decimal but a short fraction, the fraction is written before the decimal.
    """
    simple = ulps.denominator < 1000 and abs(ulps.numerator) < 1_000_000
    if simple and terminating_decimal(ulps, 40) is None:
        return signed_text(f"{ulps.numerator}/{ulps.denominator}") + f" {plain_error(ulps)}"
    return plain_error(ulps)


def signed_text(text: str) -> str:
    """Return a number with an explicit sign, except for 0."""
    if text.startswith("-"):
        return f"−{text[1:]}"
    return text if text == "0" else f"+{text}"


def error_words(derivation: Derivation) -> str:
    """Return, as text, how far the result is from the exact value; empty if one of the two is not finite."""
    truth, result = derivation.truth, derivation.result
    if truth is None or not result.is_finite:
        return ""
    if isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS) and not result.exact:
        return f"error {signed_text(ratio_text(truth.replace(negative=not truth.negative), PAGE_DIGITS))}"
    ulps = derivation.approximate_error_ulps
    if ulps is None:
        binade = derivation.error_binade_ulps
        return "error too large to write out" if binade is None else f"error below 2^{binade} ulp"
    if derivation.is_enclosed or (isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS)):
        return f"error ≈ {signed_text(rounded_decimal(ulps, 8))} ulp"
    if not ulps:
        return "exact"
    plain = derivation.operation == "round_to_integral" or (not result.magnitude and abs(ulps) > 1)
    if plain:
        # The error of an integer result is in units of 1. If the result underflowed to zero, ulps are of little use.
        integer = integer_not_held(derivation)
        origin = "" if integer is None else f" from the integer {brief(integer)}"
        return f"error {plain_error(ulps * result.ulp.as_fraction())}{origin}"
    return f"error {ulps_text(ulps)} ulp"


def integer_not_held(derivation: Derivation) -> Exact | None:
    """Return the integer that round-to-integral computed, if the result's format cannot represent it; else None."""
    truth, rounded = derivation.truth, derivation.rounded
    if derivation.operation != "round_to_integral" or rounded is None or not rounded.flags:
        return None
    return truth if isinstance(truth, Exact) else None


def plain_error(error: Fraction) -> str:
    """Return a signed error as text: the exact decimal if it is short, otherwise ≈ and a rounded decimal."""
    decimal = terminating_decimal(error, 40)
    if decimal is not None and len(decimal) <= GLANCE:
        return signed_text(decimal)
    return f"≈ {signed_text(rounded_decimal(error, 8))}"


def flags_line(flags: Flags) -> Line:
    """Return the names of the raised flags, or `no flags`."""
    if not flags:
        return line(Span("no flags", Role.HINT))
    return line(Span(", ".join(name.replace("_", " ") for name in flags.names), Role.FLAG))


def flag_indicators(flags: Flags) -> Line:
    """Return the names of all five flags, each after a full circle (raised) or an empty one.

    There is no line break between a circle and its name.

    >>> "".join(run.text for run in flag_indicators(Flags.INEXACT)).replace(UNBROKEN, " ")
    '○ invalid  ○ divide by zero  ○ overflow  ○ underflow  ● inexact'
    """
    lit = []
    for flag in Flags:
        words = str(flag.name).lower().replace("_", UNBROKEN)
        raised = flag in flags
        lit.append(Span(f"{'●' if raised else '○'}{UNBROKEN}{words}", Role.FLAG if raised else Role.HINT))
    return line(lit[0], *(part for lamp in lit[1:] for part in ("  ", lamp)))


def flags_blocks(flags: Flags, beside: Flags | None = None) -> tuple[Block, ...]:
    """Draw the indicators of all flags of an operation.

    For an fma, `beside` has the flags of the separate multiplication and addition, which are drawn below those of the
    fma.
    """
    if beside is None:
        return (Note(flag_indicators(flags)),)
    ways = (("fused     ", flags), ("separate  ", beside))
    return tuple(Note(line(Span(name, Role.LABEL), flag_indicators(raised))) for name, raised in ways)


def verdict_line(derivation: Derivation) -> Line:
    """Return the error, and the raised flags if there are any."""
    error, flags = error_words(derivation), derivation.flags
    return line(error, ", " * bool(error and flags), flags_line(flags) if flags else ())


def point(digits: str, tail: str = "") -> Line:
    """Return digits with the binary point after the first one, and a `|` before the discarded digits.

    >>> "".join(run.text for run in point("1011", "01"))
    '1.011|01'
    """
    fraction = line(".", Span(digits[1:], Role.SIGNIFICAND)) if len(digits) > 1 else ()
    cut = line("|", Span(tail, Role.LOST)) if tail else ()
    return line(Span(digits[0], Role.IMPLICIT), fraction, cut)


def signed(negative: bool, digits: Line) -> Line:
    """Put a minus sign before digits of a negative number."""
    return line("−", *digits) if negative else digits


def decision(rounded: Rounded, context: Context, integral: bool = False) -> Line:
    """Return the reason for a rounding decision, and the decision, as text.

    For rounding to nearest, the reason is the comparison of the discarded bits with half an ulp. For other directions,
    it is for instance the sign of the number, or the random bits.

    `integral` is true if the number was rounded to an integer.
    """
    if rounded.tail is Tail.ZERO:
        return line("no bits to discard" if rounded.between is None else "a number of the table")
    direction = context.rounding
    verdict = Span("→ +1" if rounded.increment else "→ keep", Role.CHANGED)
    if rounded.between is not None and direction in (Direction.RNE, Direction.RNA):
        if rounded.between.lower == rounded.between.upper:
            return line("beyond the last number")
        return line(f"{_BOUNDARY[rounded.tail]} the boundary ", verdict)
    if direction in (Direction.RNE, Direction.RNA):
        if rounded.tail is not Tail.HALF:
            return line(f"tail {rounded.tail.value} ", verdict)
        if rounded.precision == 1 and not integral:  # with one digit, parity does not decide
            where = "between powers of two" if rounded.kept else "at half the smallest number"
            return line(f"a tie {where} ", verdict)
        reason = f"kept is {'odd' if rounded.odd else 'even'}" if direction is Direction.RNE else "away from zero"
        return line(f"a tie, {reason} ", verdict)
    if direction is Direction.RTO:
        return line(f"inexact, kept is {'odd' if rounded.odd else 'even'} ", verdict)
    if direction.has_few_bits:
        return line(f"draw {rounded.drawn}: {draw_comparison(rounded, context)} ", verdict)
    if direction is Direction.SR:
        relation = "<" if rounded.increment else "≥"
        return line(f"draw {rounded.drawn or 0:#010x} {relation} {rounded.threshold:#010x} ", verdict)
    sign = "negative" if rounded.negative else "positive"
    return line(f"{IN_WORDS[direction]}, {sign} ", verdict)


def draw_comparison(rounded: Rounded, context: Context) -> str:
    """Return, as text, the comparison of two numbers that decides a stochastic rounding with N random bits (P3109).

    >>> from floatlab import read
    >>> rules = Context("SRB", random_bits=3, draw=5)
    >>> draw_comparison(read("1.03", "e4m3", rules).rounded, rules)
    'floor(16 × tail) + 2·5 + 1 = 14 < 16'
    """
    bits, drawn = context.random_bits, rounded.drawn or 0
    whole, rest = divmod(rounded.rest2 << bits, 2 * rounded.unit)
    parts = f"floor({1 << bits} × tail) + {drawn}"
    if context.rounding is Direction.SRB:
        parts = f"floor({2 << bits} × tail) + 2·{drawn} + 1"
        whole, drawn, bits = (rounded.rest2 << bits) // rounded.unit, 2 * drawn + 1, bits + 1
    elif context.rounding is Direction.SRC:
        parts = f"near_even({1 << bits} × tail) + {drawn}"
        whole += rest > rounded.unit or (rest == rounded.unit and (rounded.sticky_below or whole & 1))
    return f"{parts} = {whole + drawn} {'≥' if rounded.increment else '<'} {1 << bits}"


def cut(rounded: Rounded, format: Format) -> tuple[str, str]:
    """Return the kept digits and the discarded digits; many discarded digits are shortened, with `…` at the end."""
    flushing = rounded.tiny_before and not format.subnormals
    kept = f"{rounded.kept:0{1 if flushing else format.precision}b}"
    shift = rounded.unit.bit_length() - 1
    rest = f"{rounded.rest2 >> 1:0{shift}b}".rstrip("0") if shift else ""
    more = rounded.sticky_below or len(rest) > _TAIL_SHOWN or (shift == GUARD_DIGITS and not rounded.kept)
    return kept, rest[:_TAIL_SHOWN].ljust(_TAIL_SHOWN if more else 1, "0") + "…" if more else rest


def rounded_digits(rounded: Rounded, format: Format) -> Line:
    """Return the number before rounding: the digits kept, a `|` at the rounding position, the discarded digits.

    If the format is defined by a table, return the two entries of the table between which the number lies. Beyond the
    last entry, return only this entry.
    """
    if rounded.between is not None:
        codes = dict.fromkeys((rounded.between.lower, rounded.between.upper))
        return line(
            "between " * (len(codes) > 1), " and ".join(f"{code:#x} {brief(Datum(format, code))}" for code in codes)
        )
    kept, rest = cut(rounded, format)
    return line(signed(rounded.negative, point(kept, rest)), f" × 2^{rounded.quantum + len(kept) - 1}")


def far_away(derivation: Derivation) -> str:
    """Return a remark if a literal is too far out of range to be converted exactly; empty for other literals."""
    fmt = derivation.result.format
    for step in derivation.steps:
        if isinstance(step, Read) and step.exact:
            if step.exact.exponent > fmt.emax + FAR // 2:
                return "far beyond the largest number"
            if step.exact.exponent < fmt.qmin - FAR // 2:
                return "far below the smallest number"
    return ""


def read_line(derivation: Derivation) -> Line:
    """Return the number that was read, before rounding, with a `|` at the rounding position."""
    rounded = derivation.rounded
    if rounded is None:
        return ()
    if far := far_away(derivation):
        return line(far)
    return rounded_digits(rounded, derivation.result.format)


def operand_text(derivation: Derivation) -> str:
    """Return the typed operand, shortened if it is very long."""
    operand = derivation.operands[0]
    if isinstance(operand, Literal):
        return abbreviated(operand.text)
    if isinstance(operand, Datum):
        return f"{operand.format.name} {brief(operand)}"
    return abbreviated(ratio_text(operand, PAGE_DIGITS))


def tininess_words(rounded: Rounded) -> str:
    """Return a remark if the result is tiny before rounding but not after; empty otherwise."""
    return "tiny before rounding, not after" if rounded.tiny_before and not rounded.tiny_after else ""


def replaced_words(derivation: Derivation) -> str:
    """Return a remark if the result takes the place of another value, for instance of a value that overflowed.

    The remark may name options that give another result. The remark is empty if no value was replaced.
    """
    result, flags, context = derivation.result, derivation.flags, derivation.context
    fmt, rounded = result.format, derivation.rounded
    last = derivation.steps[-2] if len(derivation.steps) > 1 else None
    if isinstance(last, Round) and rounded is not None:
        if rounded.overflowed:
            integer = integer_not_held(derivation)
            no_integer = integer is not None and result.is_finite and result.exact.normalized().q < 0
            subject = "" if integer is None else f"{brief(integer)} is "
            return f"{subject}{_overflow_words(result)}{', which is not an integer' * no_integer}"
        if context.flush_results and rounded.significand and not result.magnitude and fmt.zero:
            return "the result is tiny, and tiny results become zero (--ftz)"
        if Flags.INVALID in rounded.flags:
            what = "no zero" if fmt.signed or not rounded.negative else "no sign"
            return f"{fmt.name} has {what}: the result is {brief(result)}"
        if not fmt.zero and not rounded.significand:
            return f"{fmt.name} has no zero: the result is the smallest number (--absent nan gives a NaN)"
    if isinstance(last, Special):
        return _special_words(derivation, last, flags)
    return ""


def _overflow_words(result: Datum) -> str:
    fmt = result.format
    negative = bool(result.sign_bit) and not (result.is_nan and fmt.nan_in_place_of_negative_zero)
    where = f"beyond the largest, {brief(Datum(fmt, fmt.compose(negative, fmt.largest_magnitude)))}"
    if result.is_finite:
        return f"{where}: the result is the largest number"
    if result.is_nan:
        return f"{where}: {fmt.name} has no infinity, so the result is NaN (--overflow saturate gives the largest)"
    return f"{where}: the result is infinity"


def _special_words(derivation: Derivation, last: Special, flags: Flags) -> str:
    result = derivation.result
    fmt = result.format
    infinite = last.rule in (Rule.INFINITY, Rule.INFINITE_RESULT, Rule.DIVISION_BY_ZERO)
    if infinite and not result.is_infinite:
        if Flags.OVERFLOW in flags:
            rule = derivation.context.overflow
            return f"with --overflow {rule.value}, an infinity becomes the largest number"
        what = "no sign" if not fmt.signed else "no infinity"
        others = "--absent zero, --absent error" + ", --overflow saturate" * (fmt.signed and not fmt.infinities)
        return f"{fmt.name} has {what}: the result is {brief(result)} (or choose {others})"
    if not infinite and not result.is_nan and last.rule is not Rule.FLUSHED_INPUT and not fmt.has_nan:
        return f"{fmt.name} has no NaN: the result is {brief(result)} (or choose --absent zero, --absent error)"
    return ""
