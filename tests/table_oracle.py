"""A second, slow reading of formats given by a table: bits as text, rationals, and lists searched from end to end.

It imports nothing of floatlab. A `Table` is a list of codes sorted by value, and the boundaries between neighbours;
both come from the definitions: strings of bits are taken apart from the left, as the papers write them. Logarithmic
takums have irrational values; here they are rationals that agree with them in 80 digits, from Decimal's exponential.
"""

from __future__ import annotations

from bisect import bisect_right
from decimal import Context, Decimal
from fractions import Fraction
from functools import cache
from itertools import pairwise
from typing import NamedTuple

TWO = Fraction(2)


class Table(NamedTuple):
    """The numbers of a format in ascending order, and what happens between them and beyond."""

    values: list[Fraction]
    codes: list[int]
    boundaries: list[Fraction]  # between values[i] and values[i + 1]
    ties: str  # even, away, zero or down
    nan: int | None = None
    infinity: tuple[int, int] | None = None  # −∞ and +∞
    overflow: Fraction | None = None  # numbers from this magnitude on round to ∞, to nearest
    negative_zero: int | None = None
    normal: Fraction = Fraction(0)  # the smallest normal magnitude


def posit_value(code: int, width: int) -> Fraction | None:
    """Read a posit (2022): value of the two's complement, regime by counting, two exponent bits, fraction."""
    text = f"{code:0{width}b}"
    if "1" not in text:
        return Fraction(0)
    if text == "1" + "0" * (width - 1):
        return None
    negative = text[0] == "1"
    if negative:
        text = f"{(1 << width) - code:0{width}b}"
    body = text[1:]
    run = len(body) - len(body.lstrip(body[0]))
    regime = run - 1 if body[0] == "1" else -run
    rest = body[run + 1 :]
    exponent = int((rest[:2] + "00")[:2], 2)
    fraction = rest[2:]
    value = (1 + Fraction(int(fraction or "0", 2), 1 << len(fraction))) * TWO ** (4 * regime + exponent)
    return -value if negative else value


def takum_parts(code: int, width: int) -> tuple[int, int, Fraction]:
    """Read a takum: S, D, three bits of regime, characteristic, mantissa, with zeros after a short code."""
    text = f"{code:0{width}b}".ljust(12, "0")
    s, d, regime = int(text[0]), int(text[1]), int(text[2:5], 2)
    r = regime if d else 7 - regime
    tail, mantissa = text[5 : 5 + r], text[5 + r :]
    characteristic = (2**r - 1 if d else -(2 ** (r + 1)) + 1) + int(tail or "0", 2)
    return s, characteristic, Fraction(int(mantissa or "0", 2), 1 << len(mantissa))


def is_special(code: int, width: int) -> bool:
    return f"{code:0{width}b}"[1:].strip("0") == ""


def takum_value(code: int, width: int) -> Fraction | None:
    """Read a linear takum."""
    if is_special(code, width):
        return None if code else Fraction(0)
    s, characteristic, m = takum_parts(code, width)
    return ((1 - 3 * s) + m) * TWO ** ((-1) ** s * (characteristic + s))


def takum_log_value(code: int, width: int) -> Fraction | None:
    """Read a logarithmic takum: (−1)^S·√e^ℓ, where ℓ is (−1)^S·(characteristic + mantissa); 80 digits of it."""
    if is_special(code, width):
        return None if code else Fraction(0)
    s, characteristic, m = takum_parts(code, width)
    half = (-1) ** s * (characteristic + m) / 2  # a Decimal holds it: its denominator is a power of two
    digits = Context(prec=80)
    power = digits.exp(digits.divide(Decimal(half.numerator), Decimal(half.denominator)))
    return (-1) ** s * Fraction(power)


def hif8_value(code: int) -> Fraction | None:
    """Read HiF8: sign, dot prefix, exponent in sign and magnitude with an implied leading one, mantissa."""
    text = f"{code:08b}"
    if text in ("10000000", "01101111", "11101111"):
        return None
    body, sign = text[1:], -1 if text[0] == "1" else 1
    for prefix, length in (("11", 4), ("10", 3), ("01", 2), ("001", 1), ("0001", 0)):
        if body.startswith(prefix):
            rest = body[len(prefix) :]
            field, mantissa = rest[:length], rest[length:]
            exponent = int("1" + field[1:], 2) * (-1 if field[0] == "1" else 1) if field else 0
            return sign * (1 + Fraction(int(mantissa, 2), 1 << len(mantissa))) * TWO**exponent
    return sign * TWO ** (int(body, 2) - 23) if int(body, 2) else Fraction(0)


def to_single(x: Fraction) -> Fraction:
    """Round to the 24 digits of binary32, ties to even (the numbers here are far from its ends)."""
    if not x:
        return x
    e = 0
    while abs(x) / TWO**e >= 2:
        e += 1
    while abs(x) / TWO**e < 1:
        e -= 1
    unit = TWO ** (e - 23)
    return round(x / unit) * unit  # Python rounds a Fraction's ties to even


def listed(values: dict[int, Fraction], ties: str, single: bool = False, **special: object) -> Table:
    ordered = sorted((value, code) for code, value in values.items())
    numbers = [value for value, _ in ordered]
    middles = [(a + b) / 2 for a, b in pairwise(numbers)]
    if single:
        middles = [to_single(x) for x in middles]
    return Table(numbers, [code for _, code in ordered], middles, ties, **special)  # type: ignore[arg-type]


def tapered(width: int, read: object) -> Table:
    """Return the table of posits or linear takums: a boundary is the number whose code has one bit more."""
    order = [*range(1 + (1 << (width - 1)), 1 << width), *range(1 << (width - 1))]
    boundaries = [read((2 * code + 1) % (2 << width), width + 1) for code in order[:-1]]  # type: ignore[operator]
    zero = order.index(0)
    boundaries[zero - 1] = boundaries[zero] = Fraction(0)
    return Table([read(code, width) for code in order], order, boundaries, "even", nan=1 << (width - 1))  # type: ignore[operator]


# From QLoRA, appendix E, and the list of bitsandbytes; a code is an index.
NF4 = (
    -1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635,
    -0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634,
    0.33791524171829224, 0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0,
)  # fmt: skip
# From Yoshida's paper, as bitsandbytes lists it, in descending order.
AF4 = (
    1.0, 0.72424863, 0.55496234, 0.42563882, 0.31675666, 0.21961274, 0.12934483, 0.04273164, 0.0,
    -0.04934812, -0.14982478, -0.25607552, -0.3736951, -0.51243739, -0.69441008, -1.0,
)  # fmt: skip
# The fp4 of bitsandbytes: twelfths, in the order of its decision tree; the upper half is the negative one.
FP4 = tuple(sign * Fraction(n) / 12 for sign in (1, -1) for n in (0, Fraction(1, 16), 8, 12, 4, 6, 2, 3))

# Up to 16 values of binary32 by code, and where a tie goes.
LISTS: dict[str, tuple[tuple[float | Fraction, ...], str]] = {
    "nf4": (NF4, "down"),
    "af4": (AF4, "down"),
    "bnb_fp4": ((*FP4[:8], -0.0, *FP4[9:]), "zero"),
}


@cache
def table(name: str) -> Table:
    """Return the table of a format by its name."""
    if name == "hif8":
        values = {code: value for code in range(256) if (value := hif8_value(code)) is not None}
        return listed(values, "away", nan=0x80, infinity=(0xEF, 0x6F), overflow=Fraction(40960), normal=TWO**-15)
    if name in LISTS:
        values, ties = LISTS[name]
        rounded = {code: to_single(Fraction(x)) for code, x in enumerate(values)}
        minus = next((code for code, x in enumerate(values) if isinstance(x, float) and str(x) == "-0.0"), None)
        return listed({code: x for code, x in rounded.items() if code != minus}, ties, single=True, negative_zero=minus)
    if not name.startswith(("posit", "takum_")):
        raise LookupError(f"no second reading of {name}: add it to tests/table_oracle.py")
    width = int("".join(filter(str.isdigit, name)))
    log = takum_log_value if name.startswith("takum_log") else takum_value
    return tapered(width, posit_value if name.startswith("posit") else log)


def nearest(t: Table, x: Fraction) -> int:
    """Round a rational to nearest by the format's own rule: return the code."""
    if t.overflow is not None and abs(x) >= t.overflow:
        return t.infinity[x > 0]  # type: ignore[index]
    if x >= t.values[-1] or x <= t.values[0]:
        return t.codes[-1 if x > 0 else 0]
    i = bisect_right(t.values, x) - 1
    if t.values[i] == x:
        return t.codes[i]
    boundary, low, high = t.boundaries[i], t.codes[i], t.codes[i + 1]
    if x == boundary:
        choice = {"even": low % 2 != 0, "away": x > 0, "zero": x < 0, "down": False}[t.ties]
    else:
        choice = x > boundary
    code = high if choice else low
    return t.negative_zero if t.negative_zero is not None and x < 0 and code == 0 else code


def directed(t: Table, x: Fraction, direction: str) -> int:
    """Round a rational by value: toward zero, −∞ or +∞, or away from zero."""
    down = {"RTN": True, "RTP": False, "RTZ": x > 0, "RAZ": x < 0}[direction]
    if x > t.values[-1] or x < t.values[0]:
        inward = down == (x > 0)
        if t.infinity is not None and not inward:
            return t.infinity[x > 0]
        return t.codes[-1 if x > 0 else 0]
    if down:
        code = t.codes[max(i for i, value in enumerate(t.values) if value <= x)]
    else:
        code = t.codes[min(i for i, value in enumerate(t.values) if value >= x)]
    return t.negative_zero if t.negative_zero is not None and x < 0 and code == 0 else code


def operate(t: Table, operation: str, x: int, y: int) -> int:
    """Return the code of x + y, x − y, x · y or x ÷ y, rounded to nearest; a divisor 0 needs a format with NaN."""
    if t.nan in (x, y):
        return t.nan  # type: ignore[return-value]
    values = dict(zip(t.codes, t.values, strict=True))
    a, b = (_number(t, values, code) for code in (x, y))
    minus = [value < 0 or code == t.negative_zero for value, code in ((a, x), (b, y))]
    if operation == "divide" and b == 0:
        result: Fraction | float = (
            float("nan") if a == 0 or t.infinity is None else float("-inf" if minus[0] else "inf")
        )
    elif isinstance(a, float) or isinstance(b, float):  # infinity follows the rules of Python's floats
        result = {
            "add": float.__add__,
            "subtract": float.__sub__,
            "multiply": float.__mul__,
            "divide": float.__truediv__,
        }[operation](float(a), float(b))
    else:
        result = {"add": a + b, "subtract": a - b, "multiply": a * b, "divide": a / (b or 1)}[operation]
    if result != result:
        return t.nan  # type: ignore[return-value]
    if abs(result) == float("inf"):
        return t.infinity[result > 0]  # type: ignore[index]
    if result == 0 and t.negative_zero is not None:
        second = minus[1] != (operation == "subtract")
        negative = minus[0] != minus[1] if operation in ("multiply", "divide") else minus[0] and second
        return t.negative_zero if negative else t.codes[t.values.index(0)]
    return nearest(t, Fraction(result))


def _number(t: Table, values: dict[int, Fraction], code: int) -> Fraction | float:
    if t.infinity and code in t.infinity:
        return float("-inf" if code == t.infinity[0] else "inf")
    return values.get(code, Fraction(0))
