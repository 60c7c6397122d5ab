"""Only causes that change a number are named, and one complete cause is preferred to a cause with a fault."""

import numpy as np
import pytest

from floatlab.arrays.conversion import quantize
from floatlab.formats import parse_format
from floatlab.reduce.explain.diagnosis import diagnose
from tests.reduce import blind_ways as ways


def of_format(rng, shape, name):
    """Return normally distributed numbers, rounded to a format, as float64."""
    return ways.narrow(rng.standard_normal(shape), name)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("name", "wide"), [("fp32", "float64"), ("tf32", "float32"), ("bf16", "float32")])
@pytest.mark.parametrize("layout", ["C", "F"])
def test_inputs_that_are_numbers_of_the_format_already(name, wide, layout):
    rng = np.random.default_rng(31)
    x, y = (of_format(rng, shape, name).astype(wide, order=layout) for shape in ((40, 64), (64, 48)))
    narrow = (x.astype(np.float32) @ y.astype(np.float32)).astype(wide)
    for other in (narrow, ways.serial(x, y, np.dtype(wide)), ways.narrow(narrow, name).astype(wide)):
        assert not {"inputs-rounded", "inputs-split"} & set(diagnose(x, y, x @ y, other).names)


def test_only_the_input_that_changes_is_named():
    rng = np.random.default_rng(32)
    x, y = rng.standard_normal((40, 64)).astype(np.float32), of_format(rng, (64, 48), "bf16").astype(np.float32)
    found = diagnose(x, y, x @ y, ways.narrow(x, "bf16").astype(np.float32) @ y)
    assert found.names == ("inputs-rounded",)
    assert dict(found.causes[0].evidence)["inputs"] == "x"


def test_results_whose_numbers_have_few_digits_already_are_not_rounded():
    rng = np.random.default_rng(33)
    x, y = (rng.integers(-4, 5, shape).astype(np.float32) for shape in ((30, 20), (20, 30)))
    halves = np.full((20, 30), 0.5, np.float32)
    assert diagnose(x, y, x @ y, (x @ y).astype(np.float16)).status == "identical"
    wrong = x @ (y * halves)
    wrong[3, 4] += 1
    assert diagnose(x, y * halves, x @ (y * halves), wrong).names == ("elements",)


def test_decimals_of_large_numbers_are_no_rounding():
    rng = np.random.default_rng(34)
    x, y = (np.exp(2 * rng.standard_normal(shape)).astype(np.float32) for shape in ((30, 100), (100, 60)))
    made = ways.quantized(x).astype(np.float32) @ ways.quantized(y).astype(np.float32)
    assert diagnose(x, y, x @ y, made).names == ("inputs-quantized",)


def test_printed_powers_of_ten_are_as_near_as_other_numbers():
    rng = np.random.default_rng(35)
    x, y = rng.standard_normal((40, 30)).astype(np.float32), rng.standard_normal((30, 40)).astype(np.float32)
    x[0], y[:, 0] = 0, 0
    x[0, 0], y[0] = 1, np.linspace(0.99e-5, 1.01e-5, 40)
    made = np.array([float(f"{value:.3g}") for value in (x @ y).ravel()], np.float32).reshape(40, 40)
    assert (made == np.float32(1e-5)).sum() > 1
    assert diagnose(x, y, x @ y, made).names == ("output-rounded",)


def test_one_choice_of_precision_is_likelier_than_a_rounded_output_with_wrong_elements():
    rng = np.random.default_rng(36)
    x, y = rng.random((1, 702), np.float32), rng.random((702, 30), np.float32)
    found = diagnose(x, y, x @ y, ways.split(x, y, 2, "fp16"))
    assert (found.status, found.names) == ("rounding", ("partials",))


@pytest.mark.parametrize("fault", ["bias", "element"])
def test_faults_beside_rounded_inputs_of_sparse_products(fault):
    rng = np.random.default_rng(37)
    x = (rng.standard_normal((21, 7)) * (rng.random((21, 7)) < 0.2)).astype(np.float32)
    y = (rng.standard_normal((7, 16)) * (rng.random((7, 16)) < 0.5)).astype(np.float32)
    made = ways.narrow(x, "tf32").astype(np.float32) @ ways.narrow(y, "tf32").astype(np.float32)
    if fault == "bias":
        made += rng.standard_normal(16).astype(np.float32)
    else:
        made[4, 5] += 1
    found = diagnose(x, y, x @ y, made)
    assert (found.status, set(found.names)) == (
        "bug",
        {"inputs-rounded", "bias" if fault == "bias" else "elements"},
    )


@pytest.mark.parametrize("size", [1e7, 1e10, 1e20])
@pytest.mark.parametrize("made", ["normal", "uniform", "small"])
def test_clipped_inputs_do_not_explain_any_small_result(size, made):
    rng = np.random.default_rng(38)
    x, y = ((size * rng.standard_normal(shape)).astype(np.float32) for shape in ((9, 12), (12, 7)))
    result = {"normal": rng.standard_normal, "uniform": rng.random, "small": rng.standard_normal}[made]((9, 7))
    result = (result * (1e-6 if made == "small" else 1)).astype(np.float32)
    with np.errstate(over="ignore", invalid="ignore"):  # some kernels add ∞ and −∞
        found = diagnose(x, y, x @ y, result)
    assert set(found.names) - {"nan"} == {"not-the-product"}, found.first


@pytest.mark.parametrize("parts", ["all", "a row", "a column"])
@pytest.mark.parametrize("name", ["e4m3", "e5m2", "fp16"])
def test_clipped_inputs_explain_their_product(name, parts):
    rng = np.random.default_rng(39)
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((19, 24), (24, 15)))
    x[{"all": np.s_[:], "a row": np.s_[3], "a column": np.s_[:, 3]}[parts]] *= np.float32(1e10)
    first, second = (np.asarray(quantize(each, name, rounding="RTZ"), np.float32) for each in (x, y))
    found = diagnose(x, y, x @ y, first @ second)
    words = f"inputs rounded in B ({parse_format(name).name}, toward zero, both inputs)."
    assert (found.status, found.first.endswith(words)) == ("rounding", True), found.first
