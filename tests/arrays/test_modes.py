"""A processor that another library has told to round, or to flush, otherwise."""

import ctypes
import platform
import threading
import time

import numpy as np
import pytest

from floatlab.arrays import add, compiled, encode, fma, multiply, quantize, spacing
from floatlab.errors import UnsupportedError

UPWARD = 0x800  # FE_UPWARD on x86
x86 = pytest.mark.skipif(
    platform.machine() != "x86_64" or platform.system() != "Linux", reason="the constant is that of x86 on Linux"
)


@pytest.fixture
def upward():
    """Have this thread round toward +∞, and end as it was."""
    maths = ctypes.CDLL("libm.so.6")
    assert maths.fesetround(UPWARD) == 0
    yield maths
    maths.fesetround(0)


X = np.float32([1, 1e-39, 3, 0.1, -7])
Y = np.float32([1e-10, 1e-39, 1e-12, 0.2, 1e-20])
CALLS = {
    "add fp32": lambda: add(X, Y, "fp32"),
    "add bf16": lambda: add(X, Y, "bf16"),
    "multiply fp32": lambda: multiply(X, Y, "fp32"),
    "fma fp64": lambda: fma(X.astype(float), Y.astype(float), 1 / 3, "fp64"),
    "quantize e4m3": lambda: quantize(X, "e4m3"),
    "encode fp16": lambda: encode(np.float64(X), "fp16"),
    "mxfp4": lambda: quantize(np.tile(X[3:4], 32), "mxfp4"),
    "nvfp4": lambda: quantize(np.tile(X[3:4], 32), "nvfp4"),
    "spacing": lambda: spacing(X),
}
EXPECTED = {name: call() for name, call in CALLS.items()}


@x86
@pytest.mark.parametrize("name", CALLS)
def test_the_mode_of_the_processor_changes_nothing(name, upward):
    assert np.float32(1) + np.float32(2**-40) > 1, "the mode is not what this test wants"
    if not compiled.is_built():
        with pytest.raises(UnsupportedError, match="does not round to nearest"):
            CALLS[name]()
        return
    found = CALLS[name]()
    assert np.array_equal(found, EXPECTED[name])
    assert upward.fegetround() == UPWARD


def test_a_refusal_in_one_thread_stops_the_others(monkeypatch):
    from floatlab.arrays import lanes

    monkeypatch.setattr(lanes, "BLOCK", 10)
    done, gate = [], threading.Event()

    def work(first, given, made):
        if first == 0:
            gate.set()
            raise UnsupportedError("no")
        gate.wait(10)
        time.sleep(0.001)
        done.append(first)

    x = np.zeros(100_000, np.uint8)
    with pytest.raises(UnsupportedError, match="no"):
        lanes.sweep(work, [x], [np.empty_like(x)], threads=4)
    assert len(done) < 1_000  # of 7,500 blocks


def test_results_of_another_byte_order():
    from floatlab.arrays import decode

    out = np.zeros(2, ">f8")
    assert decode([0x3C00, 0x4000], "fp16", dtype=">f8").tolist() == [1, 2]
    assert decode([0x3C00, 0x4000], "fp16", dtype=">f8", out=out) is out
    assert out.tolist() == [1, 2]


def test_what_shares_memory_with_itself_or_hides_elements_is_refused():
    out = np.lib.stride_tricks.as_strided(np.zeros(1, np.uint8), (3,), (0,))
    for ask, words in (
        (lambda: encode(np.zeros(3), "e4m3", out=out), "share their memory|read-only"),
        (lambda: encode(np.ma.array([1.0, 2.0], mask=[1, 0]), "e4m3"), "masked array"),
        (lambda: add(np.ma.array([1.0]), 1.0, "e4m3"), "masked array"),
        (lambda: encode([1.0], "e4m3", context="RNE"), "context is a floatlab.Context, not str"),
        (lambda: add(1.0, 1.0, "e4m3", context={}), "context is a floatlab.Context, not dict"),
        (lambda: encode([1.0], "e4m3", "SR", seed=3), r"no argument 'seed'.*Context\("),
        (lambda: quantize(np.zeros(32), "mxfp4", foo=3), "no argument 'foo'"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            ask()


def test_integers_of_any_kind_count_threads():
    assert encode(np.zeros(3), "e4m3", threads=np.int64(2)).tolist() == [0, 0, 0]
