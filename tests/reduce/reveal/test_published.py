"""The quicker form of the published algorithm, compared with `reveal` and with known trees."""

import numpy as np
import pytest

from floatlab.reduce.plan.grouped_schedules import NUMPY, SERIAL
from floatlab.reduce.reveal.revelation import reveal
from tests.reduce.reveal.published import multiplied, revealed


def subtrees(plan):
    below = [frozenset([i]) for i in range(plan.terms)]
    for node in plan.nodes:
        below.append(frozenset().union(*(below[each] for each in node)))
    return set(below)


@pytest.mark.parametrize("n", [1, 2, 9, 40, 200])
def test_known_orders_are_found(n):
    assert revealed(np.sum, n)[0] == subtrees(NUMPY.plan(n)) == subtrees(reveal("numpy.sum", n))
    found, calls = revealed(lambda x: np.cumsum(x)[-1], n)
    assert found == subtrees(SERIAL.plan(n))
    assert calls == n - 1


@pytest.mark.parametrize("n", [5, 64, 150])
def test_matrix_products_too(n):
    assert revealed(multiplied(n), n)[0] == subtrees(reveal("numpy.matmul", n))


def test_nodes_of_many_terms():
    def fused(x):
        total = 0.0
        for k in range(0, len(x), 3):
            part = [total, *x[k : k + 3].tolist()]
            big = max(map(abs, part))
            total = sum(each for each in part if abs(each) == big) if big > 2**60 else sum(part)
        return total

    found, _ = revealed(fused, 9)
    assert found == {frozenset([i]) for i in range(9)} | {frozenset(range(k)) for k in (3, 6, 9)}
    assert found == subtrees(reveal(lambda x: np.float32(fused(x)), 9))
