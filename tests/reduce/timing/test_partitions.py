"""One product in several partitions: the same numbers except for rounding, times, and errors."""

from fractions import Fraction
from itertools import count

import numpy as np
import pytest

from floatlab.errors import UnsupportedError
from floatlab.reduce.timing import measurement
from floatlab.reduce.timing.partitions import PARTITIONS, time_partitions, ulps_apart

WAYS = len(PARTITIONS)


def test_the_ways_differ_by_rounding_only():
    rng = np.random.default_rng(2)
    a, b = rng.random((40, 200), np.float32), rng.random((200, 30), np.float32)
    found = time_partitions(a, b, 2)
    assert (found.shape, found.asked, found.interrupted) == ((40, 200, 30), 2, False)
    assert [way.name for way in found.products] == [*PARTITIONS]
    for way in found.products:
        assert way.product.shape == (40, 30)
        assert way.product.dtype == np.float32
        assert len(way.timing.runs) == 2
        assert 0 < way.largest_q < 200  # n, the bound for every order, to first order
    exact = sum(Fraction(float(a[3, k])) * Fraction(float(b[k, 4])) for k in range(200))
    for way in found.products:
        assert abs(Fraction(float(way.product[3, 4])) - exact) <= Fraction(way.largest_error) * Fraction(1001, 1000)
    assert set(found.nearest) == {
        way.name for way in found.products if way.largest_q == min(each.largest_q for each in found.products)
    }


def test_how_far_they_part():
    found = ulps_apart(time_partitions(np.eye(5), np.arange(25.0).reshape(5, 5), 1).products)
    assert found == [[0] * WAYS] * WAYS
    rng = np.random.default_rng(2)
    ways = time_partitions(rng.standard_normal((20, 300)), rng.standard_normal((300, 20)), 1)
    found = np.array(ulps_apart(ways.products))
    assert np.array_equal(found, found.T)
    assert found.max() > 0
    assert not found.diagonal().any()
    assert time_partitions(np.eye(5), np.eye(5), 1).nearest == (*PARTITIONS,)


@pytest.mark.parametrize("block", [1, 7, 100, 10**9])
def test_blocks_are_of_the_size_asked_for(block):
    rng = np.random.default_rng(3)
    a, b = rng.random((6, 100), np.float32), rng.random((100, 5), np.float32)
    expected = np.zeros((6, 5), np.float32)
    for k in range(0, 100, block):
        expected += a[:, k : k + block] @ b[k : k + block]
    made = time_partitions(a, b, 1, block)
    (way,) = (way for way in made.products if way.name == "in blocks")
    assert np.array_equal(way.product, expected)
    assert made.block == block


def test_times_are_those_of_the_clock(monkeypatch):
    """On a clock that advances by 1, 2, 3 … seconds, which every run reads twice."""
    passed = count(1)
    now = [0.0]

    def clock():
        now[0] += next(passed)
        return now[0]

    monkeypatch.setattr(measurement, "perf_counter", clock)
    done = []
    found = time_partitions(np.ones((3, 4)), np.ones((4, 2)), 3, started=lambda n, noun: done.append(n) or done.append)
    assert [way.first for way in found.products] == [2.0 * n for n in range(1, WAYS + 1)]
    assert sorted(t for way in found.products for t in way.timing.runs) == [
        2.0 * n for n in range(WAYS + 1, 4 * WAYS + 1)
    ]
    for way in found.products:
        assert way.gigaflops == 2 * 3 * 4 * 2 / sorted(way.timing.runs)[1] / 1e9
    assert done == [4 * WAYS] + [1] * 4 * WAYS


def test_an_interrupt_keeps_what_was_timed(monkeypatch):
    """Ctrl-C in the third round after the first products."""
    calls = count(1)

    def matmul(a, b):
        if next(calls) == 4:
            raise KeyboardInterrupt
        return a @ b

    monkeypatch.setitem(PARTITIONS, "whole", matmul)
    found = time_partitions(np.ones((3, 4)), np.ones((4, 2)), 9, keep_interrupted=True)
    assert found.interrupted
    assert {len(way.timing.runs) for way in found.products} == {2}
    calls = count(1)
    with pytest.raises(KeyboardInterrupt):
        time_partitions(np.ones((3, 4)), np.ones((4, 2)), 9)


def test_what_is_no_product_is_refused():
    ones = np.ones((2, 3))
    for a, b in ((ones[0], ones), (ones, ones), (ones.astype(int), ones.T), (ones[:0], ones.T), (ones, ones.T[:, :0])):
        with pytest.raises(UnsupportedError):
            time_partitions(a, b)
    for runs, block in ((0, 1), (1, 0), (1, 2.5)):
        with pytest.raises(UnsupportedError):
            time_partitions(ones, ones.T, runs, block)
