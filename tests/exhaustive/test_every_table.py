"""Formats of up to 16 bits given by a table: codes and boundaries, compared with `table_oracle`."""

from fractions import Fraction
from itertools import pairwise

import pytest

from floatlab import arith, decode, encode, parse_format
from floatlab.formats.table_catalog import TABLES
from tests import table_oracle

SHARES = 8  # parts into which the codes of 16 bits are divided
SLOW = "takum_log16"  # slow, since the oracle computes 2^17 exponentials
NAMES = [row.format.name for row in TABLES if row.format.width <= 16]
PARTS = [
    pytest.param(name, part, marks=[pytest.mark.slow] if name == SLOW else [])
    for name in NAMES
    for part in range(SHARES if name.endswith("16") else 1)
]
OPERATIONS = ("add", "subtract", "multiply", "divide")
RATIONAL = [row.format.name for row in TABLES if row.format.width <= 8 and not row.format.is_irrational]

table = table_oracle.table


def share(things, part, name):
    return things[part :: SHARES if name.endswith("16") else 1]


def near(name):
    """Return a relative distance that is small, and beyond the digits of the oracle's irrational numbers."""
    return Fraction(1, 1 << (200 if "_log" in name else 400))


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name.endswith("16") else []) for name in NAMES]
)
def test_the_numbers_of_the_definition_increase_with_their_codes(name):
    t, fmt = table(name), parse_format(name)
    assert all(low < high for low, high in pairwise(t.values))
    ordinals = [decode(code, fmt).ordinal for code in t.codes]
    assert all(high == low + 1 for low, high in pairwise(ordinals))
    assert all(low <= boundary <= high for (low, high), boundary in zip(pairwise(t.values), t.boundaries, strict=True))


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("name", "part"), PARTS)
def test_every_code_has_its_value_and_comes_back(name, part):
    t, fmt = table(name), parse_format(name)
    for code, value in share(list(zip(t.codes, t.values, strict=True)), part, name):
        datum = decode(code, fmt)
        if fmt.is_irrational and value:
            low, high = (Fraction(c) * Fraction(2) ** q for c, q in fmt.bounds(datum.magnitude, 100))
            assert low * (1 - near(name)) <= abs(value) <= high * (1 + near(name))
            assert encode(datum, fmt) == datum
        else:
            assert datum.exact == value
        assert encode(value, fmt).code == code


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("name", "part"), PARTS)
def test_every_boundary_and_both_sides_of_it(name, part):
    t, fmt = table(name), parse_format(name)
    for boundary in share(t.boundaries, part, name):
        sides = (boundary * (1 - near(name)), boundary, boundary * (1 + near(name)))
        for x in sides[::2] if fmt.is_irrational else sides:
            if x:
                assert encode(x, fmt).code == table_oracle.nearest(t, x), x


@pytest.mark.one_in(40)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", RATIONAL)
def test_arithmetic_on_every_pair(name, operation, part):
    t, fmt = table(name), parse_format(name)
    compute = getattr(arith, operation)
    data = [decode(code, fmt) for code in range(1 << fmt.width)]
    for x in data[part::4]:
        for y in data:
            if t.nan is None and operation == "divide" and not y.exact.c:
                continue
            assert compute(x, y).result.code == table_oracle.operate(t, operation, x.code, y.code), (x, y)
