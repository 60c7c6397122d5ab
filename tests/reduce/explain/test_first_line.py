"""The first line of a diagnosis, in words."""

import numpy as np
import pytest

import floatlab as fl


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (slice(None), "Yes: all elements of B are NaN."),
        (slice(0, 60), "Yes: elements (0, 0), (0, 1), (0, 2), (0, 3) and others, 86 % of all elements, of B are NaN; "),
        (slice(0, 1), "Yes: elements (0, 0), (0, 1), (0, 2), (0, 3) and 76 more of B are NaN; "),
    ],
)
def test_the_number_of_nans_is_told_beyond_those_that_are_listed(rows, words):
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal((70, 9), np.float32), rng.standard_normal((9, 80), np.float32)
    made = x @ y
    made[rows] = np.nan
    assert fl.compare(x @ y, made, inputs=(x, y)).diagnosis.first.startswith(words)
