"""Inputs with equal, proportional or empty rows, and sums that are exact: what such data cannot show is not claimed."""

import ml_dtypes
import numpy as np
import pytest

from floatlab.reduce.explain.diagnosis import diagnose
from tests.reduce import blind_ways as ways

BF16 = ml_dtypes.bfloat16


def normal(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def static_int8(values, most):
    """Quantise with a fixed scale, which no tried model has."""
    step = most / 127
    return (np.clip(np.rint(values / step), -127, 127) * step).astype(np.float32)


@pytest.mark.parametrize("rows", [2, 3, 32])
def test_equal_rows_are_no_evidence_of_a_bias_per_column(rows):
    rng = np.random.default_rng(rows)
    x, y = np.repeat(normal(rng, 1, 100), rows, 0), normal(rng, 100, 40)
    found = diagnose(x, y, x @ y, x @ static_int8(y, 4))
    assert found.status == "unknown", found.first
    assert "function" not in found.first
    found = diagnose(y.T.copy(), x.T.copy(), (x @ y).T.copy(), (x @ static_int8(y, 4)).T.copy())
    assert found.status == "unknown", found.first


def test_a_bias_of_different_rows_is_still_found():
    rng = np.random.default_rng(1)
    x, y = normal(rng, 30, 100), normal(rng, 100, 40)
    x[:10] = x[0]
    assert diagnose(x, y, x @ y, x @ y + normal(rng, 1, 40)).names == ("bias",)


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_rank_one_are_no_evidence_of_a_factor_per_column(seed):
    rng = np.random.default_rng(seed)
    x, y = normal(rng, 45, 1) @ normal(rng, 1, 64), normal(rng, 64, 30)
    found = diagnose(x, y, x @ y, x @ static_int8(y, 0.8 * float(np.abs(y).max())))
    assert found.status == "unknown", found.first


@pytest.mark.parametrize("seed", range(3))
def test_rows_of_zeros_do_not_hide_a_wrong_row_of_weights(seed):
    rng = np.random.default_rng(seed)
    x, y = normal(rng, 40, 84), normal(rng, 84, 24)
    x[rng.permutation(40)[:34]] = 0
    stale = y.copy()
    stale[5] *= np.float32(1.02)
    for weights in (stale, (y + np.float32(0.005) * normal(rng, 84, 24)).astype(np.float32), static_int8(y, 4)):
        assert diagnose(x, y, x @ y, x @ weights).status in ("unknown", "bug")


@pytest.mark.parametrize("digits", ["%.2f", "%.3f", "%.3e"])
def test_exact_sums_may_be_printed(digits):
    rng = np.random.default_rng(7)
    x, y = rng.integers(-9, 10, (60, 5)).astype(np.float32), (rng.integers(-20, 21, (5, 40)) / 16).astype(np.float32)
    good = x @ y
    printed = np.array([float(digits % each) for each in good.ravel()], np.float32).reshape(good.shape)
    assert diagnose(x, y, good, printed).names == ("output-rounded",)


@pytest.mark.parametrize("factor", [1.01, 0.98])
def test_numbers_that_any_scale_fits_are_not_stored_with_a_scale(factor):
    rng = np.random.default_rng(3)
    x, y = (2.0 ** rng.integers(-8, 8, (52, 28))).astype(np.float32), np.eye(28, 45, dtype=np.float32)
    y *= normal(rng, 28, 1)
    assert diagnose(x, y, x @ y, x @ y * np.float32(factor)).names == ("scale",)


def test_one_step_of_bfloat16_is_no_rounding_to_nine_decimals():
    rng = np.random.default_rng(8)
    x, y = normal(rng, 33, 1) @ normal(rng, 1, 26), normal(rng, 26, 30)
    stored = (x @ y).astype(BF16)
    stored[15, 1] = np.nextafter(stored[15, 1], BF16(np.inf))
    found = diagnose(x, y, x @ y, stored.astype(np.float32))
    assert all("decimals" not in dict(each.evidence) and "digits" not in dict(each.evidence) for each in found.causes)


@pytest.mark.parametrize("way", ["rne", "rz"])
def test_inputs_in_tf32_and_a_printed_result(way):
    rng = np.random.default_rng(2)
    x, y = np.tril(normal(rng, 14, 8)), normal(rng, 8, 16)
    made = ways.narrow(x, "tf32", way) @ ways.narrow(y, "tf32", way)
    found = diagnose(x, y, x @ y, np.round(made, 2).astype(np.float32))
    assert found.status in ("rounding", "unknown"), found.first


def test_one_rounded_number_is_no_factor():
    x, y = np.arange(43 * 31, dtype=np.float32).reshape(43, 31) * np.float32(0.1), np.full((31, 11), 1 / 3, np.float32)
    found = diagnose(x, y, x @ y, x @ y.astype(BF16).astype(np.float32))
    assert "scale" not in found.names, found.first
    assert diagnose(x, y, x @ y, x @ y * np.float32(2)).names == ("scale",)


@pytest.mark.parametrize("seed", range(4))
def test_few_columns_of_a_product_of_rank_one_show_no_factor(seed):
    rng = np.random.default_rng(seed)
    x, y = normal(rng, 60, 1) @ normal(rng, 1, 36), normal(rng, 36, 2 + seed % 2)
    coarse = (np.sign(y) * 2.0 ** np.rint(np.log2(np.abs(y)))).astype(np.float32)  # powers of two
    for found in (diagnose(x, y, x @ y, x @ coarse), diagnose(y.T, x.T, (x @ y).T, (x @ coarse).T)):
        assert found.status == "unknown", found.first


def test_weights_of_few_magnitudes_are_rounded_alike():
    rng = np.random.default_rng(78)
    x, y = normal(rng, 72, 4), np.array([[1, 2, 1, 7], [2, 1, 1, 2], [7, 7, 7, 7], [1, 2, 1, 7]], np.float32) / 10
    found = diagnose(x, y, x @ y, x @ static_int8(y, 0.91))
    assert found.status == "unknown", found.first
    assert diagnose(x, y, x @ y, x @ y * np.float32(1.25)).names == ("scale",)


@pytest.mark.parametrize("seed", range(3))
def test_clipped_weights_of_selected_rows_are_no_wrong_elements(seed):
    rng = np.random.default_rng(seed)
    x, y = np.array([[1, 0], [1, 0]], np.float32), normal(rng, 2, 54)
    found = diagnose(x, y, x @ y, x @ static_int8(y, float(np.quantile(np.abs(y), 0.97))))
    assert found.status in ("rounding", "unknown"), found.first


@pytest.mark.parametrize(("shape", "order"), [((43, 60, 29), 1), ((27, 49, 39), -1), ((36, 74, 8), 1)])
def test_numbers_in_binary16_that_were_printed_with_four_digits(shape, order):
    rng = np.random.default_rng(shape)
    x, y = (rng.standard_normal(each).astype(np.float16) for each in (shape[:2], shape[1:]))
    good, other = ((a.astype(np.float32) @ b.astype(np.float32)).astype(np.float16) for a, b in (
        (x, y), (x[:, ::order], y[::order]),
    ))  # fmt: skip
    printed = np.array([float(f"{each:.4g}") for each in other.ravel()]).reshape(good.shape).astype(np.float16)
    found = diagnose(x, y, good, printed)
    assert (found.status, found.names) == ("rounding", ("output-rounded",)), found.first
    assert dict(found.causes[0].evidence) == {"digits": "4"}


@pytest.mark.parametrize("step", [2.0**-6, 2.0**-7])
def test_multiples_of_a_power_of_two_were_not_printed_with_four_digits(step):
    rng = np.random.default_rng(10)
    x, y = (rng.standard_normal(each).astype(np.float16) for each in ((43, 60), (60, 29)))
    good = x.astype(np.float32) @ y.astype(np.float32)
    found = diagnose(x, y, good.astype(np.float16), (np.rint(good / step) * step).astype(np.float16))
    assert all("digits" not in dict(each.evidence) for each in found.causes)
