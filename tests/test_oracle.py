"""The oracle itself, compared with simpler methods: sorted lists of values, and the tables of the standard."""

import ast
import inspect
from fractions import Fraction
from itertools import pairwise

import pytest

from floatlab.formats import parse_format
from tests import oracle
from tests.numbers.small import SMALL

LISTED = [f for f in SMALL if f.width <= 6]


@pytest.mark.parametrize("fmt", LISTED, ids=lambda f: f.name)
def test_bisection_finds_the_neighbours_that_a_sorted_list_of_all_values_shows(fmt):
    values = {}
    for code in range(1 << (fmt.width - fmt.signed)):
        meaning = oracle.decode(fmt, code)
        if meaning.kind == "finite":
            values.setdefault(meaning.value, code)
    ordered = sorted(values)
    largest = ordered[-1]
    for low, high in pairwise(ordered):
        for x in (low, (low + high) / 2, high - (high - low) / 1000):
            assert oracle.floor_magnitude(fmt, x) == values[low]
    assert oracle.floor_magnitude(fmt, largest) == values[largest] == oracle.largest_magnitude(fmt)
    assert oracle.floor_magnitude(fmt, ordered[0] / 2) == (0 if fmt.zero else None)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fmt", [f for f in LISTED if f.zero], ids=lambda f: f.name)
def test_rounding_to_nearest_is_a_search_for_the_least_distance(fmt):
    meanings = [oracle.decode(fmt, code) for code in range(1 << fmt.width)]
    numbers = [meaning.value for meaning in meanings if meaning.kind == "finite"]
    largest = max(numbers)
    for step in range(1, 400):
        x = largest * Fraction(step, 401)
        distance = min(abs(value - x) for value in numbers)
        nearest = {value for value in numbers if abs(value - x) == distance}
        code, flags = oracle.project(fmt, x)
        assert oracle.decode(fmt, code).value in nearest
        assert ("inexact" in flags) == (distance != 0)


def test_the_binary16_examples_of_the_facts_sheet_come_out():
    half = parse_format("binary16")
    assert oracle.project(half, Fraction("1.12156456132")) == (0x3C7C, {"inexact"})
    assert oracle.project(half, Fraction("0.12457275390625")) == (0x2FF9, frozenset())
    assert oracle.project(half, Fraction("0.00041999")) == (0x0EE2, {"inexact"})
    assert oracle.project(half, 1 + Fraction(1, 2048)) == (0x3C00, {"inexact"})


def test_the_oracle_reads_no_derived_field_and_nothing_of_floatlab_but_the_format():
    tree = ast.parse(inspect.getsource(oracle))
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert [name for name in imported if name.startswith("floatlab")] == ["floatlab.formats"]
    given = {"precision", "exponent_bits", "bias", "infinities", "nans", "zero", "negative_zero", "signed",
             "subnormals", "explicit_integer_bit", "ties_to_even_code"}  # fmt: skip
    read = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and getattr(n.value, "id", "") == "fmt"}
    assert read == given
