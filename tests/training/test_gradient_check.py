"""Finite differences: quotients equal NumPy's, the best step is near the one that theory gives, and verdicts."""

import math

import numpy as np
import pytest

import floatlab as fl
from floatlab.training.gradient_check import advised_step, check_gradient, sweep_steps
from floatlab.training.rounded_number import RoundedNumber


def polynomial(x):
    return x * x * x - 2 * x + 1 / x


def slope(x):
    return 3 * x * x - 2 - 1 / (x * x)


@pytest.mark.parametrize(("name", "kind"), [("fp16", np.float16), ("fp32", np.float32), ("fp64", np.float64)])
def test_quotients_are_numpys(name, kind):
    curves = [sweep_steps(polynomial, 1.25, name, way) for way in ("forward", "central")]
    for forward, central in zip(*(each.points for each in curves), strict=True):
        x, h = kind(1.25), kind(forward.h)
        if x + h == x or h > 1:
            continue
        one, two = kind(1), kind(2)

        def f(x, one=one, two=two):
            return x * x * x - two * x + one / x

        assert forward.quotient == (f(x + h) - f(x)) / h
        if x - h != x:
            assert central.quotient == (f(x + h) - f(x - h)) / (two * h)


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32", "fp64"])
@pytest.mark.parametrize("way", ["forward", "central"])
def test_the_best_step_is_where_theory_has_it(name, way):
    curve = sweep_steps(polynomial, 1.25, name, way)
    assert curve.derivative == pytest.approx(slope(1.25), rel=1e-9)
    assert 1 / 40 < curve.best.h / curve.advised < 40
    p = fl.parse_format(name).precision
    root = 2.0 ** (-p / 2 if way == "forward" else -2 * p / 3)
    assert curve.best.relative < 10 * root
    assert curve.at_advised.relative < 40 * root
    assert curve.points[0].relative > 10 * curve.best.relative
    assert all(point.error <= point.rounding + 2 * point.truncation + 1e-11 for point in curve.points if point.h < 0.3)


def test_small_steps_of_binary32_are_noise():
    noise = [abs(p.relative) for p in sweep_steps(math.sin, 1.0, "fp32", steps=[1e-6, 2e-6], round_all=False).points]
    good = sweep_steps(math.sin, 1.0, "fp32", steps=[1e-2], round_all=False).points[0]
    assert min(noise) > 1e-3 > 1e-4 > good.relative
    assert sweep_steps(math.sin, 1.0, "fp64", steps=[1e-6], round_all=False).points[0].relative < 1e-9


@pytest.mark.parametrize("name", ["fp16", "bf16", "fp32", "fp64"])
def test_verdicts(name):
    rng = np.random.default_rng(1)
    for x in rng.uniform(0.6, 2, 12):
        x = float(fl.encode(x, name))
        assert check_gradient(polynomial, x, slope(x), name).verdict != "a bug"
        assert check_gradient(polynomial, x, slope(x) * 3 + 4, name).verdict != "agrees"
    if name in ("fp32", "fp64"):
        assert check_gradient(polynomial, 1.5, slope(1.5), name).verdict == "agrees"
        assert check_gradient(polynomial, 1.5, slope(1.5) * 1.02, name).verdict == "a bug"
        tiny = 2.0 ** (1 - fl.parse_format(name).precision)
        assert check_gradient(polynomial, 1.5, slope(1.5) * 1.02, name, h=tiny).verdict == "unclear"


def test_advice():
    assert advised_step("fp32") == pytest.approx(2 ** (-24 / 3))
    assert advised_step("fp32", "forward", 100) == pytest.approx(100 * 2**-12)


def test_numbers_of_a_format():
    x = RoundedNumber("0.5" and 0.1, "fp16")
    half = np.float16(0.1)
    assert float((1 - x) / (x + 3) - -x) == (np.float16(1) - half) / (half + np.float16(3)) + half
    assert float((x**3).sqrt()) == np.sqrt(half * half * half)
    assert (x + 1 - x).roundings == 2


def root(x):
    return math.sqrt(x) if x >= 0 else math.nan


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: sweep_steps(polynomial, float("nan")), "x must be a finite number, not 'nan'"),
        (lambda: sweep_steps(polynomial, 1e6, "fp16"), "x, 1000000.0, is beyond binary16"),
        (lambda: sweep_steps(polynomial, 1, "fp128"), "binary64 does not hold"),
        (lambda: sweep_steps(polynomial, 1, "e8m0"), "no zero and no sign"),
        (lambda: sweep_steps(polynomial, 1, way="centre"), "did you mean 'central'"),
        (lambda: sweep_steps("x", 1), "the function must be callable"),
        (lambda: sweep_steps(lambda x: math.inf, 1, round_all=False), "no finite number for the float 1: give its der"),
        (lambda: sweep_steps(lambda x: x.sqrt(), 1), "no finite number for the float 1: give its derivative"),
        (lambda: sweep_steps(root, 1e-5, round_all=False), "no finite number for floats near 1e-05"),
        (lambda: sweep_steps(lambda x: 1.0, 1), "the function returned float"),
        (lambda: check_gradient(polynomial, 1, "inf"), "reported derivative must be a finite number"),
        (lambda: check_gradient(polynomial, 1, 1, h=0), "h must be a finite number above 0"),
        (lambda: check_gradient(polynomial, 1, 1, "fp16", h=1e-9), "h is zero in binary16"),
        (lambda: RoundedNumber(1, "fp16") ** 0.5, "the exponent of a power"),
    ],
)
def test_refusals(call, match):
    with pytest.raises(fl.FloatlabError, match=match):
        call()


@pytest.mark.parametrize(
    ("function", "x", "right"),
    [
        (lambda x: (x + 1000.0) * (x + 1000.0) - 1000000.0, 0.0111, 2000.0222),
        (lambda x: (x + 64.0) - 64.0 + x * x, -0.0332, 0.9336),
        (lambda x: (1.0 - x) * (1.0 - x) * (1.0 - x) * (1.0 - x), 1.01, 0.000004),
    ],
)
@pytest.mark.parametrize("way", ["forward", "central"])
def test_what_cancels_on_the_way_is_no_bug(function, x, right, way):
    for name in ("fp16", "tf32", "fp32"):
        assert check_gradient(function, x, right, name, way).verdict != "a bug", name
    assert check_gradient(function, x, 3 * right + 1, "fp64", way).verdict == "a bug"


def test_a_long_step_is_judged_by_its_ends():
    for h in (0.4, 0.8):  # the first derivatives at 0 are zero
        assert check_gradient(lambda x: x * x * x * x * x, 0.0, 0.0, "fp32", h=h).verdict != "a bug"


def test_a_wide_bound_agrees_with_nothing():
    assert check_gradient(lambda x: x * x * x, 1.5116394, 7.54, "fp32", h=4.4762763e-07).verdict == "unclear"


def test_a_step_beyond_the_format_is_refused():
    with pytest.raises(fl.UnsupportedError, match="h is beyond binary32"):
        check_gradient(lambda x: x * x, 1.0, 2.0, "fp32", h=1e300)
