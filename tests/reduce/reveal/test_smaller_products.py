"""Orders of a few elements that cannot be probed, guessed from smaller products of the same function."""

import numpy as np
import pytest

from floatlab.reduce.reveal.order_map import order_map
from tests.reduce.reveal.test_order_map import assert_replays


def tiles_with_a_corner(a, b):
    """Add blocks of 16 terms; the last row and columns of tiles of 4 × 4 are added in two lanes where both meet."""
    made = np.zeros((len(a), b.shape[1]), a.dtype)
    rows, columns = len(a) - len(a) % 4, b.shape[1] - b.shape[1] % 4
    for low in range(0, a.shape[1], 16):
        products = a[:, low : low + 16, None] * b[low : low + 16]
        block = np.cumsum(products, axis=1)[:, -1]
        corner = products[rows:, :, columns:]
        if corner.size and corner.shape[1] > 1:
            block[rows:, columns:] = sum(np.cumsum(corner[:, lane::2], axis=1)[:, -1] for lane in range(2))
        made += block
    return made


@pytest.mark.parametrize("layout", ["A@B", "A.T@B"])
def test_a_corner_that_cannot_be_probed_is_guessed_from_smaller_products(monkeypatch, layout):
    monkeypatch.setattr("floatlab.reduce.reveal.order_map._WORK", 1 << 20)  # 14 terms of a single row
    shape = (41, 100, 26)
    found = order_map(tiles_with_a_corner, shape, kind="matmul", layout=layout)
    assert_replays(found, tiles_with_a_corner)
    assert sorted(each.elements for each in found.classes) == [2, 41 * 26 - 2]


def test_a_corner_stays_unexplained_if_the_target_takes_no_other_shape(monkeypatch):
    def stubborn(a, b):
        if a.shape != (41, 100):
            raise ValueError("another shape")
        return tiles_with_a_corner(a, b)

    monkeypatch.setattr("floatlab.reduce.reveal.order_map._WORK", 1 << 20)
    monkeypatch.setattr("floatlab.reduce.reveal.order_map._WORK_SHARED", 1 << 22)
    found = order_map(stubborn, (41, 100, 26), kind="matmul")
    whole, corner = found.classes
    assert whole.candidate is not None
    assert (corner.candidate, corner.elements) == (None, 2)
    assert "too few of these elements" in corner.reason


def blocks_and_two_corners(a, b):
    """Add blocks of 16 terms; the last element of the first row and the first one of the last row use two lanes."""
    made = np.zeros((len(a), b.shape[1]), a.dtype)
    corners = made.copy()
    for low in range(0, a.shape[1], 16):
        products = a[:, low : low + 16, None] * b[low : low + 16]
        made += np.cumsum(products, axis=1)[:, -1]
        corners += sum(np.cumsum(products[:, lane::2], axis=1)[:, -1] for lane in range(2))
    made[0, -1], made[-1, 0] = corners[0, -1], corners[-1, 0]
    return made


def test_the_last_row_of_a_class_need_not_have_its_last_column(monkeypatch):
    monkeypatch.setattr("floatlab.reduce.reveal.order_map._WORK", 1 << 20)
    monkeypatch.setattr("floatlab.reduce.reveal.order_map._WORK_SHARED", 1 << 20)
    found = order_map(blocks_and_two_corners, (41, 100, 26), kind="matmul")
    assert_replays(found, blocks_and_two_corners)
    assert [each.elements for each in found.classes] == [41 * 26 - 2, 2]
