"""Numbers as text: the shortest decimal that reads back, the complete decimal, C's hexadecimal float, integers."""

from __future__ import annotations

from floatlab.numbers.exact import Exact, Ratio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

    from floatlab.formats import Format

# Complete decimals have up to this many digits (binary128's longest has 11,563); longer numbers are written c * 2^q.
DIGIT_LIMIT = 12_000
# Decimal exponents for positional notation; outside this range, scientific notation.
POSITIONAL = range(-4, 21)


def decimal_text(negative: bool, digits: str, exponent: int, positional: range = POSITIONAL) -> str:
    """Return d.ddd × 10^exponent as text: positional if the exponent is in `positional`, else in scientific notation.

    `digits` has the digits of d.ddd, without the point.

    >>> decimal_text(False, "15", -2), decimal_text(True, "15", 30)
    ('0.015', '-1.5e30')
    """
    digits = digits.rstrip("0") or "0"
    sign = "-" if negative else ""
    if digits == "0":
        return f"{sign}0"
    if exponent not in positional:
        fraction = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{exponent}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole = digits[: exponent + 1].ljust(exponent + 1, "0")
    fraction = digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def exact_decimal(x: Exact, limit: int = DIGIT_LIMIT) -> str:
    """Return the complete decimal of an exact binary number, or `c * 2^q` if the decimal may have over `limit` digits.

    Both texts read back as `x`.

    >>> exact_decimal(Exact(False, 1, -4)), exact_decimal(Exact(True, 3, -99999))
    ('0.0625', '-3 * 2^-99999')
    """
    x = x.normalized()
    sign = "-" if x.negative else ""
    # an upper bound on the digits, in units of 10^−5: log10(2) < 0.30103 and log10(5) < 0.69898
    bound = x.c.bit_length() * 30103 + (x.q * 30103 if x.q > 0 else -x.q * 69898)
    if bound > (limit + 1) * 100_000:
        c = digits_of(x.c) if x.c.bit_length() * 30103 < limit * 100_000 else hex(x.c)
        return f"{sign}{c} * 2^{x.q}"
    digits = digits_of(x.c << x.q if x.q > 0 else x.c * 5**-x.q)
    return decimal_text(x.negative, digits, len(digits) - 1 + min(x.q, 0))


def decimal_within(x: Exact, limit: int) -> str | None:
    """Return the complete decimal of an exact binary number, or None if the decimal takes over `limit` characters.

    >>> decimal_within(Exact(True, 1, -4), 10), decimal_within(Exact(False, 1, -99), 10)
    ('-0.0625', None)
    """
    text = exact_decimal(x, limit)
    return text if len(text) <= limit and "^" not in text else None


def ratio_text(x: Ratio, limit: int = DIGIT_LIMIT) -> str:
    """Return a literal's exact value as text.

    An integer times a power of ten or of two is written as a decimal of at most `limit` significant digits, if that is
    possible. Other numbers are written as a fraction N/D, or as a product with powers of 2 and 10. If a fraction is too
    long to write, the text gives only the lengths of its numerator and denominator. A truncated decimal ends with `…`.

    >>> ratio_text(Ratio(True, 1, 3)), ratio_text(Ratio(False, 1, tens=-999999999))
    ('-1/3', '1e-999999999')
    """
    sign = "-" if x.negative else ""
    if not x.numerator:
        return f"{sign}0"
    if x.denominator == 1 and not x.twos and x.numerator.bit_length() * 30103 <= limit * 100_000:
        digits = digits_of(x.numerator)
        return decimal_text(x.negative, digits, len(digits) - 1 + x.tens) + ("…" if x.truncated else "")
    if x.denominator == 1 and not x.tens:
        return exact_decimal(Exact(x.negative, x.numerator, x.twos), limit)
    powers = f" * 2^{x.twos}" * (x.twos != 0) + f" * 10^{x.tens}" * (x.tens != 0)
    if max(x.numerator, x.denominator).bit_length() * 30103 > limit * 100_000:
        return f"{sign}a fraction of {x.numerator.bit_length():,} by {x.denominator.bit_length():,} bits{powers}"
    below = f"/{digits_of(x.denominator)}" if x.denominator > 1 else ""
    return f"{sign}{digits_of(x.numerator)}{powers}{below}"


def fraction_text(value: Fraction) -> str:
    """Return a rational number as `N/D`, however long.

    >>> from fractions import Fraction
    >>> fraction_text(Fraction(-2, 6))
    '-1/3'
    """
    sign = "-" if value < 0 else ""
    return f"{sign}{digits_of(abs(value.numerator))}/{digits_of(value.denominator)}"


def terminating_decimal(value: Fraction, limit: int = DIGIT_LIMIT) -> str | None:
    """Return the complete decimal of a rational number; None if it never ends, or may have over `limit` digits.

    >>> from fractions import Fraction
    >>> terminating_decimal(Fraction(7, 16)), terminating_decimal(Fraction(1, 3))
    ('0.4375', None)
    """
    d = value.denominator
    twos = (d & -d).bit_length() - 1
    d >>= twos
    fives = 0
    while fives <= limit and d % 5 == 0:
        d //= 5
        fives += 1
    places = max(twos, fives)
    if d != 1 or places + value.numerator.bit_length() * 30103 // 100_000 > limit:
        return None
    digits = digits_of(abs(value.numerator) * 10**places // value.denominator)
    return decimal_text(value < 0, digits, len(digits) - 1 - places)


def rounded_decimal(value: Fraction, digits: int = 6, positional: range = POSITIONAL) -> str:
    """Return the decimal of `digits` significant digits nearest to a rational number, ties to even.

    >>> from fractions import Fraction
    >>> rounded_decimal(Fraction(-2, 3))
    '-0.666667'
    """
    n, d = abs(value.numerator), value.denominator
    if not n:
        return "0"
    # Divide once, with two extra digits: computing a large power of ten is the expensive part.
    places = digits + 2 - (n.bit_length() - d.bit_length()) * 30103 // 100_000
    quotient, below = divmod(n * 10 ** max(places, 0), d * 10 ** max(-places, 0))
    more = len(str(quotient)) - digits
    kept, rest = divmod(quotient, 10**more)
    tie = 2 * rest == 10**more and not below
    kept += kept & 1 if tie else 2 * rest >= 10**more
    text = str(kept)  # one digit longer if it was rounded up to the next power of ten
    return decimal_text(value < 0, text, len(text) - 1 + more - places, positional)


def hexadecimal_float(x: Exact) -> str:
    """Return a number in the form of C's `%a`, with a leading 1 for every nonzero number.

    >>> hexadecimal_float(Exact(False, 0x47C, -10))
    '0x1.1fp+0'
    """
    sign = "-" if x.negative else ""
    if not x.c:
        return f"{sign}0x0p+0"
    below = x.c.bit_length() - 1
    padding = -below % 4
    fraction = (x.c - (1 << below)) << padding
    digits = f"{fraction:0{(below + padding) // 4}x}".rstrip("0") if fraction else ""
    return f"{sign}0x1{'.' * bool(digits)}{digits}p{x.exponent:+d}"


def shortest_decimal(x: Exact, format: Format, magnitude: int) -> str:
    """Return the shortest decimal that reads back (rounding to nearest) as a datum; if several, the nearest to x.

    `x` is the datum's value, and `magnitude` is its code without the sign. The method is that of Steele and White, *How
    to print floating-point numbers accurately* (PLDI 1990), in integer arithmetic. The reals that round to the datum
    form an interval. The search finds the largest power of ten that has a multiple inside this interval.
    """
    if not x.c:
        return "-0" if x.negative else "0"
    # The unit is a quarter of an ulp, so that both halfway points are integers.
    value, scale = 4 * x.c, x.q - 2
    high = value + 2
    if magnitude <= format.smallest_normal_magnitude:
        low = value - (2 if format.subnormals else value // 2)
    else:
        low = value - (1 if magnitude & ((1 << format.trailing_bits) - 1) == 0 else 2)
    if format.trailing_bits or format.ties_to_even_code:
        low_closed = high_closed = magnitude & 1 == 0
    else:
        low_closed, high_closed = True, False  # ties go to the larger magnitude
    return _shortest(x.negative, value, low, low_closed, high, high_closed, scale)


def shortest_within(
    negative: bool, value: Exact, low: Exact, low_closed: bool, high: Exact, high_closed: bool
) -> str:  # fmt: skip
    """Return the shortest decimal in an interval around a magnitude; of several, return the nearest to the magnitude.

    >>> shortest_within(True, Exact(False, 1, 0), Exact(False, 15, -4), True, Exact(False, 9, -3), False)
    '-1'
    """
    q = min(each.q for each in (value, low, high) if each.c)
    a, b, c = (each.scaled(q) if each.c else 0 for each in (low, value, high))
    return _shortest(negative, b, a, low_closed, c, high_closed, q)


def _shortest(
    negative: bool, value: int, low: int, low_closed: bool, high: int, high_closed: bool, scale: int
) -> str:  # fmt: skip
    """Return the shortest decimal in an interval; all numbers are in units of 2^scale."""
    if scale > 0:
        value, low, high, scale = value << scale, low << scale, high << scale, 0
    # Start with a power 10^k so small that multiples of it lie in the interval: first·10^k to last·10^k. Multiply the
    # power by ten while the interval still contains a multiple. Only the short integers `first` and `last` are updated;
    # 10^k, which may be long, is not recomputed.
    k = ((high - low).bit_length() - 1 + scale) * 30103 // 100_000 - 1
    unit, grow = _grid(k, scale)
    first, more = divmod(low * grow, unit)
    first += more > 0 or not low_closed
    last, more = divmod(high * grow, unit)
    last -= not more and not high_closed
    power = 1
    while -(-first // (10 * power)) <= last // (10 * power):
        power, k = 10 * power, k + 1
    first, last = -(-first // power), last // power
    unit, grow = _grid(k, scale)
    digit = min(max(_nearest(value * grow, unit), first), last)
    if digit == 1 and unit > value * grow:
        # The value is below 1·10^k. The numbers 2·10^(k−1) to 9·10^(k−1) also have one digit, and may be nearer.
        finer = _nearest(10 * value * grow, unit)
        inside = 10 * low * grow <= finer * unit if low_closed else 10 * low * grow < finer * unit
        if finer < 10 and inside:
            digit, k = finer, k - 1
    digits = str(digit)
    return decimal_text(negative, digits, len(digits) - 1 + k)


def _grid(k: int, scale: int) -> tuple[int, int]:
    """Return n and d with n/d = 10^k / 2^scale, for scale ≤ 0."""
    return (10**k << -scale, 1) if k > 0 else (1 << -scale, 10**-k)


def _nearest(n: int, d: int) -> int:
    """Return the integer nearest to n/d, ties to even."""
    quotient, rest = divmod(n, d)
    return quotient + (2 * rest > d or (2 * rest == d and quotient & 1))


# Python's int(str) and str(int) are quadratic, and limited to 4,300 digits so that untrusted text cannot stall a
# program. Splitting the digits into halves is faster, and each part stays below the limit.
_CHUNK = 2000


def integer_from_digits(digits: str) -> int:
    """Return the integer that a string of ASCII digits denotes.

    >>> integer_from_digits("9" * 5000) == 10**5000 - 1
    True
    """
    powers: dict[int, int] = {}

    def read(low: int, high: int) -> int:
        length = high - low
        if length <= _CHUNK:
            return int(digits[low:high])
        right = length // 2
        if right not in powers:
            powers[right] = 10**right
        return read(low, high - right) * powers[right] + read(high - right, high)

    return read(0, len(digits)) if digits else 0


def digits_of(n: int) -> str:
    """Return the decimal digits of n ≥ 0, without leading zeros.

    >>> len(digits_of(2**100_000))
    30103
    """
    if n.bit_length() <= 3 * _CHUNK:  # fewer than _CHUNK digits; no power of 10 is needed
        return str(n)
    powers = [10**_CHUNK]
    while powers[-1] <= n:
        powers.append(powers[-1] * powers[-1])

    def write(value: int, level: int) -> str:
        if level < 0:
            return str(value).rjust(_CHUNK, "0")
        high, low = divmod(value, powers[level])
        return write(high, level - 1) + write(low, level - 1)

    return write(n, len(powers) - 1).lstrip("0")
