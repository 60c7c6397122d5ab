"""x87 precision control: MPFR with fewer digits and x87's exponents. `differential/test_x87.py` asks the processor."""

from fractions import Fraction

import pytest

from floatlab import (
    Context,
    Datum,
    UnsupportedError,
    add,
    convert,
    divide,
    fma,
    from_json,
    multiply,
    parse_format,
    remainder,
    sqrt,
    subtract,
)
from floatlab.arith.operands import at_precision
from floatlab.errors import ContextError

X87 = parse_format("x87")


def operand(generator, special=True):
    """A code of x87: often of few digits or near the limits, so that results are ties, tiny or too large."""
    kind = generator.randrange(12)
    if special and kind == 0:
        exponent, significand = generator.choice([0, 0x7FFF]), generator.choice([0, 1 << 63, 3 << 62, 1, (1 << 63) + 5])
    else:
        exponent = generator.choice([1, 2, 30, 0x2000, 0x3FFF - 20, 0x3FFF, 0x3FFF + 30, 0x5FFF, 0x7FFD, 0x7FFE])
        exponent = min(max(exponent + generator.randrange(-3, 4), 0), 0x7FFE)
        digits = generator.choice([1, 2, 12, 13, 24, 25, 26, 53, 54, 64, 64])
        significand = (generator.getrandbits(digits) | 1 << (digits - 1)) << (64 - digits)
        if exponent == 0:
            significand >>= generator.randrange(1, 64)
    return generator.getrandbits(1) << 79 | exponent << 64 | significand


def cases(generator, count, special=True):
    for _ in range(count):
        a, b = operand(generator, special), operand(generator, special)
        if generator.randrange(3) == 0:  # nearly equal exponents: cancellation, and ties of sums
            b = b & ~(0x7FFF << 64) | (min(max((a >> 64 & 0x7FFF) + generator.randrange(-70, 71), 1), 0x7FFE) << 64)
            b |= 1 << 63
        yield a, b


@pytest.mark.parametrize("precision", [24, 53, 64])
@pytest.mark.parametrize("direction", ["RNE", "RTN", "RTP", "RTZ"])
def test_mpfr_agrees(precision, direction, generator):
    gmpy2 = pytest.importorskip("gmpy2")
    wide = gmpy2.context(precision=64, emin=-16445 - 70, emax=16384)
    rule = {"RNE": gmpy2.RoundToNearest, "RTN": gmpy2.RoundDown, "RTP": gmpy2.RoundUp, "RTZ": gmpy2.RoundToZero}
    narrow = gmpy2.context(
        precision=precision, emin=-16381 - (precision - 1), emax=16384, subnormalize=True, round=rule[direction]
    )
    functions = {add: gmpy2.add, subtract: gmpy2.sub, multiply: gmpy2.mul, divide: gmpy2.div, sqrt: gmpy2.sqrt}
    seen = set()
    for a, b in cases(generator, 400, special=False):
        for operation, function in functions.items():
            data = [Datum(X87, code) for code in ((a,) if operation is sqrt else (a, b))]
            if not all(each.is_finite for each in data) or (operation is divide and not data[1].exact.c):
                continue
            if operation is sqrt and data[0].sign_bit:
                continue
            found = operation(*data, X87, Context(direction, precision=precision))
            with gmpy2.context(wide):
                numbers = [gmpy2.mpfr(gmpy2.mpq(*each.exact.as_fraction().as_integer_ratio())) for each in data]
            with gmpy2.context(narrow) as active:
                result = function(*numbers)
                flags = {"overflow": active.overflow, "underflow": active.underflow and active.inexact}
                flags["inexact"] = active.inexact
            if gmpy2.is_infinite(result):
                assert found.result.is_infinite
            else:
                assert found.result.exact.as_fraction() == Fraction(*map(int, result.as_integer_ratio())), found
            assert found.flags.names == [name for name, raised in flags.items() if raised], found
            seen |= set(found.flags.names)
    assert seen == {"overflow", "underflow", "inexact"}


def test_only_five_operations_obey_it():
    third, context = divide("1", "3", "x87").result, Context(precision=24)
    assert add(third, "0", "x87", context).result != third
    assert fma(third, "1", "0", "x87", context).result == third
    assert remainder(third, "1", "x87", context).result == third
    assert convert(third, "x87", context).result == third


def test_its_derivation():
    found = divide("1", "3", "x87", Context(precision=53))
    assert found.rounding_format == at_precision(53)
    assert found.result.exact.as_fraction() == Fraction(1 / 3)
    assert found.error_ulps == Fraction(-1, 3)
    assert from_json(found.to_json()) == found
    assert "precision control: 53 digits" in str(found.page())
    assert divide("1", "3", "x87", Context(precision=64)) == divide("1", "3", "x87")


def test_what_it_does_not_do():
    with pytest.raises(UnsupportedError, match="binary32 has none: name the format x87"):
        add("1", "2", "fp32", Context(precision=24))
    for precision in (32, "24", True, 24.0, None):
        with pytest.raises(ContextError, match="24, 53 or 64 bits"):
            Context(precision=precision)
