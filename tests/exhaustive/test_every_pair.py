"""Every pair of codes, in every direction: formats of up to 6 bits; OCP's 8-bit formats and others are slow tests."""

from itertools import product

import pytest

from floatlab.formats import CATALOG, parse_format
from floatlab.numbers.rounding import draw
from tests.exhaustive.shared import DIRECTIONS, p3109_names, pattern_names, wrong

NAMED = [row.format.name for row in CATALOG if row.format.width <= 6]
TINY = [*p3109_names(range(3, 5)), *pattern_names(3), *pattern_names(4)]
SMALL = [*p3109_names(range(5, 7)), *pattern_names(5), *pattern_names(6)]
OPERATIONS = ["add", "mul", "div"]


def every_pair(name: str, operation: str) -> list[str]:
    fmt = parse_format(name)
    pairs = list(product(range(1 << fmt.width), repeat=2))
    return [each for direction in DIRECTIONS for each in wrong(fmt, operation, pairs, direction)]


def sampled_triples(name: str, count: int) -> list[str]:
    """Return the errors of fma on triples drawn by a counter, with different triples for each direction."""
    fmt = parse_format(name)
    differ = []
    for number, direction in enumerate(DIRECTIONS):
        first = number * count * 3
        draws = [draw(2008, first + i) % (1 << fmt.width) for i in range(3 * count)]
        triples = list(zip(draws[::3], draws[1::3], draws[2::3], strict=True))
        differ += wrong(fmt, "fma", triples, direction)
    return differ


@pytest.mark.one_in(8)
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", [*NAMED, *TINY])
def test_every_pair_of_a_named_or_tiny_format(name, operation):
    assert every_pair(name, operation) == []


@pytest.mark.one_in(4)
@pytest.mark.parametrize("name", [*NAMED, *TINY])
def test_sub_and_rem_on_every_pair_to_nearest(name):
    fmt = parse_format(name)
    pairs = list(product(range(1 << fmt.width), repeat=2))
    assert wrong(fmt, "sub", pairs, "RTN") == []
    assert wrong(fmt, "rem", pairs, "RNE") == []


@pytest.mark.one_in(8)
@pytest.mark.parametrize("name", [*NAMED, *TINY, "e4m3", "e5m2", "e4m3fnuz", "e8m0"])
def test_fma_on_a_sample_of_triples(name):
    assert sampled_triples(name, 400) == []


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", SMALL)
def test_every_pair_of_every_format_of_five_and_six_bits(name, operation):
    assert every_pair(name, operation) == []


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_every_pair_of_the_ocp_8_bit_formats(name, operation):
    assert every_pair(name, operation) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SMALL, "e4m3", "e5m2", "e4m3fnuz", "e8m0", "p3109_k8p1se", "e3m4"])
def test_fma_on_a_large_sample_of_triples(name):
    assert sampled_triples(name, 20_000) == []
