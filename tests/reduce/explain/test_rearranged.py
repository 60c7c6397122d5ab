"""Products that are computed from changed inputs or in another form: their rounding errors are no fault."""

import ml_dtypes
import numpy as np
import pytest

from floatlab.reduce.explain.diagnosis import diagnose


def uniform(seed, *shape):
    return np.random.default_rng(seed).random(shape, np.float32)


def normal(seed, *shape):
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def whole(seed, *shape):
    return np.random.default_rng(seed).integers(-7, 8, shape).astype(np.float32)


def scaled(x, y):
    """Multiply as SmoothQuant does: the channels of x are divided by a scale, and those of y are multiplied by it."""
    scale = np.exp(normal(1, len(y)))
    return (x / scale) @ (y * scale[:, None])


def rotated(x, y):
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((len(y), len(y))))[0].astype(x.dtype)
    return (x @ turn) @ (turn.T @ y)


def mean_of_x_apart(x, y):
    mean = x.mean(axis=0, keepdims=True)
    return (x - mean) @ y + mean @ y


def mean_of_y_apart(x, y):
    mean = y.mean(axis=1, keepdims=True)
    return x @ (y - mean) + x @ mean


def by_differences(x, y):
    """Compute each row as the row before it, plus the product of the difference of the two rows of x."""
    return np.cumsum(np.diff(x, axis=0, prepend=np.zeros_like(x[:1])) @ y, axis=0, dtype=x.dtype)


WAYS = (scaled, rotated, mean_of_x_apart, mean_of_y_apart, by_differences)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [uniform, whole])
def test_rearranged_products_are_no_bugs(way, make):
    x, y = make(3, 40, 6), make(4, 6, 20)
    assert diagnose(x, y, x @ y, way(x, y)).status != "bug"


@pytest.mark.parametrize(("way", "shape"), [(scaled, (1, 20)), (mean_of_y_apart, (40, 1)), (by_differences, (1, 1))])
def test_a_bias_of_a_rearranged_product_is_found(way, shape):
    x, y = uniform(3, 40, 6), uniform(4, 6, 20)
    found = diagnose(x, y, x @ y, way(x, y) + np.float32(1e-4) * normal(5, *shape))
    assert (found.status, found.names) == ("bug", ("bias",))


def test_a_bias_below_the_rounding_errors_is_found_where_no_rows_share_errors():
    x, y = normal(6, 80, 24), normal(7, 24, 40)
    bias = np.float32(2e-6) * np.sign(normal(8, 1, 40))
    found = diagnose(x, y, x @ y, (x.astype(np.float64) @ y + bias).astype(np.float32))
    assert (found.status, found.names) == ("bug", ("bias",))


def test_numbers_between_whole_numbers_come_from_no_fast_product():
    x, y = whole(9, 34, 8), whole(10, 8, 40)
    assert "fast-product" not in diagnose(x, y, x @ y, scaled(x, y)).names


@pytest.mark.parametrize("off", [1.0, 2.0**-16])
def test_one_wrong_element_among_exact_sums(off):
    x, y = whole(9, 34, 8), whole(10, 8, 40)
    bad = x @ y
    bad[3, 4] += np.float32(off * max(1.0, abs(bad[3, 4])))
    assert diagnose(x, y, x @ y, bad).first == "Yes: element (3, 4) of B is wrong; all others agree."


def test_a_number_that_is_nearly_in_the_middle_of_two():
    x = np.ones((40, 3), np.float32)
    y = normal(11, 3, 30).astype(ml_dtypes.bfloat16).astype(np.float32)
    y[:, 7] = 1, 2.0**-8, 2.0**-20
    good = (x @ y).astype(ml_dtypes.bfloat16)
    x[5] = 2
    good[5] = (x[5] @ y).astype(ml_dtypes.bfloat16)
    bad = good.copy()
    assert bad[5, 7] == 2 + 2.0**-6
    bad[5, 7] = 2  # the sum is 2.0078144; the middle between 2 and 2.015625 is 2.0078125
    kind = ml_dtypes.bfloat16
    assert diagnose(x.astype(kind), y.astype(kind), good, bad).status == "unknown"


def test_rows_that_were_dropped_before_the_others_were_scaled():
    x, y = (normal(seed, *shape).astype(ml_dtypes.bfloat16) for seed, shape in ((12, (18, 3)), (13, (3, 4))))
    kept = x.astype(np.float32) / np.float32(0.9)
    kept[[0, 10, 11, 15]] = 0
    wide = x.astype(np.float32), y.astype(np.float32)
    found = diagnose(x, y, wide[0] @ wide[1], kept @ wide[1])
    assert found.first.startswith("Yes: B is the product times 1.11111")
    assert sum((rows[1] - rows[0]) * (columns[1] - columns[0]) for rows, columns in found.causes[-1].where) == 16


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_a_convolution_by_an_fft_is_rounding(kind):
    rng = np.random.default_rng(14)
    x, y = (10 ** rng.uniform(-3, 0, 40)).astype(kind), rng.standard_normal((12, 1)).astype(kind)
    windows = np.lib.stride_tricks.sliding_window_view(x, 12)
    spectra = np.fft.rfft(x, 64).astype(np.result_type(kind, 1j)), np.fft.rfft(y[::-1, 0], 64)
    made = np.fft.irfft(spectra[0] * spectra[1].astype(spectra[0].dtype), 64)[11:40].astype(kind)
    assert diagnose(windows, y, windows @ y, made[:, None]).status == "rounding"


def test_rotated_whole_numbers_are_rounding_and_a_factor_is_not():
    x, y = whole(15, 30, 8), whole(16, 8, 20)
    assert diagnose(x, y, x @ y, rotated(x, y)).first == (
        "No: this is rounding, by a choice of algorithm: B has the errors of an FFT or of another rearranged product."
    )
    assert diagnose(x, y, x @ y, (x @ y) * np.float32(1 + 2.0**-20)).status != "rounding"


def test_one_wrong_element_among_many_is_no_rearranged_product():
    rng = np.random.default_rng([91, 1, 6])
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((1500, 1200), (1200, 40)))
    wrong = x[:, :600] @ y[:600] + x[:, 600:] @ y[600:]
    wrong[500, 13] *= np.float32(1.001)
    found = diagnose(x, y, x @ y, wrong)
    assert (found.names, found.causes[0].where) == (("elements",), ((500, 13),))


@pytest.mark.parametrize("seed", [27, 36, 61])
def test_differences_of_prefix_sums_have_no_wrong_elements(seed):
    x, y = np.maximum(normal(seed, 31, 55), 0), normal(seed + 1000, 55, 31)
    good = x @ y
    sums = np.cumsum(np.concatenate([0 * good[:1], good]), axis=0, dtype=np.float32)
    bad = sums[1:] - sums[:-1]
    found = diagnose(x, y, good, bad)
    assert found.status in ("unknown", "rounding"), found.first
    bad[3, 4] += 0.01 * np.abs(bad).max()
    assert diagnose(x, y, good, bad).status in ("bug", "unknown")
