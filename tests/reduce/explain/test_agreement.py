"""Faults that equal bits elsewhere confirm, and factors that every row and column shows."""

import numpy as np
import pytest

from floatlab.reduce.explain import grid
from floatlab.reduce.explain.diagnosis import diagnose
from tests.reduce.blind_cases import case


def single(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def tall():
    rng = np.random.default_rng(0)
    return np.abs(single(rng, 200, 8)), np.abs(single(rng, 8, 7))


def test_an_element_beside_equal_bits_is_wrong_and_no_rearranged_product():
    x, y = tall()
    bad = x @ y
    bad[34, 1] *= np.float32(1 + 1e-5)
    found = diagnose(x, y, x @ y, bad)
    assert (found.status, found.causes[0].where) == ("bug", ((34, 1),))


def test_a_rearranged_product_changes_other_elements_too():
    x, y = tall()
    mean = x.mean(axis=0, keepdims=True)
    assert diagnose(x, y, x @ y, (x - mean) @ y + mean @ y).status != "bug"


@pytest.mark.parametrize("seed", [830008, 830010, 830024, 830041])
def test_a_factor_within_the_bounds_of_all_elements_is_named(seed):
    made = case(seed, "small scale")
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert (found.status, found.names) == ("bug", ("scale",))
    assert dict(found.causes[0].evidence)["factor"] != "1"


@pytest.mark.parametrize("seed", [830011, 830012])
def test_terms_that_are_too_large_for_flushing_exclude_it(seed):
    made = case(seed, "small element")
    assert diagnose(made.x, made.y, made.actual, made.expected).names == ("elements",)


def test_inputs_that_overflow_in_a_narrow_format_are_not_replayed(monkeypatch):
    finite = []
    ways = grid.CandidateGrid.ways

    def counted(self, sides):
        finite.extend(np.isfinite(grid.decode(each.codes, each.format)).all() for each in self.sides)
        return ways(self, sides)

    monkeypatch.setattr(grid.CandidateGrid, "ways", counted)
    made = case(820008, "eight_bits")
    assert diagnose(made.x, made.y, made.actual, made.expected).names == ("inputs-quantized",)
    assert all(finite)
