"""Claims that are not made: fast products, functions of the product, and single elements that rounding may explain."""

import numpy as np
import pytest

import floatlab as fl
from floatlab.reduce.explain.diagnosis import diagnose


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
