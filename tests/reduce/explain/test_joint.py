"""Diagnoses of operations that consist of several products: the cause, and its place in the user's array."""

from itertools import pairwise

import numpy as np
import pytest

import floatlab as fl
from floatlab.errors import UnsupportedError
from floatlab.reduce.explain.operations import diagnose_operation, products_of

OPERATIONS = [
    ("matmul", (4, 8, 60), (4, 60, 30), None),
    ("matmul", (3, 1, 8, 40), (2, 40, 20), (20,)),
    ("matmul", (5, 7, 33), (33, 12), None),
    ("matmul", (9, 50), (50,), None),
    ("linear", (4, 8, 50), (30, 50), (30,)),
    ("linear", (20, 64), (16, 64), (16,)),
    ("einsum:bqhd,bkhd->bhqk", (2, 9, 3, 32), (2, 11, 3, 32), None),
    ("einsum:ij,jk->ki", (12, 40), (40, 17), None),
    ("conv2d:padding=1", (2, 8, 10, 9), (6, 4, 3, 3), (6,)),
    ("conv2d:stride=2", (5, 11, 12), (7, 5, 3, 2), None),
    ("dot", (3, 4, 50), (2, 50, 6), None),
    ("sum:1", (9, 40, 8), None, None),
]


def computed(words, x, y, bias, split):
    """Compute an operation in float32, one product after the other; each sum is split into this number of parts."""
    products = products_of(words, x, y)
    made = np.zeros(products.shape, np.float32)
    for number, (a, b) in enumerate(products):
        cuts = np.linspace(0, products.terms, split + 1).astype(int)
        block = sum(np.float32(a[:, i:j] @ b[i:j]) for i, j in pairwise(cuts))
        for row, column in np.ndindex(*block.shape):
            made[products.index(number, row, column)] = block[row, column]
    if bias is None:
        return made
    return made + (bias[:, None, None] if words.startswith("conv2d") else bias)


def case(seed, operation):
    words, *shapes = operation
    rng = np.random.default_rng(seed)
    x, y, bias = (None if each is None else rng.standard_normal(each).astype(np.float32) for each in shapes)
    return rng, words, x, y, bias


@pytest.fixture(params=range(len(OPERATIONS)), ids=[f"{op[0]} {op[1]}" for op in OPERATIONS])
def operation(request):
    rng, words, x, y, bias = case(request.param, OPERATIONS[request.param])
    return rng, words, x, y, bias, computed(words, x, y, bias, 1), computed(words, x, y, bias, 3)


def test_equal_results_that_are_wrong_are_told_what_is_wrong():
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((4, 8, 9), np.float32), rng.standard_normal((4, 9, 6), np.float32)
    wrong = x @ y
    wrong[2, 1:3, 4] += 1
    found = diagnose_operation("matmul", x, y, wrong, wrong)
    places = "elements (2, 1, 4), (2, 2, 4) of A and B are wrong"
    assert (found.status, found.names) == ("identical", ("elements",))
    assert found.first == f"All numbers are equal, but both results are wrong: {places}."
    other = wrong.copy()
    other[0] = (x[0].astype(np.float64) @ y[0]).astype(np.float32)
    found = diagnose_operation("matmul", x, y, wrong, other)
    assert found.status == "rounding"
    assert (
        found.first == f"No: A and B differ from each other only by rounding. But {places.replace('A and B', 'both')}."
    )


@pytest.mark.one_in(3)
def test_rounding_is_rounding(operation):
    _, words, x, y, bias, first, second = operation
    assert diagnose_operation(words, x, y, first, first, bias=bias).status == "identical"
    found = diagnose_operation(words, x, y, first, second, bias=bias)
    assert found.status in ("rounding", "identical")
    assert set(found.names) <= {"order", "fma", "accumulator"}
    assert found.first.startswith("No: ")


@pytest.mark.one_in(3)
def test_an_element_is_located(operation):
    rng, words, x, y, bias, first, second = operation
    at = tuple(int(rng.integers(n)) for n in first.shape)
    second[at] += np.abs(first).max()
    found = diagnose_operation(words, x, y, first, second, bias=bias)
    assert (found.status, found.nearer) == ("bug", "actual")
    [cause] = [each for each in found.causes if each.name not in ("order", "fma")]
    assert (cause.name, cause.side, cause.where) == ("elements", "expected", (at,))
    assert str(at) in found.first


@pytest.mark.one_in(3)
def test_a_region_is_located(operation):
    rng, words, x, y, bias, first, second = operation
    box = []
    for size in first.shape[-2:]:
        low = int(rng.integers(max(1, size - 4)))
        box.append((low, min(size, low + 4)))
    lead = [(int(at), int(at) + 1) for at in (rng.integers(n) for n in first.shape[:-2])]
    second[tuple(slice(*span) for span in (*lead, *box))] = 0
    found = diagnose_operation(words, x, y, first, second, bias=bias)
    assert found.status == "bug"
    [cause] = [each for each in found.causes if each.name not in ("order", "fma")]
    assert cause.side == "expected"
    marked = np.zeros(first.shape, bool)
    for place in cause.where:
        marked[tuple(slice(*each) if isinstance(each, tuple) else each for each in place)] = True
    expected = np.zeros(first.shape, bool)
    expected[tuple(slice(*span) for span in (*lead, *box))] = True
    np.testing.assert_array_equal(marked, expected)


@pytest.mark.one_in(3)
def test_a_bias_left_out_is_a_bias(operation):
    _, words, x, y, bias, first, second = operation
    if bias is None:
        return
    second = computed(words, x, y, None, 3)
    found = diagnose_operation(words, x, y, first, second, bias=bias)
    assert (found.status, found.causes[0].name, found.causes[0].side) == ("bug", "bias", "expected")


@pytest.mark.one_in(3)
def test_nan_in_one_place_does_not_end_the_analysis(operation):
    rng, words, x, y, bias, first, second = operation
    at = tuple(int(rng.integers(n)) for n in first.shape)
    second[at] = np.nan
    found = diagnose_operation(words, x, y, first, second, bias=bias)
    assert (found.status, found.causes[0].name, found.causes[0].where) == ("bug", "nan", (at,))


@pytest.mark.one_in(4)
def test_unrelated_results_are_no_product(operation):
    rng, words, x, y, bias, first, _ = operation
    noise = rng.standard_normal(first.shape).astype(np.float32)
    assert diagnose_operation(words, x, y, first, noise * np.abs(first).mean(), bias=bias).status in ("bug", "unknown")


@pytest.fixture
def batch():
    rng = np.random.default_rng(7)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((4, 8, 50), (4, 50, 30)))
    return x, y, x @ y


def test_products_of_a_batch_that_moved(batch):
    x, y, good = batch
    bad = good[[0, 3, 2, 1]]
    found = diagnose_operation("matmul", x, y, good, bad)
    assert found.first == "Yes: products of B are moved: 1 holds 3, 3 holds 1."
    assert (found.causes[0].name, found.causes[0].where) == ("products-moved", ((1, 3), (3, 1)))


def test_a_cause_in_one_product_says_in_which(batch):
    x, y, good = batch
    bad = good.copy()
    bad[2] = bad[2][::-1]
    found = diagnose_operation("matmul", x, y, bad, good)
    assert found.first.startswith("Yes, in [2, :, :]: rows of A are moved: 0 holds 7")
    assert dict(found.causes[0].evidence)["axes"] == "1"


def test_a_zero_tile_in_all_products_is_one_region(batch):
    x, y, good = batch
    bad = good.copy()
    bad[:, 2:5, 4:9] = 0
    found = diagnose_operation("matmul", x, y, good, bad)
    assert found.first == "Yes: [0:4, 2:5, 4:9] of B are zero; all others agree."
    assert found.causes[0].where == (((0, 4), (2, 5), (4, 9)),)


def test_columns_of_a_transposed_result():
    rng = np.random.default_rng(8)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((12, 40), (40, 17)))
    good = np.ascontiguousarray((x @ y).T)
    bad = good[:, [0, 2, 1, *range(3, 12)]]
    found = diagnose_operation("einsum:ij,jk->ki", x, y, good, bad)
    assert (found.names, found.causes[0].where) == (("columns-moved",), ((1, 2), (2, 1)))


def test_many_small_products_are_looked_at_by_their_errors():
    rng = np.random.default_rng(9)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((300, 4, 16), (300, 16, 8)))
    bad = x @ y
    bad[177, 2, 3] += 0.25
    found = diagnose_operation("matmul", x, y, x @ y, bad)
    assert found.causes[0].where == ((177, 2, 3),)
    assert ("looked at", "48 of 300 products") in found.causes[0].evidence


def test_the_library_takes_operations(batch):
    x, y, good = batch
    bad = good.copy()
    bad[1, 2, 3] += 1
    found = fl.compare(good, bad, inputs=(x, y)).diagnosis
    assert found.first == "Yes: element (1, 2, 3) of B is wrong; all others agree."
    wide = good[0] + np.float32(1)
    assert fl.compare(wide, wide, inputs=(x[0], y[0].T), op="linear", bias=np.ones(30, np.float32)).diagnosis.first == (
        "No: all numbers are equal."
    )


def test_results_of_other_shapes_are_refused(batch):
    x, y, good = batch
    with pytest.raises(UnsupportedError, match=r"actual has shape \(8, 30\), and .* gives \(4, 8, 30\)"):
        diagnose_operation("matmul", x, y, good[0], good)
