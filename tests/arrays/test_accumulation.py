"""Sums and products of FloatArrays: every order and accumulator against loops of NumPy and of the scalar codec."""

import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.container.array import FloatArray
from floatlab.errors import FloatlabError, UnsupportedError


def assert_values(ours, theirs):
    assert ours.shape == np.shape(theirs)
    assert np.array_equal(ours.values, theirs)


def serially(terms, add):
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def adjacent(terms, add):
    if len(terms) == 1:
        return terms[0]
    split = 1 << ((len(terms) - 1).bit_length() - 1)  # the largest power of two below
    return add(adjacent(terms[:split], add), adjacent(terms[split:], add))


ORDERS = {"serial": serially, "adjacent": adjacent}


@pytest.mark.parametrize("schedule", ORDERS)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 50])
def test_sums_are_in_the_order_that_is_stated(schedule, count):
    x = FloatArray(np.random.default_rng(count).normal(size=count), "fp32")
    order = ORDERS[schedule]
    assert x.sum(schedule=schedule).item() == float(order(x.values, np.add))
    assert x.prod(schedule=schedule).item() == float(order(x.values, np.multiply))
    assert x.mean(schedule=schedule).item() == float(order(x.values, np.add) / np.float32(count))
    for context in (fl.Context(), fl.Context("RTZ")):
        y = FloatArray(x, "bf16", context)
        data = [fl.decode(int(code), "bf16") for code in y.codes]
        expected = order(data, lambda a, b: fl.add(a, b, context=context).result)  # noqa: B023
        assert y.sum(schedule=schedule, accumulator="bf16").datum() == expected
    half = FloatArray(x, "fp16")
    assert half.sum(schedule=schedule).item() == float(np.float16(order(half.values, np.add)))
    assert half.sum(schedule=schedule, format="fp32").item() == float(order(half.values, np.add))


def test_sums_along_axes():
    x = FloatArray(np.arange(24).reshape(2, 3, 4), "fp32")
    for axis in (None, 0, 1, -1, (0, 2), (2, 1), (0, 1, 2), ()):
        for keepdims in (False, True):
            assert_values(x.sum(axis, keepdims), x.values.sum(axis, keepdims=keepdims))
            assert_values(np.max(x, axis, keepdims=keepdims), x.values.max(axis, keepdims=keepdims))
            assert_values(np.min(x, axis, keepdims=keepdims), x.values.min(axis, keepdims=keepdims))
            assert_values(np.mean(x, axis, keepdims=keepdims), x.values.mean(axis, keepdims=keepdims))
    assert np.sum(x).item() == np.add.reduce(x, axis=None).item() == 276
    assert np.add.reduce(x).shape == (3, 4)
    assert FloatArray([], "fp16").sum().item() == 0
    assert FloatArray([], "fp16").prod().item() == 1
    assert x[:0].sum(0).shape == (3, 4)


def test_the_accumulator_decides():
    ones = FloatArray(np.ones(2049), "bf16")
    sums = [ones.sum(accumulator=each, format="fp32").item() for each in ("bf16", "fp16", "fp32")]
    assert sums == [256.0, 2048.0, 2049.0]
    assert FloatArray(np.ones(4096), "fp64").sum().item() == 4096.0
    tossed = FloatArray(np.ones(800), "bf16", fl.Context("SR", seed=1)).sum(accumulator="bf16").item()
    assert 650 < tossed < 950  # stochastic sums do not stall: the draws of the steps differ


@pytest.mark.parametrize("schedule", ORDERS)
def test_matrix_products_are_in_the_order_that_is_stated(schedule):
    rng = np.random.default_rng(0)
    a, b = FloatArray(rng.normal(size=(3, 7)), "bf16"), FloatArray(rng.normal(size=(7, 5)), "bf16")
    found = a.matmul(b, schedule=schedule, format="fp32")
    for i in range(3):
        for j in range(5):
            products = a.values[i] * b.values[:, j]
            assert found.item(i, j) == float(ORDERS[schedule](products, np.add))
    narrow = a.matmul(b, schedule=schedule, accumulator="bf16")
    for i in range(3):
        products = [fl.multiply(a.datum(i, k), b.datum(k, 0)).result for k in range(7)]
        assert narrow.datum(i, 0) == ORDERS[schedule](products, lambda x, y: fl.add(x, y).result)


def test_products_are_of_the_operands_as_they_are():
    for accumulator in ("fp32", "bf16"):
        a = FloatArray(np.random.default_rng(3).normal(size=(2, 5)), "fp64")
        found = a.matmul(a.T, accumulator=accumulator)
        products = [fl.multiply(a.datum(0, k), a.datum(1, k), format=accumulator).result for k in range(5)]
        assert found.item(0, 1) == float(serially(products, lambda p, q: fl.add(p, q).result))


def test_matrix_products_have_numpys_shapes():
    rng = np.random.default_rng(1)
    for left, right in [((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 2, 3), (3, 5)), ((2, 1, 2, 3), (4, 3, 2))]:
        a, b = (FloatArray(rng.integers(-3, 4, shape), "fp16") for shape in (left, right))
        assert_values((a @ b).astype("fp32"), a.values @ b.values)
        assert np.dot(a, b).shape == (a @ b).shape if max(a.ndim, b.ndim) < 3 else True
    empty = FloatArray(np.zeros((2, 0)), "fp16") @ FloatArray(np.zeros((0, 3)), "fp16")
    assert empty.tolist() == [[0.0] * 3] * 2
    assert (FloatArray([[1, 2]], "fp16") @ np.float32([1, 2])).format.name == "binary32"
    with pytest.raises(UnsupportedError, match="do not make a matrix product"):
        FloatArray(np.ones((2, 3)), "fp16") @ FloatArray(np.ones((2, 3)), "fp16")
    with pytest.raises(UnsupportedError, match="a number is multiplied"):
        FloatArray(np.ones(3), "fp16").dot(2)


def test_tiles_do_not_change_a_product(monkeypatch):
    from floatlab.arrays.container import accumulation

    rng = np.random.default_rng(2)
    a, b = FloatArray(rng.normal(size=(9, 6)), "fp16"), FloatArray(rng.normal(size=(6, 11)), "fp16")
    whole = {schedule: a.matmul(b, schedule=schedule).codes for schedule in ORDERS}
    monkeypatch.setattr(accumulation, "_TILE", 20)
    for schedule in ORDERS:
        assert np.array_equal(a.matmul(b, schedule=schedule).codes, whole[schedule])


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda x: x.sum(schedule="tree"), "schedule must be one of serial adjacent"),
        (lambda x: x[:0].sum(schedule="tree"), "schedule must be one of serial adjacent"),
        (lambda x: x[None].T[:, :0].matmul(x[None, :0], schedule="tree"), "schedule must be one of serial adjacent"),
        (lambda x: x[:0, None].matmul(x[None], schedule="tree"), "schedule must be one of serial adjacent"),
        (lambda x: x.sum(accumulator="fp17"), "fp17"),
        (lambda x: x[:0].mean(), "empty array"),
        (lambda x: x[:0].max(), "an empty array has no largest value"),
        (lambda x: np.min(x[:0]), "an empty array has no smallest value"),
        (lambda x: x[:0].argmax(), "an empty array has no largest value"),
        (lambda x: np.argmax(x[:0]), "an empty array has no largest value"),
        (lambda x: np.nanargmin(x[None, :0], axis=1), "an empty array has no smallest value"),
    ],
)
def test_what_cannot_be_done_is_named(ask, named):
    with pytest.raises(FloatlabError, match=named):
        ask(FloatArray([1.0, 2.0], "fp16"))
