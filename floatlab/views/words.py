"""Numbers and verdicts in words: what a row of a page says about a rounding, an error, a special value."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.numbers import Datum, Derivation, Direction, Flags, NumberClass, Rounded, Tail
from floatlab.numbers.decimals import (
    exact_decimal,
    exact_text,
    ratio_text,
    rounded_decimal,
    shortest,
    terminating_decimal,
)
from floatlab.numbers.exact import SquareRoot
from floatlab.numbers.literals import Infinity, Literal
from floatlab.numbers.projection import GUARD_DIGITS
from floatlab.numbers.ratio import FAR, Ratio
from floatlab.numbers.steps import Read
from floatlab.views.fields import point
from floatlab.views.page import Line, Role, Run, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

# On a page a decimal is complete up to this many digits (binary64's longest has 767), symbolic past it.
PAGE_DIGITS = 800
# A value is quoted exactly in passing up to this many characters, else as its shortest decimal.
GLANCE = 20
_TAIL_SHOWN = 4
# Errors are computed exactly for numbers up to this many bits; past it from the digits the rounding saw.
EXACT_ERROR_BITS = 200_000


def brief(datum: Datum) -> str:
    """Return the value in a few characters: exact where that is short, else the shortest that reads back."""
    if datum.is_finite:
        exact = exact_decimal(datum.exact, GLANCE)
        if len(exact) <= GLANCE and "^" not in exact:
            return exact
    return shortest(datum)


def equals(datum: Datum) -> str:
    """Return `= value` where the value is exact in a glance, else `≈ value`."""
    text = brief(datum)
    exact = not datum.is_finite or exact_text(datum, GLANCE) == text
    return f"{'=' if exact else '≈'} {text}"


def abbreviated(text: str, limit: int = 44) -> str:
    """Shorten a long literal, saying how long it is."""
    return text if len(text) <= limit else f"{text[:24]}…{text[-6:]} ({len(text):,} characters)"


def ulps_text(ulps: Fraction) -> str:
    """Return an error in ulps: complete where that is short, a fraction where that is, else rounded after ≈."""
    decimal = terminating_decimal(ulps, 40)
    if decimal is not None and len(decimal) <= GLANCE:
        return signed_text(decimal)
    nearby = signed_text(rounded_decimal(ulps, 8))
    if ulps.denominator < 1000 and abs(ulps.numerator) < 1_000_000 and decimal is None:
        return signed_text(f"{ulps.numerator}/{ulps.denominator}") + f" ≈ {nearby}"
    return f"≈ {nearby}"


def signed_text(text: str) -> str:
    """Give a number an explicit sign."""
    if text.startswith("-"):
        return f"−{text[1:]}"
    return text if text == "0" else f"+{text}"


def error_words(derivation: Derivation) -> str:
    """Say how far the result is from the truth."""
    truth = derivation.truth
    if truth is None or not derivation.result.is_finite:
        return ""
    if isinstance(truth, Ratio) and not short(truth):
        if not derivation.result.exact:
            return f"error {signed_text(ratio_text(truth.replace(negative=not truth.negative), PAGE_DIGITS))}"
        return _enclosed_error(derivation)
    if isinstance(truth, SquareRoot):
        bounds = derivation.error_bounds
        assert bounds is not None
        middle = (bounds[0] + bounds[1]) / 2 / derivation.result.ulp.as_fraction()
        return f"error ≈ {signed_text(rounded_decimal(middle, 8))} ulp"
    ulps = derivation.error_ulps
    if ulps is None or not ulps:
        return "exact"
    if not derivation.result.magnitude and abs(ulps) > 1:
        # Units of the smallest number say little about a zero that should have been large.
        return f"error {signed_text(rounded_decimal(derivation.error or ulps, 8))}"
    return f"error {ulps_text(ulps)} ulp"


def short(truth: Ratio) -> bool:
    """Say whether a number is short enough to compute an exact error with it while somebody waits."""
    if not truth.expandable:
        return False
    bits = truth.numerator.bit_length() + truth.denominator.bit_length() + abs(truth.twos) + 4 * abs(truth.tens)
    return bits < EXACT_ERROR_BITS


def _enclosed_error(derivation: Derivation) -> str:
    """Say the error of a literal too long to write out, from the digits that the rounding saw."""
    read = next((step for step in derivation.steps if isinstance(step, Read)), None)
    if read is None or abs(read.exact.exponent) > FAR:
        return "error too large to write out"
    result = derivation.result
    error = (result.exact - read.exact).as_fraction() / result.ulp.as_fraction()
    return f"error ≈ {signed_text(rounded_decimal(error, 8))} ulp"


def flags_line(flags: Flags) -> Line:
    """Name the flags raised, or say that there are none."""
    if not flags:
        return line(Run("no flags", Role.HINT))
    return line(Run(", ".join(name.replace("_", " ") for name in flags.names), Role.FLAG))


_REASONS = {
    Direction.RTZ: "toward zero",
    Direction.RTP: "toward +∞",
    Direction.RTN: "toward −∞",
    Direction.RAZ: "away from zero",
}


def decision(rounded: Rounded, direction: Direction) -> Line:
    """Say where the tail stood and what the direction made of it."""
    if rounded.tail is Tail.ZERO:
        return line("nothing to cut off")
    verdict = Run("→ +1" if rounded.increment else "→ keep", Role.CHANGED)
    if direction in (Direction.RNE, Direction.RNA):
        if rounded.tail is not Tail.HALF:
            return line(f"tail {rounded.tail.value} ", verdict)
        if rounded.precision == 1:
            return line("a tie between powers of two ", verdict)
        reason = f"kept is {'odd' if rounded.odd else 'even'}" if direction is Direction.RNE else "away from zero"
        return line(f"a tie, {reason} ", verdict)
    if direction is Direction.RTO:
        return line(f"inexact, kept is {'odd' if rounded.odd else 'even'} ", verdict)
    if direction is Direction.SR:
        threshold = (rounded.rest2 << 31) // rounded.unit
        relation = "<" if rounded.increment else "≥"
        return line(f"draw {rounded.drawn or 0:#010x} {relation} {threshold:#010x} ", verdict)
    sign = "negative" if rounded.negative else "positive"
    return line(f"{_REASONS[direction]}, {sign} ", verdict)


def cut(rounded: Rounded, format: Format) -> tuple[str, str]:
    """Return the digits kept (the first before the point) and those cut off, with `…` where more follow."""
    flushing = rounded.tiny_before and not format.subnormals
    kept = f"{rounded.kept:0{1 if flushing else format.precision}b}"
    shift = rounded.unit.bit_length() - 1
    rest = f"{rounded.rest2 >> 1:0{shift}b}".rstrip("0") if shift else ""
    more = rounded.sticky_below or len(rest) > _TAIL_SHOWN or (shift == GUARD_DIGITS and not rounded.kept)
    return kept, rest[:_TAIL_SHOWN].ljust(_TAIL_SHOWN if more else 1, "0") + "…" if more else rest


def far_away(derivation: Derivation) -> str:
    """Say that a literal lies so far outside the range that another number stood in for it, or nothing."""
    fmt = derivation.result.format
    for step in derivation.steps:
        if isinstance(step, Read) and step.exact:
            if step.exact.exponent > fmt.emax + FAR // 2:
                return "far beyond the largest number"
            if step.exact.exponent < fmt.qmin - FAR // 2:
                return "far below the smallest number"
    return ""


def read_line(derivation: Derivation) -> Line:
    """Show the number as the rounding saw it: kept digits, the cut, the tail."""
    rounded = derivation.rounded
    if rounded is None:
        return ()
    if far := far_away(derivation):
        return line(far)
    kept, rest = cut(rounded, derivation.result.format)
    return line(point(kept, rest), f" × 2^{rounded.quantum + len(kept) - 1}")


def operand_text(derivation: Derivation) -> str:
    """Return what was typed, shortened where it is very long."""
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
    """Return one line about a value that is not an ordinary number, or nothing."""
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
    magnitude, largest = datum.magnitude, fmt.largest_magnitude
    side = "negative " if datum.sign_bit else ""
    if not datum.is_canonical:
        return "a pseudo-denormal: the integer bit is set over a zero exponent; it is written back as E 1"
    if magnitude < fmt.smallest_normal_magnitude:
        lead = f"the smallest {side}number; " if magnitude == 1 else ""
        digits = datum.trailing_significand.bit_length()
        return (
            f"{lead}subnormal: below 2^{fmt.emin} the exponent stays and leading digits go, "
            f"{digits} of {fmt.precision} {'is' if digits == 1 else 'are'} left"
        )
    if magnitude == largest:
        return f"the largest finite {side}number"
    if magnitude == fmt.smallest_magnitude:
        return f"the smallest {side}number; {fmt.name} has no zero" if not fmt.zero else f"the smallest {side}number"
    if magnitude == fmt.smallest_normal_magnitude:
        return f"the smallest normal {side}number".replace("normal negative", "negative normal")
    step = datum.quantum_exponent
    if step > 0:
        limit = 1 << fmt.precision
        shown = f" = {limit}" if fmt.precision < 64 else ""
        return f"beyond 2^{fmt.precision}{shown} not every integer exists: the step here is " + (
            f"{1 << step}" if step < 40 else f"2^{step}"
        )
    return ""


def replaced_words(derivation: Derivation) -> str:
    """Say what took the place of a number out of range or a value without a code, and what else could be asked for."""
    result, flags = derivation.result, derivation.flags
    fmt = result.format
    if Flags.OVERFLOW in flags:
        where = f"beyond the largest, {brief(Datum(fmt, fmt.compose(bool(result.sign_bit), fmt.largest_magnitude)))}"
        if result.is_finite:
            return f"{where}: the largest stands for it"
        if result.is_nan:
            return f"{where}: {fmt.name} has no infinity, so NaN (--overflow saturate gives the largest)"
        return f"{where}: infinity"
    rounded = derivation.rounded
    if rounded is not None and derivation.context.flush_results and rounded.significand and not result.magnitude:
        return "the result is tiny, and tiny results become zero (--ftz)"
    if Flags.INVALID in flags and derivation.operation in ("read", "convert"):
        others = ["--absent zero", "--absent error"]
        if isinstance(derivation.operands[0], Literal) and isinstance(derivation.operands[0].value, Infinity):
            others.append("--overflow saturate")
        return f"{fmt.name} has no code for this: {brief(result)} stands for it (or choose {', '.join(others)})"
    return ""
