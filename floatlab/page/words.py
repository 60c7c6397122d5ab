"""Numbers and verdicts in words: text for a rounding, an error or a special value on a page."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.numbers import Datum, Derivation, Direction, Flags, NumberClass, Rounded, Tail
from floatlab.numbers.datum import shortest
from floatlab.numbers.decimals import decimal_within, ratio_text, rounded_decimal, terminating_decimal
from floatlab.numbers.exact import FAR, GUARD_DIGITS, Exact, Literal, Ratio
from floatlab.numbers.rounding import IN_WORDS
from floatlab.numbers.steps import EXACT_ERROR_BITS, Read, Round, Rule, Special
from floatlab.page.model import Block, Line, Note, Role, Span, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

# On a page a decimal is complete up to this many digits (binary64's longest has 767), symbolic beyond that.
PAGE_DIGITS = 800
# Values in running text are exact up to this many characters, else the shortest decimal.
GLANCE = 20
_BOUNDARY = {Tail.BELOW_HALF: "short of", Tail.HALF: "a tie, on", Tail.ABOVE_HALF: "past"}
UNBROKEN = "\N{NO-BREAK SPACE}"  # prevents a line break
_TAIL_SHOWN = 4
_FIGURES = 5  # a rounded number has at least this many digits


def brief(number: Datum | Exact) -> str:
    """Return a number in a few characters: the exact decimal if it is short, else a power of two, else rounded after ≈.

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
    if isinstance(number, Datum):  # enough digits to distinguish it from its neighbours
        figures = shortest(number).partition("e")[0].replace("-", "").replace(".", "").strip("0")
        digits = max(len(figures), digits)
    return f"≈ {rounded_decimal(x.as_fraction(), digits)}"


def equals(datum: Datum) -> str:
    """Return `= value` if the exact value is short enough, else `≈ value`."""
    text = brief(datum)
    return text if text.startswith("≈") else f"= {text}"


def abbreviated(text: str, limit: int = 44) -> str:
    """Shorten a long literal, and append its length."""
    return text if len(text) <= limit else f"{text[:24]}…{text[-6:]} ({len(text):,} characters)"


def plural(n: int, noun: str, nouns: str = "") -> str:
    """Return the singular or plural of a noun; `nouns` gives an irregular plural."""
    return noun if n == 1 else nouns or f"{noun}s"


def counted(n: int, noun: str, nouns: str = "") -> str:
    """Return a number with its noun; `nouns` gives an irregular plural.

    >>> counted(1, "digit"), counted(1234, "digit")
    ('1 digit', '1,234 digits')
    """
    return f"{n:,} {plural(n, noun, nouns)}"


def listed(names: list[str], joined: str = "and") -> str:
    """Return names as a list in a sentence.

    >>> listed(["a"]), listed(["a", "b", "c"]), listed(["a", "b"], "or")
    ('a', 'a, b and c', 'a or b')
    """
    *head, last = names
    return f"{', '.join(head)} {joined} {last}" if head else last


def bracketed(number: object) -> str:
    """Put a negative number in brackets, for use after an operator.

    >>> bracketed(-3), bracketed("0.5")
    ('(-3)', '0.5')
    """
    text = str(number)
    return f"({text})" if text.startswith("-") else text


def ulps_text(ulps: Fraction) -> str:
    """Return an error in ulps: exact if the decimal is short, else as a short fraction, else rounded after ≈."""
    simple = ulps.denominator < 1000 and abs(ulps.numerator) < 1_000_000
    if simple and terminating_decimal(ulps, 40) is None:
        return signed_text(f"{ulps.numerator}/{ulps.denominator}") + f" {plain_error(ulps)}"
    return plain_error(ulps)


def signed_text(text: str) -> str:
    """Give a number an explicit sign."""
    if text.startswith("-"):
        return f"−{text[1:]}"
    return text if text == "0" else f"+{text}"


def error_words(derivation: Derivation) -> str:
    """Return the distance of the result from the exact value, as text."""
    truth, result = derivation.truth, derivation.result
    if truth is None or not result.is_finite:
        return ""
    if isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS) and not result.exact:
        return f"error {signed_text(ratio_text(truth.replace(negative=not truth.negative), PAGE_DIGITS))}"
    ulps = derivation.nearby_error_ulps
    if ulps is None:
        binade = derivation.error_binade_ulps
        return "error too large to write out" if binade is None else f"error below 2^{binade} ulp"
    if derivation.is_enclosed or (isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS)):
        return f"error ≈ {signed_text(rounded_decimal(ulps, 8))} ulp"
    if not ulps:
        return "exact"
    plain = derivation.operation == "round_to_integral" or (not result.magnitude and abs(ulps) > 1)
    if plain:
        # An integer's error is in units of 1; for a result that became zero, ulps of the smallest number say little.
        integer = integer_not_held(derivation)
        origin = "" if integer is None else f" from the integer {brief(integer)}"
        return f"error {plain_error(ulps * result.ulp.as_fraction())}{origin}"
    return f"error {ulps_text(ulps)} ulp"


def integer_not_held(derivation: Derivation) -> Exact | None:
    """Return the integer computed by round-to-integral if it is not representable in the result's format."""
    truth, rounded = derivation.truth, derivation.rounded
    if derivation.operation != "round_to_integral" or rounded is None or not rounded.flags:
        return None
    return truth if isinstance(truth, Exact) else None


def plain_error(error: Fraction) -> str:
    """Return a signed error: exact if it is short, else rounded after ≈."""
    decimal = terminating_decimal(error, 40)
    if decimal is not None and len(decimal) <= GLANCE:
        return signed_text(decimal)
    return f"≈ {signed_text(rounded_decimal(error, 8))}"


def flags_line(flags: Flags) -> Line:
    """Name the raised flags, or return `no flags`."""
    if not flags:
        return line(Span("no flags", Role.HINT))
    return line(Span(", ".join(name.replace("_", " ") for name in flags.names), Role.FLAG))


def lamps(flags: Flags) -> Line:
    """Name all five flags, each with a full or an empty circle; a circle and its name stay on one line.

    >>> "".join(run.text for run in lamps(Flags.INEXACT)).replace(UNBROKEN, " ")
    '○ invalid  ○ divide by zero  ○ overflow  ○ underflow  ● inexact'
    """
    lit = []
    for flag in Flags:
        words = str(flag.name).lower().replace("_", UNBROKEN)
        raised = flag in flags
        lit.append(Span(f"{'●' if raised else '○'}{UNBROKEN}{words}", Role.FLAG if raised else Role.HINT))
    return line(lit[0], *(part for lamp in lit[1:] for part in ("  ", lamp)))


def flags_blocks(flags: Flags, beside: Flags | None = None) -> tuple[Block, ...]:
    """Draw the indicators of all flags, for one operation or for a fused one and its separate counterpart."""
    if beside is None:
        return (Note(lamps(flags)),)
    ways = (("fused     ", flags), ("separate  ", beside))
    return tuple(Note(line(Span(name, Role.LABEL), lamps(raised))) for name, raised in ways)


def verdict_line(derivation: Derivation) -> Line:
    """Return the error and the raised flags, if any."""
    error, flags = error_words(derivation), derivation.flags
    return line(error, ", " * bool(error and flags), flags_line(flags) if flags else ())


def point(digits: str, tail: str = "") -> Line:
    """Put the binary point after the first digit, and a `|` before the discarded digits.

    >>> "".join(run.text for run in point("1011", "01"))
    '1.011|01'
    """
    fraction = line(".", Span(digits[1:], Role.SIGNIFICAND)) if len(digits) > 1 else ()
    cut = line("|", Span(tail, Role.LOST)) if tail else ()
    return line(Span(digits[0], Role.IMPLICIT), fraction, cut)


def signed(negative: bool, digits: Line) -> Line:
    """Put a minus sign before digits of a negative number."""
    return line("−", *digits) if negative else digits


def decision(rounded: Rounded, direction: Direction, integral: bool = False) -> Line:
    """Return how the discarded bits compare with half an ulp, and which way the mode rounded.

    `integral`: they were split at the binary point.
    """
    if rounded.tail is Tail.ZERO:
        return line("nothing to cut off" if rounded.between is None else "a number of the table")
    verdict = Span("→ +1" if rounded.increment else "→ keep", Role.CHANGED)
    if rounded.between is not None and direction in (Direction.RNE, Direction.RNA):
        if rounded.between.lower == rounded.between.upper:
            return line("beyond the last number")
        return line(f"{_BOUNDARY[rounded.tail]} the boundary ", verdict)
    if direction in (Direction.RNE, Direction.RNA):
        if rounded.tail is not Tail.HALF:
            return line(f"tail {rounded.tail.value} ", verdict)
        if rounded.precision == 1 and not integral:  # neighbours with one digit each: no parity decides
            where = "between powers of two" if rounded.kept else "at half the smallest number"
            return line(f"a tie {where} ", verdict)
        reason = f"kept is {'odd' if rounded.odd else 'even'}" if direction is Direction.RNE else "away from zero"
        return line(f"a tie, {reason} ", verdict)
    if direction is Direction.RTO:
        return line(f"inexact, kept is {'odd' if rounded.odd else 'even'} ", verdict)
    if direction is Direction.SR:
        relation = "<" if rounded.increment else "≥"
        return line(f"draw {rounded.drawn or 0:#010x} {relation} {rounded.threshold:#010x} ", verdict)
    sign = "negative" if rounded.negative else "positive"
    return line(f"{IN_WORDS[direction]}, {sign} ", verdict)


def cut(rounded: Rounded, format: Format) -> tuple[str, str]:
    """Return the digits kept (the first before the point) and the discarded digits, with `…` if more follow."""
    flushing = rounded.tiny_before and not format.subnormals
    kept = f"{rounded.kept:0{1 if flushing else format.precision}b}"
    shift = rounded.unit.bit_length() - 1
    rest = f"{rounded.rest2 >> 1:0{shift}b}".rstrip("0") if shift else ""
    more = rounded.sticky_below or len(rest) > _TAIL_SHOWN or (shift == GUARD_DIGITS and not rounded.kept)
    return kept, rest[:_TAIL_SHOWN].ljust(_TAIL_SHOWN if more else 1, "0") + "…" if more else rest


def rounded_digits(rounded: Rounded, format: Format) -> Line:
    """Write a number as its rounding received it: the digits kept, the rounding position, the discarded digits.

    In a format given by a table: the entries around it.
    """
    if rounded.between is not None:
        codes = dict.fromkeys((rounded.between.lower, rounded.between.upper))
        return line(
            "between " * (len(codes) > 1), " and ".join(f"{code:#x} {brief(Datum(format, code))}" for code in codes)
        )
    kept, rest = cut(rounded, format)
    return line(signed(rounded.negative, point(kept, rest)), f" × 2^{rounded.quantum + len(kept) - 1}")


def far_away(derivation: Derivation) -> str:
    """Return a remark if a literal is so far out of range that a substitute was rounded in its place."""
    fmt = derivation.result.format
    for step in derivation.steps:
        if isinstance(step, Read) and step.exact:
            if step.exact.exponent > fmt.emax + FAR // 2:
                return "far beyond the largest number"
            if step.exact.exponent < fmt.qmin - FAR // 2:
                return "far below the smallest number"
    return ""


def read_line(derivation: Derivation) -> Line:
    """Write the number that was read as its rounding received it."""
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


_SPECIALS = {
    NumberClass.POSITIVE_INFINITY: "positive infinity",
    NumberClass.NEGATIVE_INFINITY: "negative infinity",
    NumberClass.POSITIVE_ZERO: "positive zero",
    NumberClass.NEGATIVE_ZERO: "negative zero: equal to zero, with the other sign",
    NumberClass.UNSUPPORTED: "no number: the integer bit contradicts the exponent (Intel calls it an unnormal)",
}


def in_words(datum: Datum) -> str:
    """Return one line about a value that is not an ordinary number; empty for other values."""
    fmt, kind = datum.format, datum.number_class
    if datum.is_nan:
        if not fmt.ieee_nans:
            codes = (
                "the only NaN"
                if fmt.nans + fmt.nan_in_place_of_negative_zero == 1 and not (fmt.signed and fmt.nans)
                else "a NaN"
            )
            return f"{codes}: not a number; {fmt.name} has no payloads and no signaling NaNs"
        quiet = "signaling: using it raises invalid" if datum.is_signaling else "quiet"
        return f"not a number, {quiet}; payload {datum.payload and hex(datum.payload)}"
    if kind in _SPECIALS:
        return _SPECIALS[kind]
    if not datum.is_canonical:
        return "a pseudo-denormal: the integer bit is set over a zero exponent; it is written back as E 1"
    magnitude = datum.magnitude
    if magnitude < fmt.smallest_normal_magnitude and fmt.is_table:
        return "denormal: a power of two below the smallest number with a mantissa"
    if magnitude < fmt.smallest_normal_magnitude:
        lead = f"{_smallest('number', datum)}; " if magnitude == 1 else ""
        digits = datum.trailing_significand.bit_length()
        return (
            f"{lead}subnormal: below 2^{fmt.emin} the exponent stays and leading digits go, "
            f"{digits} of {fmt.precision} {'is' if digits == 1 else 'are'} left"
        )
    if datum in (datum.next_down, datum.next_up) or magnitude == fmt.largest_magnitude:
        return "the finite number furthest below zero" if datum.sign_bit else "the largest finite number"
    if magnitude == fmt.smallest_magnitude:
        return _smallest("number", datum) + ("" if fmt.zero else f"; {fmt.name} has no zero")
    if magnitude == fmt.smallest_normal_magnitude:
        return _smallest("normal number", datum)
    if fmt.is_table:
        return ""
    step = datum.quantum_exponent
    if step > 0:
        limit = 1 << fmt.precision
        shown = f" = {limit}" if fmt.precision < 64 else ""
        return f"beyond 2^{fmt.precision}{shown} not every integer exists: the step here is " + (
            f"{1 << step}" if step < 40 else f"2^{step}"
        )
    return ""


def _smallest(what: str, datum: Datum) -> str:
    return f"the negative {what} nearest to zero" if datum.sign_bit else f"the smallest positive {what}"


def tininess_words(rounded: Rounded) -> str:
    """Return a remark if the result is tiny before rounding but not after."""
    return "tiny before rounding, not after" if rounded.tiny_before and not rounded.tiny_after else ""


def replaced_words(derivation: Derivation) -> str:
    """Return a remark if the result replaces an overflowed or unrepresentable value, with options that change it."""
    result, flags, context = derivation.result, derivation.flags, derivation.context
    fmt, rounded = result.format, derivation.rounded
    last = derivation.steps[-2] if len(derivation.steps) > 1 else None
    if isinstance(last, Round) and rounded is not None:
        if rounded.overflowed:
            integer = integer_not_held(derivation)
            no_integer = integer is not None and result.is_finite and result.exact.normalized().q < 0
            subject = "" if integer is None else f"{brief(integer)} is "
            return f"{subject}{_overflow_words(result)}{', and is no integer' * no_integer}"
        if context.flush_results and rounded.significand and not result.magnitude and fmt.zero:
            return "the result is tiny, and tiny results become zero (--ftz)"
        if Flags.INVALID in rounded.flags:
            what = "no zero" if fmt.signed or not rounded.negative else "no sign"
            return f"{fmt.name} has {what}: {brief(result)} stands for it"
        if not fmt.zero and not rounded.significand:
            return f"{fmt.name} has no zero: the smallest number stands for it (--absent nan gives a NaN)"
    if isinstance(last, Special):
        return _special_words(derivation, last, flags)
    return ""


def _overflow_words(result: Datum) -> str:
    fmt = result.format
    negative = bool(result.sign_bit) and not (result.is_nan and fmt.nan_in_place_of_negative_zero)
    where = f"beyond the largest, {brief(Datum(fmt, fmt.compose(negative, fmt.largest_magnitude)))}"
    if result.is_finite:
        return f"{where}: the largest stands for it"
    if result.is_nan:
        return f"{where}: {fmt.name} has no infinity, so NaN (--overflow saturate gives the largest)"
    return f"{where}: infinity"


def _special_words(derivation: Derivation, last: Special, flags: Flags) -> str:
    result = derivation.result
    fmt = result.format
    infinite = last.rule in (Rule.INFINITY, Rule.INFINITE_RESULT, Rule.DIVISION_BY_ZERO)
    if infinite and not result.is_infinite:
        if Flags.OVERFLOW in flags:
            return "an infinity counts as a number too large (--overflow saturate): the largest stands for it"
        what = "no sign" if not fmt.signed else "no infinity"
        others = "--absent zero, --absent error" + ", --overflow saturate" * (fmt.signed and not fmt.infinities)
        return f"{fmt.name} has {what}: {brief(result)} stands for it (or choose {others})"
    if not infinite and not result.is_nan and last.rule is not Rule.FLUSHED_INPUT and not fmt.has_nan:
        return f"{fmt.name} has no NaN: {brief(result)} stands for it (or choose --absent zero, --absent error)"
    return ""
