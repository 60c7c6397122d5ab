"""What the other result says about a fault: elements with equal bits, and results that differ by one operation.

Two results of one product share no rounding errors unless they are computed alike. Equal bits in all elements but a
few therefore exclude every computation that would change the errors of all elements.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.faults.rearranged import shapes_of
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import View

_BESIDES = 0.25  # at most this many other elements differ, as a share of the wrong ones
# The errors of a rearranged product are typically at least this share of the largest one. The probability that one of
# them leaves a number's bits unchanged is that of a normal variable, and a coincidence has at most exp(−_DOUBT).
_TYPICAL, _DENSITY, _DOUBT = 1 / 6, 0.4, 14.0


def agree_elsewhere(view: View, wrong: Array, differing: Array, x: Array, y: Array) -> bool:
    """Return whether equal bits in other elements exclude that rearranging the product made a few elements wrong.

    A rearranged or fast product has errors of similar sizes in all elements, except for the norms of rows and columns.
    If its errors were large enough for the wrong elements, they would have changed many others.

    Parameters
    ----------
    view : View
        The result that has the wrong elements.
    wrong, differing : array of bool
        The wrong elements, and the elements in which the two results differ.
    x, y : array
        The factors.
    """
    others = int((differing & ~wrong).sum())
    if not wrong.any() or (wrong & ~differing).any() or others > _BESIDES * wrong.sum():
        return False
    equal = view.usable & ~differing & ~view.noise.is_exact(view.totals)
    error, ulp = np.abs(view.totals.error(view.values)), 2 * half_ulp(view.values, view.format)
    _, first = np.unique(np.where(equal, view.values, np.nan), return_index=True)
    shown = np.zeros(equal.size, np.bool_)
    shown[first] = equal.reshape(-1)[first]  # equal numbers count once
    for shape in shapes_of(x, y):
        with np.errstate(all="ignore"):
            typical = _TYPICAL * float(np.max((error / shape)[wrong])) * shape
            doubt = np.maximum(np.log(typical / (_DENSITY * ulp)), 0.0).reshape(-1)[shown]
        if not doubt.sum() >= _DOUBT:
            return False
    return True
