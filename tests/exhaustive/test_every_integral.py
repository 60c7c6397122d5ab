"""Every code of small formats rounded to an integral value, in every direction and by every overflow rule.

Several of these formats end below an integer that their numbers round to: 8 in e2m3fn, whose largest is 7.5.
"""

from fractions import Fraction
from itertools import product

import pytest

from floatlab import Context, round_to_integral
from floatlab.formats import CATALOG, Format, parse_format
from floatlab.numbers import Datum
from tests import oracle
from tests.arith import truth
from tests.exhaustive.shared import p3109_names, pattern_names
from tests.oracle import DIRECTIONS, OVERFLOWS, Rules

NAMED = [row.format.name for row in CATALOG if row.format.width <= 8]
SHORT = [name for width in (3, 4) for name in (*p3109_names(range(width, width + 1)), *pattern_names(width))]
LONG = [name for width in (5, 6, 7, 8) for name in (*p3109_names(range(width, width + 1)), *pattern_names(width))]


def integral(value: Fraction, direction: str) -> int:
    """Return the integer that a rational rounds to, by the words of clause 5.9."""
    floor = value.numerator // value.denominator
    rest = value - floor
    if not rest:
        return floor
    toward_zero = floor + (value < 0)
    return {
        "RNE": round(value),
        "RNA": floor + (rest > oracle.HALF or (rest == oracle.HALF and value > 0)),
        "RTZ": toward_zero,
        "RTP": floor + 1,
        "RTN": floor,
        "RTO": floor if floor % 2 else floor + 1,
        "RAZ": 2 * floor + 1 - toward_zero,
    }[direction]


def expected(fmt: Format, code: int, rules: Rules) -> tuple[int | None, frozenset[str], Fraction | None]:
    """Return the code (None: any NaN), the flags, and the number that the result stands for."""
    flags = truth.nan_flags("rint", fmt, (code,))
    if flags is not None:
        return None, flags, None
    meaning = oracle.decode(fmt, code)
    if meaning.kind == "infinite":
        return (*oracle.project_infinity(fmt, meaning.negative, rules), None)
    integer = Fraction(integral(meaning.value, rules.direction))
    result, flags = oracle.project(fmt, integer, rules, meaning.negative)
    stands_for = integer if flags else meaning.value
    return result, flags | ({"inexact"} if integer != meaning.value else set()), stands_for


def wrong(name: str) -> list[str]:
    fmt, differ = parse_format(name), []
    for direction, overflow in product(DIRECTIONS, OVERFLOWS):
        context, rules = Context(rounding=direction, overflow=overflow), Rules(direction, overflow)
        for code in range(1 << fmt.width):
            want, flags, stands_for = expected(fmt, code, rules)
            done = round_to_integral(Datum(fmt, code), context=context)
            agrees = done.result.is_nan if want is None else done.result.code == want
            if done.result.is_finite and stands_for is not None:
                agrees = agrees and done.error == done.result.exact.as_fraction() - stands_for
                agrees = agrees and bool(done.error) == ("inexact" in flags)
            if not agrees or frozenset(done.flags.names) != flags:
                differ.append(f"{name} {direction} {overflow} {code}: {done}, not {want} {set(flags)}")
    return differ


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", ["e2m3", "e2m1", "e3m2fn", "e8m0", "p3109_k6p5sf", "p3109_k5p5uf", *SHORT])
def test_every_code_of_a_tiny_format_becomes_the_integer_or_overflows(name):
    assert wrong(name) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMED, *LONG])
def test_every_code_of_every_format_of_up_to_8_bits_does(name):
    assert wrong(name) == []
