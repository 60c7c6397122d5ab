"""Claims that are not made: fast products, functions of the product, and single elements that rounding may explain."""

import numpy as np
import pytest

import floatlab as fl
from floatlab.reduce.explain.diagnosis import diagnose
from floatlab.reduce.explain.faults.fast import find_fast_product
from floatlab.reduce.explain.problem import ProductProblem, Side, matrices_of, view_of
from tests.reduce import blind_ways as ways
from tests.reduce.blind_cases import case


def strassen(x, y):
    """One level of Strassen's algorithm, for even sizes."""
    (m, k), n = x.shape, y.shape[1]
    a, b, c, d = x[: m // 2, : k // 2], x[: m // 2, k // 2 :], x[m // 2 :, : k // 2], x[m // 2 :, k // 2 :]
    e, f, g, h = y[: k // 2, : n // 2], y[: k // 2, n // 2 :], y[k // 2 :, : n // 2], y[k // 2 :, n // 2 :]
    made = (a + d) @ (e + h), (c + d) @ e, a @ (f - h), d @ (g - e), (a + b) @ h, (c - a) @ (e + f), (b - d) @ (g + h)
    p, q, r, s, t, u, v = made
    return np.block([[p + s - t + v, r + t], [q + s, p - q + r + u]])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("sigma", [0.5, 1, 2])
def test_strassens_algorithm_on_lognormal_numbers(sigma):
    rng = np.random.default_rng(50)
    x, y = (np.exp(sigma * rng.standard_normal((32, 32))).astype(np.float32) for _ in range(2))
    found = diagnose(x, y, x @ y, strassen(x, y))
    assert (found.status, found.names) in (("rounding", ("fast-product",)), ("rounding", ("order",)))
    wrong = strassen(x, y)
    wrong[3, 4] *= np.float32(1.01)
    assert diagnose(x, y, x @ y, wrong).names != ("fast-product",)


def test_wrong_elements_of_a_conventional_product_are_no_fast_product():
    rng = np.random.default_rng(51)
    x, y = (np.exp(2 * rng.standard_normal((32, 32))).astype(np.float32) for _ in range(2))
    wrong = x @ y
    wrong[[3, 9, 20], [4, 4, 17]] *= np.float32(1 + 1e-4)
    assert diagnose(x, y, x @ y, wrong).names == ("elements",)


def test_one_element_of_a_small_product_is_not_called_rounding():
    rng = np.random.default_rng(52)
    x, y = rng.standard_normal((8, 8)).astype(np.float32), rng.standard_normal((8, 8)).astype(np.float32)
    right = fl.matmul(x, y, "serial")
    for steps in (1, 2, 5):
        wrong = right.copy()
        wrong.view(np.int32)[2, 3] += steps
        assert diagnose(x, y, right, wrong).status in ("unknown", "bug")


def test_softmax_and_integer_parts_are_functions_of_the_product():
    rng = np.random.default_rng(53)
    x, y = rng.standard_normal((20, 30)).astype(np.float32), rng.standard_normal((30, 25)).astype(np.float32)
    made = x @ y
    powers = np.exp(made - made.max(axis=1, keepdims=True))
    found = diagnose(x, y, made, powers / powers.sum(axis=1, keepdims=True))
    assert found.first == "Yes: B is softmax (of each row) of the product."
    assert diagnose(x, y, np.trunc(made), made).first == "Yes: A is the integer part of the product."


def test_a_given_bias_that_is_missing():
    rng = np.random.default_rng(54)
    x, w, bias = (rng.standard_normal(shape).astype(np.float32) for shape in ((9, 12), (7, 12), (7,)))
    found = fl.compare(x @ w.T + bias, x @ w.T, inputs=(x, w), op="linear", bias=bias).diagnosis
    assert found.first == "Yes: the bias is missing in B."


def test_a_result_of_one_row_with_one_wrong_element():
    rng = np.random.default_rng(55)
    x, y = rng.standard_normal((1, 300)).astype(np.float32), rng.standard_normal((300, 40)).astype(np.float32)
    wrong = fl.matmul(x, y, "reversed")
    wrong[0, 7] *= np.float32(1.01)
    assert diagnose(x, y, x @ y, wrong).causes[0].where == ((0, 7),)


def pruned(x, y):
    """Return x·y without half of the weights: in every four terms of a column, those with the two smallest weights."""
    y = y.copy()
    for k in range(0, len(y) - 3, 4):
        np.put_along_axis(y[k : k + 4], np.argsort(np.abs(y[k : k + 4]), axis=0)[:2], 0, 0)
    return x @ y


@pytest.mark.parametrize("name", ["fp16", "bf16"])
def test_a_factor_that_only_nearly_fits_sixteen_bits(name):
    rng = np.random.default_rng(56)
    usual = rng.random(32) + 0.2
    x, y = usual + 0.1 * rng.standard_normal((13, 32)), usual[:, None] + 0.1 * rng.standard_normal((32, 3))
    x, y = (fl.arrays.quantize(each, name).astype(np.float32) for each in (x, y))
    good, bad, scaled = (fl.arrays.quantize(each, name) for each in (x @ y, pruned(x, y), 1.5 * (x @ y)))
    assert not {"scale", "bias"} & set(diagnose(x, y, good, bad.astype(np.float32)).names)
    assert "scale" in diagnose(x, y, good, scaled.astype(np.float32)).names


def test_one_number_that_was_bounded_is_no_narrow_sum():
    rng = np.random.default_rng(57)
    x, y = rng.random((1, 60)).astype(np.float32), -rng.random((60, 1)).astype(np.float32) / 10
    assert -2 < (x @ y)[0, 0] < -1
    assert diagnose(x, y, x @ y, np.maximum(x @ y, -1)).status != "rounding"


def test_few_numbers_in_sixteen_bits_may_be_of_two_formats():
    rng = np.random.default_rng(58)
    x, y = rng.standard_normal((1, 30)).astype(np.float32), rng.standard_normal((30, 1)).astype(np.float32)
    number = fl.arrays.quantize(x @ y, "bf16")
    x[0, 0] += (number * (1 + 2.0**-14) - x @ y)[0, 0] / y[0, 0]  # the product is now close to a number of both formats
    made = fl.arrays.quantize(x @ y, "fp16").astype(np.float32)
    assert (made == number).all()
    formats = [dict(cause.evidence)["format"] for cause in diagnose(x, y, x @ y, made).causes]
    assert formats
    assert all("bfloat16 or binary16" in format for format in formats)


def test_subnormal_numbers_have_few_bits_without_any_rounding():
    rng = np.random.default_rng(59)
    x, y = (rng.standard_normal(shape).astype(np.float32) * np.float32(1e-20) for shape in ((25, 15), (15, 14)))
    exact = (x.astype(np.float64) @ y.astype(np.float64)).astype(np.float32)
    assert diagnose(x, y, exact, 2 * exact).names == ("scale",)


def test_one_number_everywhere_is_that_of_an_element():
    rng = np.random.default_rng(60)
    x, y = rng.standard_normal((6, 18)), rng.standard_normal((18, 2))
    found = diagnose(x, y, x @ y, np.full((6, 2), (x @ y)[0, 0]))
    assert found.first == "Yes: B holds one number everywhere, that of element (0, 0)."
    assert found.causes[0].where == (((0, 1), (1, 2)), ((1, 6), (0, 2)))


def test_slices_of_digits_that_were_cut_off_are_no_bias():
    rng = np.random.default_rng(61)
    x, y = rng.random((12, 100)) + 0.2, rng.random((100, 7)) + 0.2
    cut = [np.trunc(each * 2.0**40) * 2.0**-40 for each in (x, y)]
    assert diagnose(x, y, x @ y, cut[0] @ cut[1]).status != "bug"
    assert diagnose(x, y, x @ y, x @ y + 1e-9).names == ("bias",)


def halves(seed, m, k, n, scale=1.0):
    """Return factors in binary16, and their product with sums in binary32."""
    rng = np.random.default_rng(seed)
    x, y = ((rng.standard_normal(shape) * scale).astype(np.float16) for shape in ((m, k), (k, n)))
    with np.errstate(over="ignore"):
        return x, y, (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16)


@pytest.mark.slow
def test_clipped_numbers_are_no_rounding_toward_zero():
    x, y, good = halves(4, 60, 150, 60, 400)
    assert np.isinf(good).mean() > 0.9
    found = diagnose(x, y, good, np.clip(good, -65504, 65504))
    assert (found.status, set(found.names)) == ("bug", {"nan", "clipped"}), found.first


def test_partial_sums_that_overflow_are_no_rounding():
    x, y, good = halves(0, 30, 100, 30, 60)
    total = np.zeros_like(good)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(100):
            total += x[:, k : k + 1] * y[k : k + 1]
    stray = np.isfinite(good) & ~np.isfinite(total)
    assert stray.sum() > 20
    found = diagnose(x, y, good, total)
    (cause,) = (each for each in found.causes if each.name == "nan")
    assert (found.status, cause.side, cause.share) == ("bug", "expected", stray.mean())
    assert "partial sums there overflowed" in found.first


def test_an_overflow_does_not_vouch_for_the_other_elements():
    rng = np.random.default_rng(102)
    x, y = rng.standard_normal((24, 96)), (rng.standard_normal((96, 12)) * 10).astype(np.float16)
    x = (x * 10.0 ** rng.integers(-2, 4, (24, 1))).astype(np.float16)
    noisy = y * (1 + 0.05 * rng.standard_normal(y.shape))
    with np.errstate(over="ignore"):
        half, made = (x.astype(np.float32) @ y).astype(np.float16), (x.astype(np.float32) @ noisy).astype(np.float16)
    found = diagnose(x, y, x.astype(np.float32) @ y, half)
    assert (found.status, found.names[0]) == ("bug", "nan")
    assert found.first.endswith("Besides: output rounded in B (binary16).")
    found = diagnose(x, y, x.astype(np.float32) @ y, made)
    assert (found.status, set(found.names)) == ("bug", {"nan"})
    assert found.first.endswith("; others are off by more than rounding, too.")


@pytest.mark.parametrize(("scale", "status"), [(1, "bug"), (1000, "unknown")])
def test_a_nan_far_below_overflow_is_a_bug_beside_unexplained_errors(scale, status):
    rng = np.random.default_rng(103)
    x, y = rng.standard_normal((20, 30)), rng.standard_normal((30, 25)).astype(np.float32)
    x[3] *= scale  # with 1000, partial sums in binary16 might be near overflow
    x = x.astype(np.float32)
    made = (x @ (y * (1 + 0.05 * rng.standard_normal(y.shape)))).astype(np.float16)
    made[3, 4] = np.nan
    found = diagnose(x, y, x @ y, made)
    assert (found.status, found.names) == (status, ("nan",)), found.first
    assert status == "unknown" or found.first.startswith("Yes: element (3, 4) of B is NaN; others are off by more")


def test_a_nan_beside_sums_in_binary16_is_a_bug():
    rng = np.random.default_rng(104)
    x, y = rng.standard_normal((20, 30)).astype(np.float32), rng.standard_normal((30, 25)).astype(np.float32)
    total = np.zeros((20, 25), np.float16)
    for k in range(30):
        total = (total + x[:, k : k + 1] * y[k : k + 1]).astype(np.float16)
    stray = total.copy()
    stray[3, 4] = np.nan
    found = diagnose(x, y, total, stray)
    assert (found.status, "nan" in found.names) == ("bug", True), found.first
    assert found.first.startswith("Yes: element (3, 4) of B is NaN"), found.first


@pytest.mark.parametrize("form", ["%.2f", "%.3f", "%.4f", "%.3g", "%.4g"])
def test_selected_rows_that_were_printed_in_binary16_are_not_wrong(form):
    rng = np.random.default_rng(5)
    x, y = np.eye(48, dtype=np.float16)[rng.integers(0, 48, 128)], rng.standard_normal((48, 64)).astype(np.float16)
    printed = np.array([float(form % value) for value in (x @ y).ravel()]).reshape(128, 64).astype(np.float16)
    found = diagnose(x, y, x @ y, printed)
    assert (found.status, found.names) in (("rounding", ("output-rounded",)), ("unknown", ())), found.first
    if form in ("%.2f", "%.3g"):
        assert found.status == "rounding"


@pytest.mark.parametrize("seed", range(2))
def test_errors_of_winograds_inner_products_are_no_bias(seed):
    rng = np.random.default_rng(seed)
    x, y = (rng.random((48, 64)) * 2 - 1).astype(np.float32), rng.random((64, 31)).astype(np.float32)
    total = np.zeros((48, 31), np.float32)
    for k in range(0, 64, 2):
        total += (x[:, k : k + 1] + y[k + 1 : k + 2]) * (x[:, k + 1 : k + 2] + y[k : k + 1])
    rows = (x[:, ::2] * x[:, 1::2]).sum(axis=1, keepdims=True)
    made = total - rows - (y[::2] * y[1::2]).sum(axis=0, keepdims=True)
    assert diagnose(x, y, x @ y, made).status in ("rounding", "unknown")


@pytest.mark.parametrize("change", [np.ndarray.byteswap, lambda numbers: numbers * 1e-320])
def test_results_of_subnormal_numbers_only(change):
    rng = np.random.default_rng(6)
    x, y = (rng.integers(-9, 10, shape).astype(float) for shape in ((20, 30), (30, 20)))
    assert diagnose(x, y, x @ y, change(x @ y)).status in ("bug", "unknown")


@pytest.mark.parametrize("rows", [20, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_most_rows_are_missing(rows, dtype):
    rng = np.random.default_rng(7)
    x, y = rng.random((128, 40)).astype(dtype), rng.random((40, 60)).astype(dtype)
    bad = (x @ y).copy()
    bad[rows:] = 0
    found = diagnose(x, y, x @ y, bad)
    assert (found.names, found.causes[0].where) == (("region",), (((rows, 128), (0, 60)),)), found.first


@pytest.mark.parametrize("terms", [2, 8])
def test_means_that_are_multiplied_separately_make_no_wrong_elements(terms):
    for seed in range(2):
        rng = np.random.default_rng([8, seed])
        x = np.maximum(rng.standard_normal((31, terms)), 0).astype(np.float32)  # many zeros
        y = rng.standard_normal((terms, 65)).astype(np.float32)
        mean = x.mean(dtype=np.float32)
        made = (x - mean) @ y + mean * y.sum(axis=0, dtype=np.float32)
        assert diagnose(x, y, x @ y, made).status in ("unknown", "rounding")


def test_inputs_in_another_format_in_all_rows_but_four():
    rng = np.random.default_rng(9)
    x, y = np.eye(48, dtype=np.float32)[rng.integers(0, 48, 128)], rng.standard_normal((48, 64)).astype(np.float32)
    rounded = fl.arrays.quantize(y, "tf32", rounding="RTZ").astype(np.float32)
    made = x @ rounded
    made[124:] = (x @ y)[124:]  # another kernel computes the last rows
    found = diagnose(x, y, x @ y, made)
    assert found.status == "unknown" or not {"inputs-quantized"} & set(found.names), found.first


@pytest.mark.parametrize("axis", [0, 1])
def test_infinities_of_moved_lines_are_moved_with_them(axis):
    rng = np.random.default_rng(76)
    x, y = rng.standard_normal((40, 30)), rng.standard_normal((30, 20)).astype(np.float16)
    x[[5, 11]] *= 8e3
    x = x.astype(np.float16)
    with np.errstate(over="ignore"):
        good = (x.astype(np.float32) @ y.astype(np.float32)).astype(np.float16)
    assert 0 < np.isinf(good).sum() < good[5].size * 2
    assert not np.isinf(x).any()
    wrong = np.roll(good, 3, axis)
    found = diagnose(x, y, good, wrong)
    assert (found.status, found.names) == ("bug", (("rows-moved", "columns-moved")[axis],))
    assert {each.side for each in found.causes} == {"expected"}


def test_finite_numbers_of_another_product_do_not_make_infinities_wrong():
    rng = np.random.default_rng(77)
    x, y = rng.standard_normal((25, 114)), np.exp(rng.standard_normal((114, 11))).astype(np.float16)
    x[[12, 15, 16]] *= 1e3
    x = x.astype(np.float16)
    order = rng.permutation(114)
    with np.errstate(over="ignore"):
        good, wrong = ((x.astype(np.float32) @ each.astype(np.float32)).astype(np.float16) for each in (y, y[order]))
    assert np.isinf(good).any()
    found = diagnose(x, y, wrong, good)
    assert {each.side for each in found.causes} <= {"actual"}


def test_small_numbers_that_are_stored_as_zeros_lack_no_terms():
    x = np.array([[7.66e-4, 6.98e-3, -1.95e-4], [4.89e-6, 1.7e-5, -1.98e-5], [0.726, -2.629, 2.612]], np.float32)
    y = np.array([[788237.4, -45.74, 2.55e-5, 9e-3], [35186, 10.25, 5.3e-6, -0.02], [462939, 7.75, 6.7e-6, -0.04]])
    y = y.astype(np.float32)
    stored = x @ y
    stored[:, 1:] = 0
    assert "terms" not in str(diagnose(x, y, stored, x @ y).causes)


@pytest.mark.parametrize(
    ("shape", "a", "b"), [((68, 253, 17), 0.1, 0.3), ((16, 269, 18), 7.7, 0.3), ((96, 66, 39), 0.1, 1.1)]
)
def test_constant_inputs_in_tf32_are_one_observation(shape, a, b):
    m, k, n = shape
    x, y = np.full((m, k), a, np.float32), np.full((k, n), b, np.float32)
    made = ways.narrow(x, "tf32").astype(np.float32) @ ways.narrow(y, "tf32").astype(np.float32)
    found = diagnose(x, y, x @ y, made)  # elements at the edges of tiles differ in the last bits
    assert found.status in ("unknown", "rounding"), found.first
    assert "function" not in found.first


def test_one_wrong_sum_of_whole_numbers_may_be_a_partial_sum_in_bfloat16():
    made = case(8000016, "whole_numbers")  # the wrong element is the only one with an odd partial sum above 256
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert found.status != "rounding", found.first


def test_one_input_in_bfloat16_is_no_partial_sum_in_binary16():
    made = case(8300013, "inputs_rounded")  # blocks of 32 terms could give all numbers, but only if many were ties
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert found.names == ("inputs-rounded",), found.first
    assert "the second input" in found.first


@pytest.mark.parametrize(("bits", "terms"), [(6, 3), (7, 3), (9, 7)])
def test_exact_sums_of_few_bits_may_be_rounded_again(bits, terms):
    rng = np.random.default_rng(bits)
    x, y = (rng.integers(-n, n + 1, shape).astype(np.float32) for n, shape in ((9, (62, terms)), (20, (terms, 9))))
    y /= 16
    parts, exponents = np.frexp(x @ y)
    away = np.copysign(np.floor(np.abs(parts) * 2.0**bits + 0.5), parts)  # to nearest, ties away from zero
    found = diagnose(x, y, x @ y, np.ldexp(away, exponents - bits).astype(np.float32))
    assert found.status in ("rounding", "unknown"), found.first


def test_weights_of_another_rounding_are_no_wrong_columns():
    rng = np.random.default_rng(1)
    x, bands = rng.standard_normal((5, 5)).astype(np.float32), np.eye(5, k=1) + np.eye(5, k=-1)
    y = (2 * np.eye(5) + 0.1 * bands).astype(np.float32)
    coarse = ways.narrow(y, "bf16").astype(np.float32)
    coarse[[2, 4], 3] -= 2.0**-11  # rounded down
    for found in (diagnose(x, y, x @ y, x @ coarse), diagnose(y.T, x.T, (x @ y).T, (x @ coarse).T)):
        assert found.status in ("rounding", "unknown"), found.first


def test_sums_close_to_ties_are_no_evidence_of_partial_sums():
    made = case(8600002, "inputs_rounded")  # one of many numbers of blocks gives all numbers, if three ties are ignored
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert "partials" not in found.names, found.first


def test_three_rows_of_single_numbers_show_no_fast_product():
    made = case(9300064, "small scale")
    found = diagnose(made.x, made.y, made.actual, made.expected)
    assert "fast-product" not in found.names, found.first


def bfloat16_with_large_terms(seed):
    """Return two matrices of few digits. Most of their sums are exact, except those of the first term and others."""
    rng = np.random.default_rng(seed)
    (m, n), k = rng.integers(8, 50, 2), int(rng.integers(3, 9))
    x, y = 0.05 * rng.standard_normal((m, k)), 0.05 * rng.standard_normal((k, n))
    x[:, 0] *= 40
    y[:, ::9] *= 20
    return ways.narrow(x, "bf16").astype(np.float32), ways.narrow(y, "bf16").astype(np.float32)


def toward_zero(x, y):
    total = np.zeros((len(x), y.shape[1]), np.float32)
    for k in range(x.shape[1]):
        exact = ways.f64(x[:, k : k + 1]) * y[k : k + 1] + total
        nearest = exact.astype(np.float32)
        total = np.where(np.abs(nearest) > np.abs(exact), np.nextafter(nearest, np.float32(0)), nearest)
    return total


@pytest.mark.parametrize("seed", [3, 11, 25])
def test_sums_toward_zero_of_few_digits_are_no_fast_product(seed):
    x, y = bfloat16_with_large_terms(seed)
    found = diagnose(x, y, x @ y, toward_zero(x, y))
    assert (found.status, found.names) == ("rounding", ("accumulator",)), found.first


@pytest.mark.parametrize("seed", [3, 11, 25])
def test_exact_sums_do_not_hide_the_sizes_of_the_other_errors(seed):
    x, y = bfloat16_with_large_terms(seed)
    made = x @ y
    factors, results = matrices_of(x, y, made, made)
    problem = ProductProblem(*factors, (results[0].format,))
    view = view_of(problem, Side("actual", results[0]), results[0].format)
    assert find_fast_product(view, problem.x, problem.y) is None
