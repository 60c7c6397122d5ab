"""The measures of the errors of products."""

import warnings

import numpy as np
import pytest

from floatlab.reduce.results.products import matrix_product


@pytest.mark.parametrize(("row", "ulps"), [([1, 2.0**-60, -1], 2.0**1014), ([2.0**900, 2.0**-100, 0], 2.0**-948)])
def test_errors_whose_squares_leave_the_range_have_a_mean(row, ulps):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = matrix_product(np.array([row]), np.ones((3, 1))).errors()
    assert found.largest == found.rms == ulps
