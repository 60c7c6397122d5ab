"""Tolerances as defined by NumPy and PyTorch: their verdicts and ours, on pairs near the limit."""

import math
import re

import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.compare.tolerances import TORCH

PAIRS = 1000


def generated(seed, dtypes=(np.float16, np.float32, np.float64)):
    """Yield pairs of arrays with tolerances; most elements differ by about the tolerance."""
    rng = np.random.default_rng(seed)
    for _ in range(PAIRS):
        dtype = rng.choice(dtypes)
        other = dtype if rng.random() < 0.8 else rng.choice([*dtypes, np.int32, np.int8])
        n = int(rng.integers(1, 12))
        rtol, atol = float(rng.choice([0, 1e-7, 1e-5, 1e-3, 0.1])), float(rng.choice([0, 1e-8, 1e-5, 1e-2, 1]))
        with np.errstate(all="ignore"):
            y = (rng.standard_normal(n) * 10.0 ** rng.integers(-8, 6)).astype(dtype)
            about = rng.choice([-1, 1, 1.0000001, 0.9999999, 0.5, 0.0, 1.001, 0], n)
            wanted = y.astype(float) + (atol + rtol * np.abs(y.astype(float))) * np.where(np.isfinite(y), about, 0)
            x = wanted.astype(dtype).astype(other) if other in (np.int32, np.int8) else wanted.astype(other)
        for each in (x, y):
            if each.dtype.kind == "f" and rng.random() < 0.2:
                each[rng.integers(n)] = rng.choice([math.nan, math.inf, -math.inf, 0.0, -0.0])
        if rng.random() < 0.2 and x.dtype.kind == "f":
            place = rng.integers(n)
            x[place] = y[place]
        yield x, y, rtol, atol, bool(rng.random() < 0.5)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numpys_verdict_and_the_smallest_tolerances_are_its_own():
    verdicts = []
    for x, y, rtol, atol, equal_nan in generated(1):
        found = fl.compare(x, y, rtol, atol, equal_nan=equal_nan).allclose
        assert found.passes == np.allclose(x, y, rtol, atol, equal_nan)
        assert found.failing == np.count_nonzero(~np.isclose(x, y, rtol, atol, equal_nan))
        assert found.passes == (found.share is None or found.share.value <= 1)
        kind = np.result_type(y.dtype, 1.0).type
        for which, least in (("rtol", found.least_rtol), ("atol", found.least_atol)):
            if least is None:
                most = {"rtol": rtol, "atol": atol, which: float(np.finfo(kind).max)}
                assert not np.allclose(x, y, equal_nan=equal_nan, **most)
                continue
            assert np.allclose(x, y, equal_nan=equal_nan, **{"rtol": rtol, "atol": atol, which: least})
            if least:
                less = float(np.nextafter(kind(least), kind(0)))
                assert not np.allclose(x, y, equal_nan=equal_nan, **{"rtol": rtol, "atol": atol, which: less})
        verdicts.append(found.passes)
    assert 200 < sum(verdicts) < 800


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_numpy_testings_verdict_is_ours():
    for x, y, rtol, atol, _ in generated(2):
        try:
            np.testing.assert_allclose(x, y, rtol, atol)
            verdict = True
        except AssertionError:
            verdict = False
        assert fl.compare(x, y, rtol, atol, equal_nan=True).within == verdict


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_pytorchs_verdict_counts_and_differences_are_ours():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    verdicts = []
    for x, y, rtol, atol, equal_nan in generated(3):
        found = fl.compare(x, y, equal_nan=equal_nan, torch_tolerances=(rtol, atol)).assert_close
        message = refusal(torch, torch.tensor(x), torch.tensor(y), rtol=rtol, atol=atol, equal_nan=equal_nan)
        assert found.passes == (not message)
        verdicts.append(found.passes)
        if not message or found.unlike:
            assert bool(found.unlike) == ("attribute" in message)
            continue
        assert found.failing == int(re.search(r"elements: (\d+)", message)[1])
        for kind, ours in (("absolute", found.greatest_absolute), ("relative", found.greatest_relative)):
            value, index = re.search(rf"Greatest {kind} difference: (\S+) at index \((\d+),\)", message).groups()
            assert ours.index == (int(index),)
            assert float(value) == ours.value or (value == "nan" and math.isnan(ours.value))
        for which, least in (("rtol", found.least_rtol), ("atol", found.least_atol)):
            if least is not None:
                tolerances = {"rtol": rtol, "atol": atol, which: least}
                assert not refusal(torch, torch.tensor(x), torch.tensor(y), equal_nan=equal_nan, **tolerances)
    assert 150 < sum(verdicts) < 850


def refusal(torch, x, y, **given):
    """Return the message of PyTorch; empty if it passes."""
    try:
        torch.testing.assert_close(x, y, **given)
    except AssertionError as error:
        return str(error)
    return ""


def test_pytorchs_bfloat16_and_its_own_tolerances():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    rng = np.random.default_rng(4)
    verdicts = []
    for turn in range(400):
        y = torch.tensor(rng.standard_normal(12) * 10.0 ** rng.integers(-6, 4)).to(torch.bfloat16)
        rtol, atol = float(rng.choice([0, 1e-5, 1.6e-2, 0.1])), float(rng.choice([0, 1e-8, 1e-5, 1e-2]))
        about = torch.tensor(rng.choice([-1, 1, 0.5, 0, 0.99], 12))
        x = (y.double() + (atol + rtol * y.double().abs()) * about).to(torch.bfloat16)
        own = turn % 3 == 0
        message = refusal(torch, x, y, **({} if own else {"rtol": rtol, "atol": atol}))
        found = fl.compare(x, y, torch_tolerances=None if own else (rtol, atol)).assert_close
        assert found.passes == (not message)
        verdicts.append(found.passes)
    assert 50 < sum(verdicts) < 350


def test_the_default_tolerances_are_pytorchs():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    from torch.testing._comparison import default_tolerances

    names = {
        "binary16": torch.float16,
        "bfloat16": torch.bfloat16,
        "binary32": torch.float32,
        "binary64": torch.float64,
    }
    assert {name: default_tolerances(kind) for name, kind in names.items()} == TORCH


@pytest.mark.parametrize(
    ("x", "y", "rtol", "atol", "equal_nan", "passes"),
    [
        ([1.0], [1.0], 0, 0, False, True),
        ([-0.0], [0.0], 0, 0, False, True),
        ([math.inf], [math.inf], 0, 0, False, True),
        ([math.inf], [-math.inf], 1, 1, False, False),
        ([1e308], [math.inf], 1, 1, False, False),
        ([math.nan], [math.nan], 1, 1, False, False),
        ([math.nan], [math.nan], 0, 0, True, True),
        ([1.1], [1.0], 0.1, 0, False, False),  # 1.1 − 1 is above 0.1 in binary64
        ([1.1], [1.0], 0.1, 1e-15, False, True),
    ],
)
def test_cases_by_hand(x, y, rtol, atol, equal_nan, passes):
    found = fl.compare(x, y, rtol, atol, equal_nan=equal_nan)
    assert found.within == passes == np.allclose(x, y, rtol, atol, equal_nan)


def test_the_margin_is_said_in_shares_of_the_tolerance():
    found = fl.compare(np.float64([1.5, 2.0]), np.float64([1.0, 2.0]), rtol=0, atol=0.125).allclose
    assert (found.share.value, found.share.index, found.least_atol, found.least_rtol) == (4.0, (0,), 0.5, 0.375)


def test_no_tolerance_brings_nan_and_number_together():
    found = fl.compare([math.nan, 1], [1.0, 1]).allclose
    assert (found.least_rtol, found.least_atol, found.share.value) == (None, None, math.inf)


def test_a_relative_tolerance_does_nothing_at_zero():
    found = fl.compare([1e-3], [0.0]).allclose
    assert found.least_rtol is None
    assert found.least_atol == 1e-3


@pytest.mark.parametrize("library", ["numpy", "torch"])
def test_integers_are_judged_as_the_libraries_do(library):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed") if library == "torch" else None
    rng = np.random.default_rng(6)
    for turn in range(200):
        dtype = rng.choice([np.int8, np.uint8, np.int32, np.int64, np.bool_])
        y = rng.integers(0, 2 if dtype == np.bool_ else 100, int(rng.integers(1, 8))).astype(dtype)
        x = (
            ~y
            if dtype == np.bool_ and turn % 2
            else (y.astype(np.int64) + rng.choice([0, 0, 1, 5], len(y))).astype(dtype)
        )
        rtol, atol = float(rng.choice([0, 0.05, 0.1])), float(rng.choice([0, 1, 2]))
        if torch is None:
            assert fl.compare(x, y, rtol, atol).within == np.allclose(x, y, rtol, atol)
            continue
        given = {} if turn % 3 else {"rtol": rtol, "atol": atol}
        message = refusal(torch, torch.tensor(x), torch.tensor(y), **given)
        assert fl.compare(x, y, torch_tolerances=(rtol, atol) if given else None).assert_close.passes == (not message)
