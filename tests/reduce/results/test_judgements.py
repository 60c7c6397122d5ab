"""Judgements of q and its causes: where the causes are a decade apart, and where they cannot be told apart."""

from fractions import Fraction

import numpy as np
import pytest

from floatlab.arrays.conversion import quantize
from floatlab.errors import UnsupportedError
from floatlab.formats import parse_format
from floatlab.reduce.results.judgements import DifferenceCause, judge_difference
from floatlab.reduce.results.product_error import quotients
from floatlab.reduce.results.products import matmul


def pair(name, n, side=64):
    rng = np.random.default_rng(5)
    draw = rng.random if name == "uniform" else rng.standard_normal
    return draw((side, n)).astype(np.float32), draw((n, side)).astype(np.float32)


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_causes_are_told_apart_where_they_are_apart(name):
    a, b = pair(name, 400)
    right = a @ b
    assert judge_difference(a, b, right).causes == (DifferenceCause.ORDER,)
    for schedule in ("serial", "reversed", "pairwise", "lanes(16)"):
        found = judge_difference(a, b, matmul(a, b, schedule), matmul(a, b, "serial", fma=True))
        assert found.is_rounding
        assert found.largest <= found.limit
    for format in ("tf32", "fp16", "bf16"):
        narrow = (quantize(a, format) @ quantize(b, format)).astype(np.float32)
        found = judge_difference(a, b, narrow)
        assert DifferenceCause(format) in found.causes
        assert DifferenceCause.ORDER not in found.causes
    assert judge_difference(a, b, right - np.outer(a[:, 7], b[7])).causes == (DifferenceCause.TERM,)
    assert judge_difference(a, b, right[::-1]).causes == ()


def test_the_measured_figures_of_each_cause():
    # Published measurements for 400 uniform terms: order 5.3, TF32 305, bf16 2342, one term dropped 55,503.
    a, b = pair("uniform", 400, 100)
    effects = {each.cause: each.rms for each in judge_difference(a, b, a @ b).effects}
    for cause, rms in (
        (DifferenceCause.ORDER, 2 * 5.3),
        (DifferenceCause.TF32, 305),
        (DifferenceCause.BF16, 2342),
        (DifferenceCause.TERM, 55_503),
    ):
        assert rms / 1.3 < effects[cause] < rms * 1.3, (cause, effects[cause])


def test_what_cannot_be_told_apart_is_said_so():
    a, b = pair("uniform", 1 << 14, 8)
    found = judge_difference(a, b, (quantize(a, "tf32") @ quantize(b, "tf32")).astype(np.float32))
    assert {DifferenceCause.ORDER, DifferenceCause.TF32} <= set(found.causes)


def test_q_is_what_it_says():
    a, b = pair("normal", 5, 3)
    made = matmul(a, b)
    expected = []
    for i in range(3):
        for j in range(3):
            terms = [Fraction(float(a[i, k])) * Fraction(float(b[k, j])) for k in range(5)]
            expected.append(
                abs(Fraction(float(made[i, j])) - sum(terms)) / (Fraction(1, 1 << 24) * sum(map(abs, terms)))
            )
    found = judge_difference(a, b, made)
    assert found.largest == pytest.approx(float(max(expected)))
    assert quotients(np.array([1.0, 0.0]), np.array([0.0, 0.0]), parse_format("fp32")).tolist() == [np.inf, 0.0]


def test_what_cannot_be_judged_is_named():
    a, b = pair("normal", 5, 3)
    for ask, words in (
        (lambda: judge_difference(a, b, a), "the product has shape"),
        (lambda: judge_difference(a[0], b, a), "a must be a matrix"),
        (
            lambda: judge_difference(a, b, np.full((3, 3), np.nan, np.float32)),
            "actual has elements that are not finite",
        ),
        (lambda: judge_difference(a, b, a @ b, (a @ b)[:1]), "expected has shape"),
        (lambda: judge_difference(a, b, np.ones((3, 3), int)), "actual must be a matrix of floats"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            ask()


def test_inputs_that_have_no_more_digits_are_not_suspected_of_losing_them():
    a, b = (quantize(side, "fp16").astype(np.float16) for side in pair("normal", 60, 20))
    found = judge_difference(a, b, (a.astype(np.float64) @ b.astype(np.float64)).astype(np.float16))
    assert {each.cause for each in found.effects} == {DifferenceCause.ORDER, DifferenceCause.BF16, DifferenceCause.TERM}
    assert not {DifferenceCause.TF32, DifferenceCause.FP16} & set(found.causes)


def test_one_element_that_is_wrong_is_found_wherever_it_is():
    a, b = pair("uniform", 100, 120)
    made = matmul(a, b)
    for place in ((0, 0), (7, 101), (119, 64)):
        other = made.copy()
        other[place] *= np.float32(1.01)
        found = judge_difference(a, b, made, other)
        assert (found.at, found.beyond, found.causes) == (place, 1, (DifferenceCause.ORDER,))
        assert not found.is_rounding
        assert (found.looked_at, found.elements) == (120 * 120, 120 * 120)
    assert judge_difference(a, b, made, matmul(a, b, "lanes(8)")).beyond == 0


@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_a_binary64_product_that_was_computed_in_binary32_is_told(name):
    a, b = (side.astype(np.float64) + 2.0**-40 for side in pair(name, 300))
    narrow = [side.astype(np.float32) for side in (a, b)]
    for made in (matmul(*narrow), matmul(*narrow, "pairwise", fma=True), narrow[0] @ narrow[1]):
        assert judge_difference(a, b, made.astype(np.float64), a @ b).causes == (DifferenceCause.SINGLE,)
    rounded = [side.astype(np.float64) for side in narrow]
    assert DifferenceCause.FP32 in judge_difference(a, b, rounded[0] @ rounded[1], a @ b).causes
    assert judge_difference(a, b, matmul(a, b), a @ b).is_rounding


def test_of_huge_products_a_part_is_looked_at(monkeypatch):
    monkeypatch.setattr("floatlab.reduce.results.judgements._MOST", 1 << 10)
    a, b = pair("normal", 5, 100)
    found = judge_difference(a, b, matmul(a, b), matmul(a, b, "reversed"))
    assert (found.looked_at, found.elements) == (48 * 48, 100 * 100)
