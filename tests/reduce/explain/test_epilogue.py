"""What follows a product: functions, and the bias that the user gave."""

from math import erf

import ml_dtypes
import numpy as np
import pytest

import floatlab as fl

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
