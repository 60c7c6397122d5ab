"""Threads, byte orders, and arrays that are rejected."""

import threading
import time

import numpy as np
import pytest

import floatlab as fl
from floatlab.arrays.conversion import encode, quantize
from floatlab.arrays.operations import add
from floatlab.errors import UnsupportedError


def test_a_refusal_in_one_thread_stops_the_others(monkeypatch):
    from floatlab.arrays.lanes import dispatch

    monkeypatch.setattr(dispatch, "BLOCK", 10)
    done, gate = [], threading.Event()

    def work(given, first, made, flags):
        if first == 0:
            gate.set()
            raise UnsupportedError("no")
        gate.wait(10)
        time.sleep(0.001)
        done.append(first)

    x = np.zeros(100_000, np.uint8)
    with pytest.raises(UnsupportedError, match="no"):
        dispatch.map_blocks(work, [x], np.empty_like(x), threads=4)
    assert len(done) < 1_000  # of 7,500 blocks


def test_results_of_another_byte_order():
    from floatlab.arrays.conversion import decode

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
        (lambda: encode([1.0], "e4m3", fl.Context("RTZ"), context="RNE"), "rounding is a Context"),
        (lambda: encode([1.0], "e4m3", fl.Context("RTZ"), "saturate"), "overflow is saturate, but the context"),
        (lambda: encode([1.0], "e4m3", "SR", seed=3), r"no argument 'seed'.*Context\("),
        (lambda: quantize(np.zeros(32), "mxfp4", foo=3), "no argument 'foo'"),
    ):
        with pytest.raises(UnsupportedError, match=words):
            ask()


def test_integers_of_any_kind_count_threads():
    assert encode(np.zeros(3), "e4m3", threads=np.int64(2)).tolist() == [0, 0, 0]
