"""A row or column that alone differs, always in one direction, is no matter of order."""

import numpy as np
import pytest

import floatlab as fl


@pytest.mark.parametrize("column", [3, 11])
def test_a_factor_too_small_to_prove_is_not_called_rounding(column):
    rng = np.random.default_rng(column)
    x = rng.standard_normal((25, 17, 60)).astype("float32")
    right = np.add.reduce(x, axis=2)
    wrong = right.copy()
    wrong[:, column] *= np.float32(1 - 2.0**-21)
    found = fl.compare(wrong, right, inputs=(x, 1), op="sum").diagnosis
    assert found.status in ("unknown", "bug")
    assert found.status == "bug" or "in one direction" in found.first


def test_differences_in_both_directions_are_rounding():
    rng = np.random.default_rng(7)
    x = rng.standard_normal((25, 17, 60)).astype("float32")
    right = np.add.reduce(x, axis=2)
    other = right.copy()
    other[:, 3] = np.cumsum(x[:, 3], axis=1, dtype="float32")[:, -1]
    assert fl.compare(other, right, inputs=(x, 1), op="sum").diagnosis.status == "rounding"
