"""A second implementation of the arithmetic for comparison, slow and simple: rationals and bisection.

It reads the parameters of a Format and nothing else of floatlab: no derived field, no codec, no
kernel. A magnitude (a code without its sign) is decoded by the formula of IEEE 754-2019 clause
3.4; the neighbours of a rational are found by bisection over magnitudes and *proved* by exact
comparison before they are used; a direction is then chosen by the fraction of the gap between them.
The strip of magnitudes is taken to go on forever, which is the "exponent range unbounded" of 7.4.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

from floatlab.formats import Format

DIRECTIONS = ("RNE", "RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ")
OVERFLOWS = ("native", "saturate", "propagate", "none", "none-nan")
STOCHASTIC = ("SRA", "SRB", "SRC")  # P3109's, with N random bits
HALF = Fraction(1, 2)


class RefusedError(Exception):
    """The format has no code for the operand, and the rules demand an error."""


class Rules(NamedTuple):
    """The rules of a Context, as the texts that users type; `drawn` is the draw of a stochastic rounding."""

    direction: str = "RNE"
    overflow: str = "native"
    absent: str = "largest"
    tininess: str = "after"
    flush_results: bool = False
    drawn: int = 0
    bits: int = 16
    negative: str = "native"


NEAREST = Rules()


class Meaning(NamedTuple):
    """The meaning of a code: `kind` is finite, infinite, nan or unsupported."""

    kind: str
    negative: bool
    value: Fraction | None = None


# --- codes ------------------------------------------------------------------------------------------------


def trailing(fmt: Format) -> int:
    return fmt.precision - 1


def parts(fmt: Format, magnitude: int) -> tuple[int, int]:
    """Return (c, q), where c·2^q is the value of a magnitude, which may be far beyond the largest."""
    t = trailing(fmt)
    field, c = magnitude >> t, magnitude % (1 << t)
    if field == 0 and fmt.zero:
        return (c if fmt.subnormals else 0), 1 - fmt.bias - t
    return c + (1 << t), field - fmt.bias - t


def value_of(fmt: Format, magnitude: int) -> Fraction:
    c, q = parts(fmt, magnitude)
    return Fraction(c << q) if q >= 0 else Fraction(c, 1 << -q)


def largest_magnitude(fmt: Format) -> int:
    """Return the last finite magnitude: the number of magnitudes, minus the NaNs, minus infinity."""
    return (1 << (fmt.exponent_bits + trailing(fmt))) - fmt.nans - (1 if fmt.infinities else 0) - 1


def least_exponent(fmt: Format) -> int:
    return (1 if fmt.zero else 0) - fmt.bias


def code_of(fmt: Format, negative: bool, magnitude: int) -> int:
    """Return the code of a sign and a magnitude: fields side by side, x87's integer bit between them."""
    t = trailing(fmt)
    field, rest = divmod(magnitude, 1 << t)
    code = field
    if fmt.explicit_integer_bit:
        code = 2 * code + (1 if field else 0)
    code = (code << t) + rest
    sign = 1 if negative else 0
    return code + (sign << (fmt.exponent_bits + t + (1 if fmt.explicit_integer_bit else 0)))


def zero_code(fmt: Format, negative: bool) -> int:
    return code_of(fmt, negative and fmt.negative_zero, 0)


def decode(fmt: Format, code: int) -> Meaning:
    """Decode a code field by field."""
    t, w = trailing(fmt), fmt.exponent_bits
    rest, code = code % (1 << t), code >> t
    integer_bit = None
    if fmt.explicit_integer_bit:
        integer_bit, code = code % 2, code >> 1
    field, negative = code % (1 << w), bool(code >> w)
    if integer_bit is not None:
        if field and not integer_bit:
            return Meaning("unsupported", negative)
        if integer_bit and not field:
            field = 1  # the value of a pseudo-denormal is 1.rest · 2^emin
    magnitude = (field << t) + rest
    if magnitude > largest_magnitude(fmt):
        infinite = fmt.infinities and magnitude == largest_magnitude(fmt) + 1
        return Meaning("infinite" if infinite else "nan", negative)
    value = value_of(fmt, magnitude)
    if negative and not value and not fmt.negative_zero and fmt.zero and magnitude == 0:
        return Meaning("nan", True)
    return Meaning("finite", negative, -value if negative else value)


def nan_code(fmt: Format, negative: bool = False) -> int | None:
    """Return the default NaN's code; None where the format has no NaN."""
    t, last = trailing(fmt), (1 << (fmt.exponent_bits + trailing(fmt))) - 1
    if fmt.nans:
        if fmt.infinities and t > 1 and fmt.nans == (1 << t) - 1:
            last = largest_magnitude(fmt) + 1 + (1 << (t - 1))  # quiet, payload 0 (6.2.1)
        return code_of(fmt, negative and fmt.signed, last)
    if fmt.signed and fmt.zero and not fmt.negative_zero:
        return code_of(fmt, True, 0)
    return None


# --- neighbours -------------------------------------------------------------------------------------------


def compare(n: int, d: int, c: int, q: int) -> int:
    """Return the sign of n/d − c·2^q."""
    left, right = (n, (c << q) * d) if q >= 0 else (n << -q, c * d)
    return (left > right) - (left < right)


def floor_magnitude(fmt: Format, x: Fraction) -> int | None:
    """Return the magnitude of the greatest number ≤ x (x ≥ 0) on the endless strip; None below all of them."""
    n, d, t = x.numerator, x.denominator, trailing(fmt)
    if not n:
        return 0 if fmt.zero else None
    if compare(n, d, *parts(fmt, 0)) < 0:
        return None
    field = n.bit_length() - d.bit_length() + fmt.bias  # off by one at most; proved below
    low, high = max(field - 1, 0) << t, max(field + 2, 1) << t
    while high - low > 1:
        middle = (low + high) // 2
        if compare(n, d, *parts(fmt, middle)) >= 0:
            low = middle
        else:
            high = middle
    assert compare(n, d, *parts(fmt, low)) >= 0
    assert compare(n, d, *parts(fmt, low + 1)) < 0
    return low if parts(fmt, low)[0] else 0


def floor_power(x: Fraction) -> int:
    """Return e with 2^e ≤ x < 2^(e+1)."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    if compare(x.numerator, x.denominator, 1, e) < 0:
        e -= 1
    assert compare(x.numerator, x.denominator, 1, e) >= 0
    assert compare(x.numerator, x.denominator, 1, e + 1) < 0
    return e


# --- rounding ---------------------------------------------------------------------------------------------


def goes_up(fmt: Format, rules: Rules, negative: bool, odd: bool, position: Fraction) -> bool:
    """Return whether the larger of two neighbouring magnitudes is chosen; x is at 0 < position < 1 between them."""
    direction = rules.direction
    if direction in ("RNE", "RNA"):
        if position != HALF:
            return position > HALF
        if direction == "RNA" or (fmt.precision == 1 and not fmt.ties_to_even_code):
            return True  # 4.3.1: at one digit, neither or both are even
        return odd
    if direction == "SR":
        return rules.drawn < (position.numerator << 32) // position.denominator
    if direction in STOCHASTIC:
        return _drawn_up(direction, position, rules.drawn, rules.bits)
    return {"RTZ": False, "RAZ": True, "RTP": not negative, "RTN": negative, "RTO": not odd}[direction]


def _drawn_up(direction: str, position: Fraction, drawn: int, bits: int) -> bool:
    """Add the draw to the fraction as P3109's interim report 4.0 defines RoundAway; round() takes ties to even."""
    if direction == "SRA":
        return position * 2**bits // 1 + drawn >= 2**bits
    if direction == "SRB":
        return position * 2 ** (bits + 1) // 1 + 2 * drawn + 1 >= 2 ** (bits + 1)
    return round(position * 2**bits) + drawn >= 2**bits


def is_p3109(fmt: Format) -> bool:
    return fmt.ties_to_even_code


def is_tiny(fmt: Format, rules: Rules, x: Fraction, negative: bool) -> bool:
    """Return whether a nonzero magnitude is tiny (7.5): before rounding, or after rounding with unbounded exponents."""
    least = Fraction(2) ** least_exponent(fmt)
    if x >= least:
        return False
    if rules.tininess == "before":
        return True
    e = floor_power(x)
    if e + 1 < least_exponent(fmt):
        return True
    unit = Fraction(2) ** (e - trailing(fmt))
    kept, rest = divmod(x, unit)
    if rest:
        # The codes of an endless strip downwards: each binade has 2^t of them.
        odd = bool(((e + fmt.bias - 1) * (1 << trailing(fmt)) + kept) % 2)
        if goes_up(fmt, rules, negative, odd, rest / unit):
            kept += 1
    return kept * unit < least


def stand_in(fmt: Format, rules: Rules) -> int:
    """Return the substitute for an operand without a code, with a plus sign: NaN if the format has one."""
    if rules.absent == "error":
        raise RefusedError
    if rules.absent == "zero":
        return 0
    nan = nan_code(fmt)
    return nan if nan is not None else code_of(fmt, False, largest_magnitude(fmt))


def project(fmt: Format, x: Fraction, rules: Rules = NEAREST, negative: bool = False) -> tuple[int, frozenset[str]]:
    """Round a rational into a format; return the code and the flags raised. `negative` is the sign of a zero."""
    if x:
        negative = x < 0
    if rules.negative == "drop" and not fmt.signed:
        negative = False
    x = abs(x)
    if not x:
        return _project_zero(fmt, rules, negative)
    low = floor_magnitude(fmt, x)
    exact = low is not None and value_of(fmt, low) == x
    if exact:
        magnitude = low
    else:
        below = Fraction(0) if low is None else value_of(fmt, low)
        above = 0 if low is None else low + 1 if below or fmt.subnormals else 1 << trailing(fmt)
        position = (x - below) / (value_of(fmt, above) - below)
        odd = low is None or bool(low % 2)
        magnitude = above if goes_up(fmt, rules, negative, odd, position) else low
    tiny = is_tiny(fmt, rules, x, negative)
    if negative and not fmt.signed:
        if magnitude != 0 or not fmt.zero:
            return _below_zero(fmt, rules, rules.direction)
        negative = False
    if tiny and rules.flush_results and fmt.zero:
        return zero_code(fmt, negative), frozenset(["underflow", "inexact"])
    if magnitude is None:
        magnitude = 0  # a format without zero: the smallest number replaces everything below it
    if magnitude > largest_magnitude(fmt):
        return _overflowed(fmt, rules, negative), frozenset(["overflow", "inexact"])
    flags = [] if exact else ["inexact", "underflow"] if tiny else ["inexact"]
    code = code_of(fmt, negative, magnitude) if magnitude or not fmt.zero else zero_code(fmt, negative)
    return code, frozenset(flags)


def _project_zero(fmt: Format, rules: Rules, negative: bool) -> tuple[int, frozenset[str]]:
    if fmt.zero:
        return zero_code(fmt, negative), frozenset()
    if rules.absent == "error":
        raise RefusedError
    nan = nan_code(fmt)
    if rules.absent == "nan" and nan is not None:
        return nan, frozenset(["invalid"])
    return code_of(fmt, negative and fmt.signed, 0), frozenset(["underflow", "inexact"])


def _below_zero(fmt: Format, rules: Rules, direction: str) -> tuple[int, frozenset[str]]:
    """Handle a negative number that an unsigned format does not have; P3109's report treats zero as its least."""
    clamped = rules.negative == "zero"
    if is_p3109(fmt) and rules.overflow in ("saturate", "propagate"):
        clamped = True
    if is_p3109(fmt) and rules.overflow in ("none", "none-nan") and direction in ("RTZ", "RTP"):
        clamped = True
    if clamped:
        return 0, frozenset(["overflow", "inexact"])
    return stand_in(fmt, rules), frozenset(["invalid"])


def _overflowed(fmt: Format, rules: Rules, negative: bool) -> int:
    """Return the result of an overflow (7.4): directions that never step past a number stay at the largest.

    With P3109's SatNone (`none`), rounding to odd gives whichever of the largest number and ∞ is odd. In its executable
    specification (`none-nan`), it always gives ∞, or NaN if there is no ∞.
    """
    largest = largest_magnitude(fmt)
    stays = rules.direction == "RTZ" or rules.direction == ("RTP" if negative else "RTN")
    if rules.direction == "RTO":
        stays = {"none": largest % 2 == 1, "none-nan": False}.get(rules.overflow, True)
    if rules.overflow in ("native", "none", "none-nan") and not stays:
        if fmt.infinities:
            return code_of(fmt, negative, largest + 1)
        nan = None if rules.overflow == "none" else nan_code(fmt, negative)
        if nan is not None:
            return nan
    return code_of(fmt, negative, largest)


def project_infinity(fmt: Format, negative: bool, rules: Rules = NEAREST) -> tuple[int, frozenset[str]]:
    """Round ±∞: ∞ where the format has it, the largest where the rule saturates, else a stand-in with invalid."""
    if negative and not fmt.signed:
        if rules.negative != "drop":
            return _below_zero(fmt, rules, "")
        negative = False
    saturated = code_of(fmt, negative, largest_magnitude(fmt)), frozenset(["overflow", "inexact"])
    if rules.overflow == "saturate":
        return saturated
    if fmt.infinities:
        return code_of(fmt, negative, largest_magnitude(fmt) + 1), frozenset()
    if rules.overflow == "none" or (rules.overflow == "propagate" and is_p3109(fmt)):
        return saturated
    code = stand_in(fmt, rules)
    if rules.absent != "zero":
        nan = nan_code(fmt, negative)
        code = nan if nan is not None else code_of(fmt, negative, largest_magnitude(fmt))
    return code, frozenset(["invalid"])
