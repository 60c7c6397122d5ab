"""Sums of a matrix unit that adds blocks of products exactly and truncates each sum, with and without a fault."""

import numpy as np
import pytest

from floatlab.reduce.explain.diagnosis import diagnose


def truncated(exact):
    """Round binary64 numbers to binary32, toward zero."""
    near = exact.astype(np.float32)
    return np.where(np.abs(near.astype(np.float64)) > np.abs(exact), np.nextafter(near, np.float32(0)), near)


@pytest.fixture(params=[4, 8, 16])
def sums(request):
    rng = np.random.default_rng(request.param)
    x, y = (np.abs(rng.standard_normal(shape)).astype(np.float16) for shape in ((20, 256), (256, 15)))
    total = np.zeros((20, 15), np.float32)
    for k in range(0, 256, request.param):  # a block of products of 22 bits is exact in binary64
        part = x[:, k : k + request.param].astype(np.float64) @ y[k : k + request.param].astype(np.float64)
        total = truncated(total + part)
    return x, y, x.astype(np.float32) @ y.astype(np.float32), total


def test_truncated_sums_of_blocks_are_named(sums):
    x, y, usual, total = sums
    found = diagnose(x, y, usual, total)
    assert (found.status, found.names) == ("rounding", ("accumulator",)), found.first


def test_a_wrong_element_beside_truncated_sums_is_found(sums):
    x, y, usual, total = sums
    total[7, 11] *= 1.05
    found = diagnose(x, y, usual, total)
    assert (found.status, found.causes[0].where) == ("bug", ((7, 11),)), found.first
    assert set(found.names) <= {"elements", "accumulator"}, found.first


def test_elements_that_another_order_may_give_are_not_called_wrong(sums):
    x, y, usual, total = sums
    total[:, 14] = usual[:, 14]  # this column was added in another way
    assert diagnose(x, y, usual, total).status != "bug"
