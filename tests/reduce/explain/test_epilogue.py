"""What follows a product: functions, and the bias that the user gave."""

from math import erf

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl
from floatlab.reduce.explain.diagnosis import diagnose

BF16 = ml_dtypes.bfloat16
FUNCTIONS = {
    "GELU": lambda x: 0.5 * x * (1 + np.vectorize(erf)(x / np.sqrt(2))),
    # The constant √(2/π) is written with ten digits, as in many programs.
    "GELU (by tanh)": lambda x: 0.5 * x * (1 + np.tanh(0.7978845608 * (x + 0.044715 * x**3))),
    "GELU (by the sigmoid function)": lambda x: x / (1 + np.exp(-1.702 * x)),
    "SiLU": lambda x: x / (1 + np.exp(-x)),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "ELU": lambda x: np.where(x > 0, x, np.expm1(x)),
    "SELU": lambda x: 1.0507 * np.where(x > 0, x, 1.67326 * np.expm1(x)),
    "Mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "hard-swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "leaky ReLU (slope 0.01)": lambda x: np.where(x > 0, x, 0.01 * x),
    "leaky ReLU (slope 0.2)": lambda x: np.where(x > 0, x, 0.2 * x),
    "the square of the ReLU": lambda x: np.maximum(x, 0) ** 2,
}


def normal(seed, *shapes, dtype=np.float32):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


@pytest.mark.parametrize("dtype", [np.float64, BF16])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_of_the_product_is_named(name, dtype):
    x, y = normal(80, (12, 9), (9, 14), dtype=dtype)
    good = (x.astype(np.float64) @ y.astype(np.float64)).astype(dtype)  # in bfloat16, the argument is rounded, too
    found = fl.compare(FUNCTIONS[name](good.astype(np.float64)).astype(dtype), good, inputs=(x, y)).diagnosis
    assert (found.status, found.first) == ("bug", f"Yes: A is {name} of the product.")


@pytest.mark.parametrize("dtype", [np.float32, BF16])
def test_a_softmax_of_large_numbers_is_named(dtype):
    x, y = ((6 * each).astype(dtype) for each in normal(86, (12, 9), (9, 14)))
    good = (x.astype(np.float64) @ y.astype(np.float64)).astype(dtype)
    powers = np.exp(good.astype(np.float64) - good.astype(np.float64).max(axis=1, keepdims=True))
    made = (powers / powers.sum(axis=1, keepdims=True)).astype(dtype)  # nearly all numbers are 0 or 1
    found = fl.compare(made, good, inputs=(x, y)).diagnosis
    assert (found.status, found.first) == ("bug", "Yes: A is softmax (of each row) of the product.")


@pytest.mark.parametrize(
    ("dtype", "size", "made"),
    [
        (BF16, 30, lambda rng, shape: 1e-4 * rng.standard_normal(shape)),  # no softmax: it has negative numbers
        (BF16, 30, lambda rng, shape: 1e-4 * rng.random(shape)),  # no softmax: the sum of a row is not 1
        (BF16, 150, lambda rng, shape: rng.random(shape)),
        (np.float32, 1e5, lambda rng, shape: rng.random(shape)),
        (np.float32, 1e8, lambda rng, shape: rng.standard_normal(shape)),
    ],
)
def test_a_bounded_function_of_large_numbers_is_not_any_result(dtype, size, made):
    x, y = ((size * each).astype(dtype) for each in normal(87, (12, 9), (9, 14)))
    good = (x.astype(np.float32) @ y.astype(np.float32)).astype(dtype)
    found = fl.compare(good, made(np.random.default_rng(88), good.shape).astype(dtype), inputs=(x, y)).diagnosis
    assert found.names == ("not-the-product",), found.first


def test_a_function_that_is_zero_everywhere_is_not_named():
    x, y, noise = (1e4 * np.abs(each) for each in normal(89, (12, 9), (9, 14), (12, 14)))
    found = fl.compare(-x @ y, noise / 1e4, inputs=(-x, y)).diagnosis  # GELU gives 0 for all numbers of −x·y
    assert found.names == ("not-the-product",), found.first


def added(dtype, product, *biases):
    """Return the product in `dtype`, to which the biases are added one after the other, each sum rounded."""
    made = product.astype(dtype)
    for bias in biases:
        made = (made.astype(np.float64) + np.asarray(bias, np.float64)).astype(dtype)
    return made


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, BF16])
@pytest.mark.parametrize(
    ("of", "words"),
    [
        (lambda b: (), "is missing"),
        (lambda b: (b, b), "was added twice"),
        (lambda b: (-b.astype(np.float64),), "was subtracted"),
        (lambda b: (b[:, None],), "was added per row instead of per column"),
    ],
)
def test_what_became_of_the_given_bias(of, words, dtype):
    x, w, bias = normal(81, (15, 30), (15, 30), (15,), dtype=dtype)
    product = x.astype(np.float64) @ w.astype(np.float64).T
    good, bad = added(dtype, product, bias), added(dtype, product, *of(bias))
    found = fl.compare(good, bad, inputs=(x, w), op="linear", bias=bias).diagnosis
    assert (found.status, found.first.split(". ")[0].rstrip(".")) == ("bug", f"Yes: the bias {words} in B"), found.first
    assert [cause.side for cause in found.causes if cause.name == "bias"] == ["expected"]


def test_a_bias_along_another_axis_of_a_convolution():
    x, w, bias = normal(82, (2, 3, 8, 8), (6, 3, 3, 3), (6,))
    windows = np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3))
    product = np.einsum("nchwij,ocij->nohw", windows, w)
    found = fl.compare(product + bias[:, None, None], product + bias, inputs=(x, w), op="conv2d", bias=bias).diagnosis
    assert (found.status, found.first) == ("bug", "Yes: the bias was added along axis 3 instead of axis 1 in B.")


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
@pytest.mark.parametrize(("rows", "how"), [(9, "cut to 9 numbers"), (40, "repeated")])
def test_the_bias_is_added_along_an_axis_of_another_length(rows, how, dtype):
    x, w, bias = normal(85, (rows, 30), (15, 30), (15,), dtype=dtype)
    product = x.astype(np.float64) @ w.astype(np.float64).T
    good, bad = added(dtype, product, bias), added(dtype, product, np.resize(bias, rows)[:, None])
    found = fl.compare(good, bad, inputs=(x, w), op="linear", bias=bias).diagnosis
    words = f"Yes: the bias was added per row instead of per column ({how}) in B"
    assert (found.status, found.first.split(". ")[0].rstrip(".")) == ("bug", words), found.first


def test_the_bias_is_added_along_an_axis_of_another_length_in_a_batch():
    x, y, bias = normal(86, (4, 8, 30), (4, 30, 15), (15,))
    good, bad = x @ y + bias, x @ y + bias[:8, None]
    found = fl.compare(good, bad, inputs=(x, y), bias=bias).diagnosis
    assert found.first == "Yes: the bias was added along axis 1 instead of axis 2 (cut to 8 numbers) in B.", found.first
    other = fl.compare(good, x @ y + bias[7:, None], inputs=(x, y), bias=bias).diagnosis  # not these eight numbers
    assert "instead of axis" not in other.first, other.first


def test_a_matrix_as_bias_that_is_transposed():
    x, y, bias = normal(83, (9, 20), (20, 9), (9, 9))
    found = fl.compare(x @ y + bias, x @ y + bias.T, inputs=(x, y), bias=bias).diagnosis
    assert (found.status, found.names) == ("bug", ("bias",))
    assert found.first == "Yes: the bias was added with axes 0 and 1 exchanged in B."


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_another_bias_than_the_given_one(dtype):
    x, w, bias, other = normal(84, (20, 30), (12, 30), (12,), (12,), dtype=dtype)
    product = x.astype(np.float64) @ w.astype(np.float64).T
    good, bad = added(dtype, product, bias), added(dtype, product, other)
    found = fl.compare(good, bad, inputs=(x, w), op="linear", bias=bias).diagnosis
    assert found.first.startswith("Yes: B is the product plus one number per column (a bias)"), found.first


@pytest.mark.parametrize("dtype", [np.float32, np.float16, BF16])
@pytest.mark.parametrize("rows", [5, 10, 15])
def test_the_bias_is_missing_in_some_rows(rows, dtype):
    x, w, bias = normal(85, (20, 30), (12, 30), (12,), dtype=dtype)
    product = x.astype(np.float64) @ w.astype(np.float64).T
    good = added(dtype, product, bias)
    bad = np.concatenate([good[:rows], added(dtype, product)[rows:]])
    found = fl.compare(good, bad, inputs=(x, w), op="linear", bias=bias).diagnosis
    words = f"Yes: rows {rows}–19, columns 0–11 of B are wrong: the bias is missing there"
    assert (found.status, found.first[: len(words)]) == ("bug", words), found.first


def from_bias(x, y, bias):
    """Return the product plus the bias: each sum starts from the bias and adds one term after the other."""
    total = np.broadcast_to(bias, (len(x), y.shape[1])).astype(np.float32)
    for k in range(x.shape[1]):
        total = total + x[:, k : k + 1] * y[k]
    return total


@pytest.mark.parametrize("times", [1, 30, 1000])
@pytest.mark.parametrize("shape", [(31,), (25, 1), ()])
def test_sums_that_start_from_a_bias_have_no_wrong_elements(shape, times):
    x, y, bias = normal(86, (25, 40), (40, 31), shape)
    bad = from_bias(x, y / 30, times * bias)
    found = diagnose(x, y / 30, x @ (y / 30), bad)
    assert (found.status, found.names) == ("bug", ("bias",)), found.first
    bad[3, 7] += times / 10
    found = diagnose(x, y / 30, x @ (y / 30), bad)
    assert (found.status, found.names) == ("bug", ("bias", "elements")), found.first
    assert found.causes[1].where == ((3, 7),)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("of", ["x", "y"])
def test_a_zero_point_leaves_no_wrong_elements(of, dtype):
    x, y = normal(87, (25, 40), (40, 31), dtype=dtype)
    x, y = (x / 10, y) if of == "x" else (x, y / 10)
    bad = (x + 3) @ y if of == "x" else x @ (y + 3)
    found = diagnose(x, y, x @ y, bad)
    assert (found.status, found.names) == ("bug", ("bias",)), found.first
    bad[3, 7] += 0.1
    found = diagnose(x, y, x @ y, bad)
    assert (found.names, found.causes[-1].where) == (("bias", "elements"), ((3, 7),)), found.first


def test_a_small_wrong_element_beside_a_large_bias_that_was_added_last():
    x, y, bias = normal(88, (25, 40), (40, 31), (31,))
    bad = x @ y + 600 * bias
    bad[3, 7] += 20 * np.spacing(np.float32(600))
    found = diagnose(x, y, x @ y, bad)
    assert (found.names, found.causes[-1].where) == (("bias", "elements"), ((3, 7),)), found.first


def test_sums_of_rounded_inputs_that_start_from_a_large_bias():
    x, y, bias = normal(89, (25, 40), (40, 31), (31,))
    bad = from_bias(*(each.astype(BF16).astype(np.float32) for each in (x, y)), 200 * bias)
    assert diagnose(x, y, x @ y, bad).names == ("inputs-rounded", "bias")


@pytest.mark.parametrize(("fate", "times"), [("is missing", 0), ("was added twice", 2)])
@pytest.mark.parametrize("seed", range(2))
def test_the_bias_of_one_row_is_no_term_even_beside_rounded_inputs(seed, fate, times):
    x, w, b = normal(100 + seed, 211, (211, 40), 40)
    bad = x.astype(BF16).astype(np.float32) @ w.astype(BF16).astype(np.float32) + times * b
    found = fl.compare(x @ w + b, bad, inputs=(x, w), bias=b).diagnosis
    assert set(found.names) == {"inputs-rounded", "bias"}, found.first
    assert ("the given bias", fate) in next(each.evidence for each in found.causes if each.name == "bias")


def test_a_bias_that_was_added_four_times_or_is_missing_with_the_last_terms():
    x, w, b = normal(120, (1, 8), (8, 40), 40)
    found = fl.compare(x @ w + b, x @ w + 4 * b, inputs=(x, w), bias=b).diagnosis
    assert found.first == "Yes: the bias was added 4 times in B."
    x, w, b = normal(121, (12, 30), (30, 18), 18)
    found = fl.compare(x @ w + b, x[:, :-8] @ w[:-8], inputs=(x, w), bias=b).diagnosis
    assert found.first == "Yes: terms 22–29 of B are missing; the bias is missing, too."
    assert found.causes[0].where == ((22, 30),)


@pytest.mark.parametrize("seed", range(3))
def test_a_product_of_binary32_numbers_may_be_rounded_before_and_after_the_bias(seed):
    x, w, b = normal(110 + seed, (12, 30), (30, 18), 18)
    once = (x @ w).astype(BF16).astype(np.float32)
    found = fl.compare(x @ w + b, (once + b).astype(BF16), inputs=(x, w), bias=b).diagnosis
    assert (found.status, found.names) == ("rounding", ("output-rounded",)), found.first
    assert "before and after the bias" in found.first
    once[3, 5] *= 1.5
    found = fl.compare(x @ w + b, (once + b).astype(BF16), inputs=(x, w), bias=b).diagnosis
    assert found.status != "rounding", found.first
