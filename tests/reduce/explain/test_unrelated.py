"""Results that do not follow the product are not the product; coarsely quantised inputs keep following it."""

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.reduce.explain.diagnosis import diagnose


def inputs(seed, by_row=1.0):
    rng = np.random.default_rng(seed)
    x, y = rng.lognormal(sigma=2, size=(20, 300)), rng.lognormal(sigma=2, size=(300, 24))
    return rng, x * 2.0 ** (by_row * rng.integers(-6, 7, (20, 1))), y


def int4(values, axis):
    step = np.abs(values).max(axis=axis, keepdims=True) / 7
    return np.rint(values / step) * step


@pytest.mark.parametrize("by_row", [0.0, 1.0])
def test_noise_of_the_right_size_is_not_the_product(by_row):
    rng, x, y = inputs(1, by_row)
    product = x @ y
    noise = rng.permuted(x, axis=1) @ rng.permuted(y, axis=0)
    found = fl.compare(noise, product, inputs=(x, y)).diagnosis
    assert found.status == "bug"
    assert found.names == ("not-the-product",)


def test_sums_of_the_same_positive_numbers_in_other_pairs_are_not_the_product():
    for seed in (1, 2):
        rng = np.random.default_rng(seed)
        x, y = rng.random((17, 17), np.float32), rng.random((17, 9), np.float32)
        made = rng.permuted(x, axis=1) @ rng.permuted(y, axis=0)
        assert fl.compare(made, x @ y, inputs=(x, y)).diagnosis.names == ("not-the-product",)


def test_a_result_larger_than_any_coarse_computation_is_not_the_product():
    rng = np.random.default_rng(0)
    x, y = (np.float32(rng.choice([-1, 1], (13, 13)) * rng.lognormal(sigma=2, size=(13, 13))) for _ in "xy")
    sizes = np.sqrt((x * x).sum(axis=1, keepdims=True) * (y * y).sum(axis=0) / 13)
    noise = np.float32(rng.standard_normal((13, 13)) * sizes)
    assert fl.compare(noise, x @ y, inputs=(x, y)).diagnosis.names == ("not-the-product",)


@pytest.mark.parametrize("axis", [None, 1])
def test_coarse_inputs_are_not_called_unrelated(axis):
    _, x, y = inputs(2)
    made = (int4(x, axis) @ int4(y, None if axis is None else 0)).astype(np.float32)
    assert "not-the-product" not in fl.compare(made, x @ y, inputs=(x, y)).diagnosis.names
    assert "not-the-product" not in fl.compare(made * np.float32(1.01), x @ y, inputs=(x, y)).diagnosis.names


def test_two_numbers_are_not_called_another_product():
    x = np.diag(np.float32([-0.33390215, -2.2608895, 0.0]))
    y = np.zeros((3, 3), np.float32)
    y[:2, 2] = -1.3937664, -0.5082396
    good = x @ y
    assert "not-the-product" not in fl.compare(good, good[[1, 0, 2]], inputs=(x, y)).diagnosis.names


def test_quantised_columns_beside_exact_ones_are_not_a_wrong_region():
    rng = np.random.default_rng(150)
    x, y = (rng.integers(-9, 10, shape).astype(np.float32) for shape in ((98, 18), (18, 17)))
    low, high = y.min(axis=0), y.max(axis=0)
    step = (high - low) / np.float32(11)  # unusual: 12 codes
    quantised = (np.rint((y - low) / step) * step + low).astype(np.float32)
    quantised[:, [0, 16]] = y[:, [0, 16]]
    assert fl.compare(x @ quantised, x @ y, inputs=(x, y)).diagnosis.status in ("unknown", "rounding")


@pytest.mark.one_in(3)
@pytest.mark.parametrize("share", range(3))
def test_noise_of_few_elements_is_not_one_wrong_element(share):
    for seed in range(share, 30, 3):
        rng = np.random.default_rng([78, seed])
        x, y = (np.exp(2 * rng.standard_normal(shape)).astype(ml_dtypes.bfloat16) for shape in ((3, 21), (21, 10)))
        product = (x.astype(np.float32) @ y.astype(np.float32)).astype(ml_dtypes.bfloat16)
        noise = (np.exp(2 * rng.standard_normal(product.shape)) * 300 * rng.choice([-1, 1], product.shape)).astype(
            x.dtype
        )
        found = fl.compare(noise, product, inputs=(x, y)).diagnosis
        assert "elements" not in found.names, (seed, found.first)


def test_rows_that_quantisation_turns_into_zeros_leave_the_others_related():
    rng = np.random.default_rng(79)
    x, y = rng.standard_normal((85, 63)), rng.standard_normal((63, 107)) * 10.0 ** rng.uniform(-6, 6, 107)
    x *= 10.0 ** rng.uniform(-6, 6, (85, 1))
    x, y = x.astype(np.float32), y.astype(np.float32)
    step = np.abs(x).max() / np.float32(127)
    found = fl.compare(x @ y, (np.rint(x / step) * step) @ y, inputs=(x, y)).diagnosis
    assert found.status != "bug"


@pytest.mark.parametrize("turned", [False, True])
def test_two_precise_numbers_show_a_moved_row_or_column(turned):
    x, y = np.zeros((3, 2)), np.zeros((2, 4))
    x[0], y[:, :2] = (0.3, -1.7), np.random.default_rng(4).standard_normal((2, 2))
    x, y = (y.T.copy(), x.T.copy()) if turned else (x, y)
    moved = (x @ y)[:, ::-1] if turned else (x @ y)[::-1]
    found = diagnose(x, y, x @ y, moved.copy())
    assert found.names == (("columns-moved",) if turned else ("rows-moved",)), found.first
    whole = np.round(x * 3), np.round(y * 3)
    product = whole[0] @ whole[1]
    found = diagnose(*whole, product, (product[:, ::-1] if turned else product[::-1]).copy())
    assert (found.status, "rows-moved" in found.names, "columns-moved" in found.names) == ("bug", False, False)


@pytest.mark.parametrize("move", ["permuted columns", "rows shifted by one"])
def test_moved_lines_beside_changed_inputs_that_no_model_describes(move):
    rng = np.random.default_rng(4)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((24, 40), (40, 30)))
    near = (x + 0.1 * rng.standard_normal(x.shape).astype(np.float32)) @ y
    to = rng.permutation(30) if move == "permuted columns" else np.roll(np.arange(24), 1)
    found = diagnose(x, y, x @ y, near[:, to] if len(to) == 30 else near[to])
    (cause,) = found.causes
    assert (found.status, cause.name) == ("bug", "columns-moved" if len(to) == 30 else "rows-moved")
    assert dict(cause.where) == {i: j for i, j in enumerate(to) if i != j}
    copies = near.copy()
    copies[:] = near[5]  # every row is similar to one row of the product
    assert diagnose(x, y, x @ y, copies).status != "rounding"


def test_noise_beside_infinities_is_not_the_product():
    rng = np.random.default_rng(86)
    x, y = rng.standard_normal((30, 64)).astype(np.float16), rng.standard_normal((64, 20)).astype(np.float16)
    x[[3, 9]] *= 8000
    good = x.astype(np.float32) @ y.astype(np.float32)
    with np.errstate(over="ignore"):
        noise = (rng.standard_normal(good.shape) * np.abs(good).mean(axis=1, keepdims=True)).astype(np.float16)
        half = good.astype(np.float16)
    noise[~np.isfinite(half)] = half[~np.isfinite(half)]
    assert np.isinf(noise).sum() > 4
    assert fl.compare(good, noise, inputs=(x, y)).diagnosis.names[-1] == "not-the-product"


def test_one_huge_element_beside_quantised_inputs_does_not_hide_the_product():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((8, 48)).astype(np.float32), rng.standard_normal((48, 50)).astype(np.float32)
        step = np.quantile(np.abs(y), 0.97) / 127
        made = x @ (np.clip(np.rint(y / step), -127, 127) * step).astype(np.float32)  # large weights are clipped
        assert fl.compare(x @ y, made, inputs=(x, y)).diagnosis.status == "unknown"
        made[1, 10] *= 1e4
        found = fl.compare(x @ y, made, inputs=(x, y)).diagnosis
        assert found.first == "Yes: element (1, 10) of B is wrong; others are off by more than rounding, too."


@pytest.mark.parametrize("shape", [(1, 3), (2, 1), (1, 1)])
def test_a_few_zeros_are_named_as_zeros(shape):
    rng = np.random.default_rng(6)
    x, y = rng.random((shape[0], 3), np.float32) + 1, rng.random((3, shape[1]), np.float32) + 1
    found = fl.compare(x @ y, np.zeros(shape, np.float32), inputs=(x, y)).diagnosis
    assert (found.names, found.first) == (("region",), "Yes: all of B is zero.")
