"""The published algorithm for revealing orders, in a simple form: a call of the function per probe.

P. Xie, Y. Gao and J. Xue, *FPRev: revealing floating-point accumulation orders* (USENIX ATC 2025; arXiv:2411.00442),
sections 4 and 5. Trees are the sets of terms below their nodes.
"""

import numpy as np

HUGE = 2.0**100


def revealed(function, n):
    """Return the sets of terms that a function of n float32 numbers adds up in its nodes, and how often it was called.

    The first term of a group is paired with all others. Terms that meet it in a subtree of the same size are added
    together, and form subtrees by the same rule.
    """
    found, calls = [frozenset([i]) for i in range(n)], 0

    def size(i, j):
        nonlocal calls
        calls += 1
        x = np.ones(n, np.float32)
        x[i], x[j] = HUGE, -HUGE
        return n - int(function(x))

    groups = [(list(range(n)), n + 1)]
    while groups:
        (first, *others), above = groups.pop()
        meets = {}
        for j in others:
            meets.setdefault(size(first, j), []).append(j)
        below = [first]
        for met in sorted(meets):
            groups.append((meets[met], met))
            if met < above:
                below += meets[met]
                assert len(below) == met, "no tree"
                found.append(frozenset(below))
    return set(found), calls


def multiplied(n):
    """Return numpy.matmul's sum of n products; a whole matrix is computed for it, as in the published programs.

    It has as many rows and columns as `reveal` uses, since the order also depends on the shape.
    """
    rows, ones = np.ones((64, n), np.float32), np.ones((n, 64), np.float32)

    def function(x):
        rows[0] = x
        return (rows @ ones)[0, 0]

    return function
