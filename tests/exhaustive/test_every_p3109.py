"""Every P3109 format of few bits, every rounding with every draw, every saturation: against the oracle."""

from itertools import product

import pytest

from floatlab.formats import parse_format
from floatlab.numbers.projection import infinity_code
from tests import oracle
from tests.exhaustive.shared import p3109_names
from tests.numbers.test_projection import context_of, dense_grid, expected, verdict

BITS = 2
ROUNDINGS = [
    *((direction, 0) for direction in oracle.DIRECTIONS),
    *product(oracle.STOCHASTIC, range(1 << BITS)),
]


def check(name: str) -> None:
    fmt = parse_format(name)
    grid = dense_grid(fmt)
    grid = [0 * grid[0], *grid, *(-x for x in grid)]
    for (direction, drawn), overflow in product(ROUNDINGS, oracle.OVERFLOWS):
        rules = oracle.Rules(direction, overflow, drawn=drawn, bits=BITS)
        context = context_of(rules)
        for x in grid:
            assert verdict(fmt, x, context) == expected(fmt, x, rules), (x, rules)
        for negative in (False, True):
            code, flags = infinity_code(fmt, context, negative)
            assert (code, frozenset(flags.names)) == oracle.project_infinity(fmt, negative, rules), (negative, rules)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", p3109_names(range(3, 5)))
def test_every_projection_into_a_tiny_format(name):
    check(name)


@pytest.mark.slow
@pytest.mark.parametrize("name", p3109_names(range(5, 7)))
def test_every_projection_into_a_small_format(name):
    check(name)
