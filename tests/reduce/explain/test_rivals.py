"""Results without a fault that look like results with one, and faults beside which too much was claimed."""

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.sources import source_of
from floatlab.formats import parse_format
from floatlab.reduce.explain import grid
from floatlab.reduce.explain.diagnosis import diagnose
from floatlab.reduce.explain.faults.doubts import may_be_fixed_point
from floatlab.reduce.explain.faults.patterns import different_along, evidence_bits
from floatlab.reduce.explain.problem import ProductProblem, Side, view_of
from floatlab.reduce.explain.stages import PLAIN
from tests.reduce import blind_ways as ways

BF16 = ml_dtypes.bfloat16


def normal(rng, *shape, dtype=np.float32):
    return rng.standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("seed", range(2))
def test_a_correlation_by_fft_has_no_wrong_elements(seed):
    rng = np.random.default_rng([60, seed])
    signal, weights = np.exp(2 * normal(rng, 90, dtype=np.float64)), normal(rng, 12, dtype=np.float64)
    x, y = np.lib.stride_tricks.sliding_window_view(signal, 12).copy(), weights[:, None]
    made = np.fft.irfft(np.fft.rfft(signal, 128) * np.conj(np.fft.rfft(weights, 128)), 128)[: len(x), None]
    assert diagnose(x, y, x @ y, made).status in ("unknown", "rounding")


@pytest.mark.parametrize("seed", range(2))
def test_moving_averages_by_prefix_sums_have_no_wrong_elements(seed):
    rng = np.random.default_rng([61, seed])
    signal = normal(rng, 60)
    x, y = np.lib.stride_tricks.sliding_window_view(signal, 5).copy(), np.full((5, 1), 0.2, np.float32)
    sums = np.concatenate([np.zeros(1, np.float32), np.cumsum(signal)])
    assert diagnose(x, y, x @ y, ((sums[5:] - sums[:-5]) * np.float32(0.2))[:, None]).status in ("unknown", "rounding")


def test_one_wrong_element_among_badly_scaled_rows_is_not_taken_for_a_rearranged_product():
    rng = np.random.default_rng(62)
    x, y = normal(rng, 20, 30) * 2.0 ** rng.integers(-20, 20, (20, 1)).astype(np.float32), normal(rng, 30, 20)
    wrong = x @ y
    small = int(np.abs(x).max(axis=1).argmin())
    wrong[small, 7] *= np.float32(1.01)
    assert diagnose(x, y, fl.matmul(x, y, "reversed"), wrong).causes[0].where == ((small, 7),)


def test_results_with_the_same_function_or_transposition_differ_by_rounding():
    rng = np.random.default_rng(63)
    x, y = normal(rng, 12, 12), normal(rng, 12, 12)
    for change in (lambda made: np.maximum(made, 0), np.square, np.transpose):
        found = diagnose(x, y, change(x @ y), change(fl.matmul(x, y, "reversed")))
        assert found.status == "rounding"
        assert found.first.startswith("No: A and B differ from each other only by rounding. But ")


def test_two_partials_added_in_bfloat16_have_no_wrong_elements():
    rng = np.random.default_rng([64, 19])
    x, y = normal(rng, 3, 10), normal(rng, 10, 4)
    parts = [(x[:, i::2] @ y[i::2]).astype(BF16).astype(np.float32) for i in range(2)]
    total = (parts[0] + parts[1]).astype(BF16).astype(np.float32)
    assert diagnose(x, y, x @ y, total).status in ("unknown", "rounding")


def test_truncated_fixed_point_numbers_explain_a_bias():
    rng = np.random.default_rng(65)
    x, y = rng.random((14, 3)), rng.random((3, 5))
    truncated = (np.floor(x[:, :, None] * y[None] * 2.0**11) / 2.0**11).sum(axis=1)
    problem = ProductProblem(source_of(x), source_of(y), (parse_format("fp32"),))
    for values, expected in ((truncated, True), (x @ y - 2.0**-12, False), (truncated + 2.0**-8, False)):
        view = view_of(problem, Side("actual", source_of(values)), parse_format("fp32"))
        assert may_be_fixed_point(view, None, parse_format("fp32")) is expected


def test_decimals_that_were_cut_off_are_not_called_wrong_elements():
    x, y = np.arange(1, 9)[:, None] / 10, np.arange(1, 40)[None] / 100
    assert (np.trunc(x @ y * 1000) / 1000 != np.round(x @ y, 3)).any()
    assert diagnose(x, y, x @ y, np.trunc(x @ y * 1000) / 1000).status in ("unknown", "rounding")


def test_one_number_is_not_enough_for_sums_in_a_narrow_format():
    rng = np.random.default_rng(66)
    x, y = rng.integers(0, 30, (1, 40)).astype(np.float32), np.ones((40, 1), np.float32)
    total = np.float32(0)
    for each in x[0]:
        total = np.float32((total + each).astype(BF16))
    assert diagnose(x, y, x @ y, np.array([[total]], np.float32)).status == "unknown"


def test_evidence_counts_different_numbers_and_neighbours_at_the_distance_of_the_error():
    x, y = np.array([[1.0], [1.0], [3.0]]), np.array([[1.0]])
    values = np.array([[1 + 2.0**-20], [1 + 2.0**-20], [0.0]])
    problem = ProductProblem(source_of(x), source_of(y), (parse_format("fp64"),))
    view = view_of(problem, Side("actual", source_of(values)), parse_format("fp32"))
    everything = np.ones((3, 1), bool)
    assert evidence_bits(view, everything, parse_format("bf16")) < 1  # less than the distance of two numbers
    view.totals = problem.totals.replace(grain=None)
    assert evidence_bits(view, everything, parse_format("fp32")) == pytest.approx(np.log2(1 + 2 * 2.0**3))


def test_a_way_that_is_too_slow_to_verify_is_tried_where_the_results_differ(monkeypatch):
    rng = np.random.default_rng(67)
    x, y = normal(rng, 20, 40, dtype=np.float16), normal(rng, 40, 20, dtype=np.float16)
    made = (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16)
    problem = ProductProblem(source_of(x), source_of(y), (parse_format("fp16"),))
    monkeypatch.setattr(grid, "_WHOLE", 0)
    found = grid.CandidateGrid(problem, PLAIN, parse_format("fp16"), lambda: None)
    other = made.copy()
    row = int(np.setdiff1d(np.arange(20), found.rows)[0])
    other[row] = np.nextafter(other[row], np.float16(np.inf))
    side = Side("expected", source_of(other))
    assert found.ways([side])[0]
    found.differing = made != other
    assert not found.ways([side])[0]


def test_a_transposed_tile_is_wrong_except_on_its_diagonal():
    rng = np.random.default_rng(68)
    x, y = normal(rng, 16, 9), normal(rng, 9, 12)
    wrong = x @ y
    wrong[:4, :4] = wrong[:4, :4].T.copy()
    [cause] = diagnose(x, y, x @ y, wrong).causes
    assert sorted(cause.where) == [(i, j) for i in range(4) for j in range(4) if i != j]


def test_exchanged_outputs_of_a_layer_in_bfloat16():
    rng = np.random.default_rng([69, 5])
    x, w, bias = normal(rng, 1, 32, dtype=BF16), normal(rng, 111, 32, dtype=BF16), normal(rng, 111, dtype=BF16)
    made = (x.astype(np.float32) @ w.T.astype(np.float32) + bias.astype(np.float32)).astype(BF16)
    wrong = made.copy()
    wrong[:, :20], wrong[:, -20:] = made[:, -20:], made[:, :20]
    found = fl.compare(made, wrong, inputs=(x, w), op="linear", bias=bias.astype(np.float32)).diagnosis
    marked = np.zeros(111, bool)
    for place in found.causes[0].where:
        marked[slice(*place[1]) if found.names[0] == "region" else place[1]] = True
    assert marked.tolist() == (made != wrong)[0].tolist()


def test_equal_rows_are_one_observation_of_a_bias():
    numbers = np.float64([[1, 2, np.nan], [1, 2, np.nan], [1, 3, 5], [1, np.nan, 5]])
    assert different_along(numbers, 0).tolist() == [[1, 2, 1]]
    assert different_along(numbers, 1).tolist() == [[2], [2], [3], [2]]


def test_one_factor_per_row_is_no_bias():
    rng = np.random.default_rng(70)
    x, y = rng.random((6, 50), np.float32), rng.random((50, 7), np.float32)
    factors = np.array([[0.26, 1.44, 0.97, 0.54, 0.85, 5.9]], np.float32).T
    found = diagnose(x, y, x @ y, factors * (x @ y))
    assert found.first == "Yes: B is the product times one factor per row."


def test_a_factor_beside_a_missing_term_is_not_called_terms_that_are_counted_twice():
    rng = np.random.default_rng(71)
    x, y = normal(rng, 30, 12, dtype=np.float64) * (rng.random((30, 12)) < 0.3), normal(rng, 12, 20, dtype=np.float64)
    found = diagnose(x, y, x @ y, 3 * (x[:, :-1] @ y[:-1]))
    assert found.status == "bug"
    assert "terms-twice" not in found.names


@pytest.mark.parametrize(("error", "status"), [(0.0, "unknown"), (1.0, "bug")])
def test_a_row_that_was_rounded_with_another_scale_is_not_called_wrong(error, status):
    rng = np.random.default_rng(64)
    x, y = normal(rng, 30, 40), normal(rng, 40, 20)
    narrow = x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)
    narrow[12] = (x[12] * np.float32(0.7)).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) / np.float32(0.7)
    made = narrow @ y
    made[12] += np.float32(error * 40)
    found = diagnose(x, y, x @ y, made)
    assert found.status == status, found.first
    assert status == "bug" or "rounded in another way" in found.first


def asymmetric_int8(numbers):
    """Numbers quantised to int8 with a zero point and a scale per column, as PyTorch does."""
    low, high = np.minimum(numbers.min(0), 0), np.maximum(numbers.max(0), 0)
    scale = ((high - low) / np.float32(255)).astype(np.float32)
    scale[scale == 0] = 1
    zero = np.rint(-low / scale)
    return ((np.clip(np.rint(numbers / scale) + zero, 0, 255) - zero) * scale).astype(np.float32)


def test_columns_of_one_number_do_not_make_quantised_columns_wrong():
    rng = np.random.default_rng(62)
    x, y = normal(rng, 9, 8), normal(rng, 8, 20) * (rng.random((8, 20)) < 0.12)
    y = y.astype(np.float32)
    found = diagnose(x, y, x @ y, x @ asymmetric_int8(y))
    assert found.status in ("rounding", "unknown")


def aligned_sums(x, y, bits):
    """Sums whose terms are aligned to the largest one, and truncated to `bits` bits below its leading bit."""
    terms = x.astype(np.float64)[:, :, None] * y.astype(np.float64)[None]
    step = np.exp2(np.frexp(np.abs(terms).max(axis=1, keepdims=True))[1] - 1.0 - bits)
    return ((np.trunc(terms / step)).sum(axis=1) * step[:, 0]).astype(np.float32)


@pytest.mark.parametrize("seed", range(4))
def test_aligned_sums_of_fp8_numbers_have_no_wrong_elements(seed):
    rng = np.random.default_rng([63, seed])
    x, y = (normal(rng, *shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((14, 22), (22, 8)))
    good = x.astype(np.float32) @ y.astype(np.float32)
    made = aligned_sums(x.astype(np.float32), y.astype(np.float32), 13)
    assert (made != good).sum() > 8
    assert diagnose(x, y, good, made).status in ("rounding", "unknown")
    wrong = good.copy()
    wrong[rng.integers(0, 14, 10), rng.integers(0, 8, 10)] += np.float32(0.125)
    assert diagnose(x, y, good, wrong).status == "bug"


@pytest.mark.parametrize("fault", ["twice", "one lost"])
def test_a_small_wrong_bias_in_bfloat16_is_not_called_rounding(fault):
    for seed in range(12):
        rng = np.random.default_rng([64, seed])
        x, w, b = (normal(rng, *shape).astype(BF16) for shape in ((10, 24), (6, 24), (6,)))
        b *= BF16(0.06)
        product = (x.astype(np.float32) @ w.astype(np.float32).T).astype(BF16)
        added = 2 * b if fault == "twice" else b * (np.arange(6) != 3).astype(BF16)
        good, wrong = product + b, product + added
        whole = x.astype(np.float64) @ w.astype(np.float64).T + b.astype(np.float64)
        error = np.abs(wrong.astype(np.float64) - whole)
        far = error > 4 * 2.0**-8 * np.maximum(np.abs(whole), np.abs(product.astype(np.float64)))
        if far.any():
            found = fl.compare(good, wrong, inputs=(x, w), op="linear", bias=b).diagnosis
            assert found.status != "rounding", (seed, found.first)


def test_one_of_three_numbers_may_come_from_rounded_inputs():
    x = np.array([[0, 0], [0, 0], [0, 0.1435546875]], np.float32).astype(BF16)
    y = np.array([[-0.828125, -1.4296875, -0.68359375, 1.8046875], [-1.3828125, 0.5234375, 0, -0.64453125]]).astype(
        BF16
    )
    good = x.astype(np.float32) @ y.astype(np.float32)
    other = good.copy()
    other[2, 1] = 0.07329940795898438
    assert diagnose(x, y, good, other).status == "unknown"


@pytest.mark.parametrize("seed", range(2))
def test_truncated_positive_inputs_are_told_from_a_bias_of_each_row(seed):
    rng = np.random.default_rng(seed)
    x = (rng.random((35, 900)) * rng.uniform(0.3, 1, (35, 1))).astype(np.float16) / np.float16(4)
    y = rng.random((900, 25)).astype(np.float16)
    exact = x.astype(np.float64) @ y
    cut = ways.narrow(x, "bf16", "rz") @ y.astype(np.float64)
    found = diagnose(x, y, exact.astype(np.float16), cut.astype(np.float16))
    assert found.names == ("inputs-rounded",), found.first
    assert dict(found.causes[0].evidence)["inputs"] == "x"
    bias = rng.uniform(0, 0.2, (35, 1))
    found = diagnose(x, y, exact.astype(np.float16), (exact - bias).astype(np.float16))
    assert found.names == ("bias",), found.first


def test_the_second_change_of_a_pair_needs_evidence_of_its_own():
    rng = np.random.default_rng(3)  # all rows have almost the same mean error, so a bias explains them, too
    x, y = rng.random((35, 1742)).astype(np.float16) / np.float16(2), rng.random((1742, 25)).astype(np.float16)
    cut = ways.narrow(x, "bf16", "rz") @ y.astype(np.float64)
    found = diagnose(x, y, (x.astype(np.float64) @ y).astype(np.float16), cut.astype(np.float16))
    assert "inputs-quantized" not in found.names, found.first
    assert "bfloat16, RTZ, x" in found.first or found.names == ("inputs-rounded",)


@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("seed", [0, 2])
def test_noise_of_one_input_is_no_bias_beside_wrong_elements(seed, is_turned):
    rng = np.random.default_rng(seed)
    x, y = (rng.standard_normal(shape) + mean for shape, mean in (((27, 29), 5), ((29, 39), 5)))
    x, y = (each.astype(np.float16).astype(np.float32) for each in (x, y))  # the rows of x are similar
    noisy = x @ (y * (1 + 0.003 * rng.standard_normal(y.shape))).astype(np.float32)
    biased = x @ y + np.linspace(-5, 5, 39, dtype=np.float32)
    biased[3, 7] += 20
    if is_turned:
        x, y, noisy, biased = y.T, x.T, noisy.T, biased.T
    found = diagnose(x, y, x @ y, noisy.astype(np.float16))
    assert found.status == "unknown", found.first
    found = diagnose(x, y, x @ y, biased.astype(np.float16))
    assert {"bias", "elements"} <= set(found.names), found.first


@pytest.mark.parametrize("seed", [0, 1, 6])
def test_noise_of_one_input_is_no_bias_of_almost_equal_rows(seed):
    rng = np.random.default_rng(seed)
    x = (rng.standard_normal((30, 24)) + 100).astype(np.float16).astype(np.float32)
    y = (rng.standard_normal((24, 33)) + 5).astype(np.float16).astype(np.float32)
    noisy = x @ (y * (1 + 0.003 * rng.standard_normal(y.shape))).astype(np.float32)
    assert diagnose(x, y, x @ y, noisy.astype(np.float16)).status == "unknown"
    bias = (5000 * rng.standard_normal(33)).astype(np.float32)  # a change of y would show in the last digits
    assert "bias" in diagnose(x, y, x @ y, (x @ y + bias).astype(np.float16)).names
