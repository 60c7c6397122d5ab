"""Two faults at once, factors per row in 16 bits, and copies that were interrupted."""

import ml_dtypes
import numpy as np
import pytest

from floatlab.arrays.conversion import quantize
from floatlab.reduce.explain.diagnosis import diagnose
from tests.reduce.blind_ways import narrow

BF16, SLOW = ml_dtypes.bfloat16, pytest.mark.slow


def factors(seed, m, k, n, dtype):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    return rng, x, y, x.astype(np.float32) @ y.astype(np.float32)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((20, 40, 30), np.float32), ((6, 48, 38), np.float32), ((20, 40, 30), BF16)]
)
def test_exchanged_rows_and_a_bias(shape, dtype):
    rng, x, y, product = factors(70, *shape, dtype)
    bad = product[[0, 3, 2, 1, *range(4, len(x))]] + rng.standard_normal(shape[2]).astype(np.float32) * product.std()
    found = diagnose(x, y, product.astype(dtype), bad.astype(dtype))
    moved = {cause.name: cause.where for cause in found.causes}
    assert moved == {"bias": (), "rows-moved": ((1, 3), (3, 1))}, found.first


@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_transposed_and_scaled(dtype):
    _, x, y, product = factors(71, 24, 30, 24, dtype)
    found = diagnose(x, y, product.astype(dtype), (product.T / 4).astype(dtype))
    assert (found.status, set(found.names)) == ("bug", {"transposed-output", "scale"})
    assert found.first == "Yes: B is the transposed product; B is the product times 0.25."


def test_noise_is_not_transposed_and_scaled():
    rng, x, y, product = factors(72, 6, 5, 6, np.float32)
    noise = rng.standard_normal(product.shape).astype(np.float32)
    assert not {"transposed-output", "scale"} & set(diagnose(x, y, product, noise).names)


@pytest.mark.parametrize("dtype", [np.float16, BF16])
@pytest.mark.parametrize("columns", [5, pytest.param(30, marks=SLOW)])
def test_one_factor_per_row_in_sixteen_bits(dtype, columns):
    for seed in range(2):
        rng, x, y, product = factors([73, seed], 12, 60, columns, dtype)
        bad = (product * rng.uniform(0.5, 2, (12, 1)).astype(np.float32)).astype(dtype)
        found = diagnose(x, y, product.astype(dtype), bad)
        assert (found.status, found.names) == ("bug", ("scale",)), found.first
        assert found.first == "Yes: B is the product times one factor per row."


def test_a_factor_and_a_bias_after_rounding_leave_no_wrong_elements():
    for seed in range(2):
        rng, x, y, product = factors([74, seed], 30, 40, 50, np.float16)
        with np.errstate(all="ignore"):
            bad = (product.astype(np.float16) * np.float16(2) + rng.standard_normal(50).astype(np.float16)).astype(
                np.float16
            )
        assert set(diagnose(x, y, product.astype(np.float16), bad).names) <= {"scale", "bias"}


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_an_interrupted_copy_is_two_rectangles(dtype):
    _, x, y, product = factors(75, 12, 20, 8, dtype)
    x[9] = 0  # a row that should be zero does not matter
    product = (x.astype(np.float32) @ y.astype(np.float32)).astype(dtype)
    bad = product.copy()
    bad.reshape(-1)[5 * 8 + 3 :] = 0
    found = diagnose(x, y, product, bad)
    assert (found.status, found.names) == ("bug", ("region",))
    assert found.causes[0].where == (((5, 6), (3, 8)), ((6, 12), (0, 8)))


def test_a_missing_term_is_named_alone():
    for seed in range(2):
        rng = np.random.default_rng([76, seed])
        x, y = rng.integers(-8, 9, (40, 20)).astype(np.float32), rng.integers(-8, 9, (20, 30)).astype(np.float32)
        x[:, 10] = rng.standard_normal(40)
        bad = np.delete(x, 10, axis=1) @ np.delete(y, 10, axis=0)  # small integers, which binary16 holds, too
        found = diagnose(x, y, x @ y, bad)
        assert (found.names, found.causes[0].where) == (("terms-missing",), ((10, 11),)), found.first


def test_two_ranges_of_missing_terms_are_ranges():
    _, x, y, product = factors(78, 12, 24, 10, np.float32)
    kept = np.r_[0:3, 6:15, 18:24]
    found = diagnose(x, y, product, x[:, kept] @ y[kept])
    assert (found.names, found.causes[0].where) == (("terms-missing",), ((3, 6), (15, 18)))
    assert found.first == "Yes: terms 3–5, 15–17 of B are missing."


@pytest.mark.parametrize(
    "shape", [(3, 31, 12), pytest.param((16, 31, 16), marks=SLOW), pytest.param((64, 31, 64), marks=SLOW)]
)
@pytest.mark.parametrize("dtype", [np.float16, BF16])
def test_a_small_missing_term_is_no_sum_in_sixteen_bits(shape, dtype):
    for seed in range(2):
        _, x, y, _ = factors([77, seed], *shape, np.float32)
        x[:, 8] *= 0.01 if dtype is np.float16 else 0.05
        x, y = x.astype(dtype), y.astype(dtype)
        a, b = x.astype(np.float32), y.astype(np.float32)
        bad = np.delete(a, 8, axis=1) @ np.delete(b, 8, axis=0)
        found = diagnose(x, y, (a @ b).astype(dtype), bad.astype(dtype))
        assert found.status == "unknown" or (found.names, found.causes[0].where) == (("terms-missing",), ((8, 9),))
        assert shape[0] < 16 or found.status == "bug", found.first


def test_a_term_that_is_counted_three_times():
    _, x, y, product = factors(78, 40, 20, 30, np.float32)
    bad = product + 2 * x[:, 4:5] * y[4:5]
    assert diagnose(x, y, product, bad).first == "Yes: term 4 of B is counted 3 times."


@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_permuted_rows_and_a_bias(dtype):
    rng, x, y, product = factors(79, 20, 30, 40, dtype)
    bias = rng.standard_normal(40).astype(np.float32) * product.std()
    found = diagnose(x, y, product.astype(dtype), (np.roll(product, 1, axis=0) + bias).astype(dtype))
    moved = {cause.name: cause.where for cause in found.causes}
    assert moved == {"bias": (), "rows-moved": tuple((i, (i - 1) % 20) for i in range(20))}, found.first


def test_a_part_without_some_terms():
    _, x, y, product = factors(80, 64, 96, 48, np.float32)
    bad = product.copy()
    bad[:40] = x[:40, :80] @ y[:80]
    found = diagnose(x, y, product, bad)
    assert (
        found.first == "Yes: rows 0–39, columns 0–47 of B are wrong: terms 80–95 are missing there; all others agree."
    )


def test_most_of_a_result_is_noise():
    rng, x, y, product = factors(81, 100, 48, 32, np.float32)
    bad = product.copy()
    bad[11:] = rng.standard_normal((89, 32)) * 20
    found = diagnose(x, y, product, bad)
    assert (found.names, found.causes[0].where) == (("region",), (((11, 100), (0, 32)),)), found.first


@pytest.mark.parametrize("order", ["read", "written"])
def test_an_input_in_the_other_memory_order(order):
    _, x, y, product = factors(82, 12, 40, 30, np.float32)
    memory = y.reshape(30, 40).T if order == "read" else y.T.reshape(40, 30)
    found = diagnose(x, y, product, x @ np.ascontiguousarray(memory))
    assert found.first == "Yes: B is the product with y read in another memory order."


def test_a_bias_beside_inputs_below_binary16_is_named_alone():
    for seed in range(2):
        rng = np.random.default_rng([83, seed])
        x, y = rng.standard_normal((30, 33)).astype(BF16), rng.standard_normal((33, 64)).astype(np.float32)
        y[rng.random(y.shape) < 0.1] *= 1e-6  # binary16 does not have these numbers, but they hardly matter
        y = y.astype(BF16)
        product = x.astype(np.float32) @ y.astype(np.float32)
        bias = np.where(rng.random(64) < 0.3, rng.standard_normal(64), 0).astype(np.float32)
        found = diagnose(x, y, product.astype(BF16), (product + bias).astype(BF16))
        assert (found.status, found.names) in (("bug", ("bias",)), ("unknown", ())), found.first


def test_products_of_one_quantised_term_have_no_wrong_elements():
    rng = np.random.default_rng(84)
    x, y = rng.standard_normal((65, 1)).astype(np.float32), rng.standard_normal((1, 96)).astype(np.float32)
    a, b = ((each * 7.3).astype(ml_dtypes.float8_e4m3fn).astype(np.float32) / np.float32(7.3) for each in (x, y))
    assert diagnose(x, y, x @ y, a @ b).status in ("rounding", "unknown")


def test_alike_rows_of_sums_in_sixteen_bits_are_not_moved():
    rng = np.random.default_rng(93)
    x, y = ((rng.standard_normal(shape) + 3).astype(BF16) for shape in ((40, 60), (60, 12)))
    a, b = x.astype(np.float32), y.astype(np.float32)
    stale = a.copy()
    stale[:, 16:32] = a[:, :16]  # every row is wrong, and all rows are alike
    found = diagnose(x, y, (a @ b).astype(BF16), (stale @ b).astype(BF16))
    assert "rows-moved" not in found.names, found.first


@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_permuted_rows_and_columns(dtype):
    rng, x, y, product = factors(87, 20, 30, 16, dtype)
    rows, columns = rng.permutation(20), rng.permutation(16)
    found = diagnose(x, y, product.astype(dtype), product[np.ix_(rows, columns)].astype(dtype))
    moved = {cause.name: dict(cause.where) for cause in found.causes}
    expected = [{i: int(j) for i, j in enumerate(each) if i != j} for each in (rows, columns)]
    assert moved == {"rows-moved": expected[0], "columns-moved": expected[1]}, found.first


@pytest.mark.parametrize("axis", [0, 1])
def test_moved_lines_and_a_wrong_element(axis):
    _, x, y, product = factors(88, 14, 30, 12, np.float32)
    bad = np.flip(product, axis).copy()
    bad[1, 1] += 9 * np.abs(product).max()
    found = diagnose(x, y, product, bad)
    assert found.names == (("rows-moved", "columns-moved")[axis], "elements"), found.first
    assert found.causes[1].where == ((1, 1),)


def test_noise_is_not_moved_beside_wrong_elements():
    rng, x, y, product = factors(89, 12, 30, 3, BF16)
    noise = (rng.standard_normal(product.shape) * product.std()).astype(BF16)
    assert not {"rows-moved", "columns-moved"} & set(diagnose(x, y, product.astype(BF16), noise).names)


@pytest.mark.parametrize("format", ["tf32", "bf16"])
def test_a_transposed_product_of_rounded_inputs(format):
    _, x, y, product = factors(90, 12, 40, 12, np.float32)
    a, b = (np.asarray(quantize(each, format), np.float32) for each in (x, y))
    found = diagnose(x, y, product, (a @ b).T)
    assert set(found.names) == {"transposed-output", "inputs-rounded"}, found.first


def test_a_transposed_input_and_rounded_inputs():
    _, x, y, product = factors(91, 10, 24, 24, np.float32)
    a, b = (np.asarray(quantize(each, "bf16"), np.float32) for each in (x, y))
    found = diagnose(x, y, product, a @ b.T)
    assert set(found.names) == {"transposed-operand", "inputs-rounded"}, found.first


def test_a_transposed_product_with_a_wrong_element():
    _, x, y, product = factors(92, 16, 24, 16, np.float32)
    bad = product.T.copy()
    bad[2, 7] += 50
    found = diagnose(x, y, product, bad)
    assert found.first == "Yes: B is the transposed product; element (2, 7) of B is wrong."


def test_noise_is_not_transposed():
    rng, x, y, product = factors(93, 8, 12, 8, np.float32)
    found = diagnose(x, y, product, rng.standard_normal(product.shape).astype(np.float32) * 3)
    assert found.names == ("not-the-product",), found.first


def test_columns_that_fit_sums_in_sixteen_bits_by_chance_are_not_moved():
    rng = np.random.default_rng([7, 5])
    x, y = ((rng.standard_normal(shape) + 3).astype(BF16) for shape in ((23, 23), (23, 39)))
    product = x.astype(np.float32) @ y.astype(np.float32)  # the columns differ mostly by their means
    found = diagnose(x, y, product.astype(BF16), np.sort(product, axis=1).astype(BF16))
    assert "columns-moved" not in found.names, found.first


@pytest.mark.parametrize("seed", [5, 29])
def test_sums_in_sixteen_bits_are_no_function_of_the_product(seed):
    rng = np.random.default_rng([8, seed])
    m, k, n = (int(size) for size in rng.integers(6, 40, 3))
    x, y = ((rng.standard_normal(shape) + 3).astype(BF16) for shape in ((m, k), (k, n)))
    product = np.zeros((m, n), BF16)
    for i in rng.permutation(k):
        term = x[:, i : i + 1].astype(np.float32) * y[i : i + 1].astype(np.float32)
        product = (product.astype(np.float32) + term).astype(BF16)
    found = diagnose(x, y, product, (x.astype(np.float32) @ y.astype(np.float32)).astype(BF16))
    assert "function-applied" not in found.names, found.first


@pytest.mark.parametrize("rows", [slice(0, 45), slice(45, 90), slice(30, 45), slice(0, 83)])
def test_rows_in_tf32_beside_exact_rows_are_no_wrong_region(rows):
    rng = np.random.default_rng(67)
    x, y = np.maximum(rng.standard_normal((90, 64)), 0).astype(np.float32), rng.standard_normal((64, 110))
    y = y.astype(np.float32)
    made = x @ y
    narrow = [np.asarray(quantize(each, "tf32"), np.float32) for each in (x, y)]
    made[rows] = (narrow[0] @ narrow[1])[rows]
    found = diagnose(x, y, x @ y, made)
    assert (found.status, found.names) == ("rounding", ("inputs-rounded",))
    assert found.causes[0].where == (((rows.start, rows.stop), (0, 110)),)


def test_swapped_rows_beside_rounded_inputs_are_no_wrong_region():
    for seed in range(6):
        rng = np.random.default_rng([68, seed])
        x, y = (np.exp(rng.standard_normal(shape)).astype(np.float32) for shape in ((5, 851), (851, 23)))
        narrow = [np.asarray(quantize(each, "tf32", rounding="RNA"), np.float32) for each in (x, y)]
        made = (narrow[0] @ narrow[1])[[0, 1, 4, 3, 2]]
        assert set(diagnose(x, y, x @ y, made).names) == {"rows-moved", "inputs-rounded"}


def test_a_wrong_region_of_sums_without_terms_beside_rounded_inputs():
    rng = np.random.default_rng(0)
    x, y = np.zeros((4, 5), np.float32), rng.standard_normal((5, 20)).astype(np.float32)
    x[0] = rng.standard_normal(5)
    bad = narrow(x, "tf32").astype(np.float32) @ narrow(y, "tf32").astype(np.float32)
    bad[2:, :8] = rng.standard_normal((2, 8))  # more wrong elements than the first row has right ones
    bad[0, 12:] = 0
    y[:, 12:] = 0
    found = diagnose(x, y, x @ y, bad)
    assert set(found.names) == {"inputs-rounded", "region"}, found.first
    assert found.causes[-1].where == (((2, 4), (0, 8)),)
