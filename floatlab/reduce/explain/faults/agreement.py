"""Evidence from the other result: elements with equal bits, and results that differ by a factor, bias or transposition.

Two results of one product have the same rounding errors only if they are computed in the same way. So if only a few
elements differ, computations that would change the errors of all elements are excluded.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.estimates import shortest_between
from floatlab.reduce.explain.faults.patterns import drift_of
from floatlab.reduce.explain.faults.rearranged import shapes_of
from floatlab.reduce.explain.faults.shared import ROUNDED, fits_any_line
from floatlab.reduce.explain.findings import SideExplanation
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import ProductProblem, View, view_of
from floatlab.reduce.explain.residuals import is_flat, share_of
from floatlab.reduce.explain.ways import own_accumulator
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Evidence

_BESIDES = 0.25  # for each wrong element, at most this many other elements may differ
# Errors of a rearranged product are assumed to be normal, with the standard deviation s = _TYPICAL · largest error. The
# probability that all equal bits are a coincidence must be at most exp(−_DOUBT). If an element has an independent error
# of size s, its bits equal those of the other result with the probability _DENSITY·ulp/s.
_TYPICAL, _DENSITY, _DOUBT = 1 / 6, 0.4, 14.0
_MOST = 1 - 2.0**-30  # the largest assumed probability that an error changes the bits of an element
# The fault is in the result whose mean error is more significant: above _CLEAR standard deviations, and above _CLEARER
# times (for a factor) or _CLEARER² times (for a bias) the standard deviations of the other result.
_CLEAR, _CLEARER = 6.0, 3.0
_MOSTLY = 0.5  # at least this share of the columns (or rows) must have a bias


def agree_elsewhere(view: View, wrong: Array, differing: Array, x: Array, y: Array) -> bool:
    """Return whether equal bits in other elements show that the wrong elements are not due to a rearranged product.

    In a rearranged or fast product, the errors of all elements have similar sizes relative to the norms of their rows
    and columns. Errors as large as those of the wrong elements would have changed many other elements.

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
    # Elements with exact sums are usually no evidence: a rearranged product may compute them exactly, too. But if the
    # wrong elements of a narrow output have exact sums, a rearranged product would also change other exact sums.
    are_exact = view.noise.is_exact(view.totals)
    is_narrow = isinstance(view.half, np.ndarray) and bool(are_exact[wrong].all())
    equal = view.usable & ~differing & (view.totals.size > 0) & (~are_exact | is_narrow)
    error, half = np.asarray(view.totals.error(view.values)), half_ulp(view.values, view.format)
    _, first = np.unique(np.where(equal, view.totals.product, np.nan), return_index=True)
    shown = np.zeros(equal.size, np.bool_)
    shown[first] = equal.reshape(-1)[first]  # equal numbers count once
    before = np.maximum(np.abs(error) - half, 0.0)  # the smallest possible error before the final rounding
    # Larger errors than these change the bits of an element.
    room = [np.maximum(half + each, 0.0) for each in (error, -error)]
    for shape in shapes_of(x, y):
        with np.errstate(all="ignore"):
            typical = _TYPICAL * float(np.max((before / shape)[wrong])) * shape
            changed = _beyond(room[0] / typical) + _beyond(room[1] / typical)
            doubt = -np.log1p(-np.minimum(changed, _MOST)).reshape(-1)[shown]
        if not doubt.sum() >= _DOUBT:
            return False
    return True


def _beyond(t: Array) -> Array:
    """Return an approximation of the probability that a normal variable exceeds t ≥ 0 standard deviations."""
    probability: Array = 0.5 * np.exp(-0.717 * t - 0.416 * t * t)
    return probability


def related_fault(problem: ProductProblem, explained: Sequence[SideExplanation]) -> DiagnosedCause | None:
    """If one result is right, return the fault that turns it into the other result bit for bit; otherwise None."""
    status = [each.status for each in explained]
    if any(each.causes or each.model.name for each in explained) or "product" not in status:
        return None
    if is_flat(problem.totals.product):
        return None  # equal elements are one observation, which a factor or a bias always explains
    first, second = (view_of(problem, each.side, own_accumulator(each.side.rounded_to)) for each in explained)
    found = relation_of((first, second), (status[0] == "unknown", status[1] == "unknown"))
    if found is not None and found.name == "bias":
        axis = int(("one number a", "row") in found.evidence)
        return None if fits_any_line(problem, axis) else found
    return found


def relation_of(views: tuple[View, View], unexplained: tuple[bool, bool]) -> DiagnosedCause | None:
    """Return the fault if a factor, a bias or a transposition of one result gives the other, bit for bit.

    Both results then have the same rounding errors. So even faults can be found that are too small to be noticed when
    the result is compared with the exact product. If only one result is `unexplained`, this result has the fault.
    Otherwise, the result with the larger mean error has the fault. Return None if neither mean error is clearly larger.
    A transposition is looked for only if exactly one result is unexplained.
    """
    a, b = (view.values for view in views)
    same = views[0].format == views[1].format and all(view.usable.all() for view in views)
    if not same or not (a != b).any():
        return None
    drifts = [drift_of(view) for view in views]
    for i, view in enumerate(views):
        mine, other = drifts[i], drifts[1 - i]
        clear = (
            abs(mine.scale) > max(_CLEAR, _CLEARER * abs(other.scale)),
            *(one > max(_CLEAR, _CLEARER**2 * two) for one, two in zip(mine.bias, other.bias, strict=True)),
        )
        if unexplained[0] != unexplained[1]:
            clear = (unexplained[i],) * 3
        good, bad, ulp = views[1 - i].values, view.values, 2 * half_ulp(view.values, view.format)
        found: tuple[str, Evidence] | None = None
        if clear[0] and (factor := _factor(good, bad, ulp, view)):
            found = "scale", (("factor", f"{factor:.9g}"),)
        elif clear[1] and _is_bias(good, bad, ulp, 0):
            found = "bias", (("one number a", "column"),)
        elif clear[2] and _is_bias(good, bad, ulp, 1):
            found = "bias", (("one number a", "row"),)
        elif unexplained == (i == 0, i == 1) and _is_transposed(good, bad, ulp):
            found = "transposed-output", (("transposed", "the result"),)
        if found is not None:
            known = ("all others", "the numbers of the other result, bit for bit")
            return DiagnosedCause(found[0], "result", ("actual", "expected")[i], 1.0, (), (*found[1], known))
    return None


def _doubts(good: Array, bad: Array, window: Array) -> Array:
    """Return −ln of the probability of a coincidence for each number of `bad`, or 0 if an equal number precedes it.

    A coincidence means that a number of `bad` lies in an interval of the width `window` by chance. Its probability is
    the width divided by the distance of `bad` from `good`.
    """
    doubts = np.zeros(bad.shape)
    first = np.unravel_index(np.unique(bad, return_index=True)[1], bad.shape)
    with np.errstate(all="ignore"):
        doubts[first] = np.log(np.abs(bad - good)[first] / window[first])
    return doubts.clip(min=0.0)


def _factor(good: Array, bad: Array, ulp: Array, view: View) -> float:
    """Return the factor by which `good` is multiplied to give `bad`, up to rounding.

    Return 0 if there is no such factor, if it is so close to 1 that rounding may be the only difference, or if it may
    fit by chance.
    """
    zero = good == 0
    if (bad[zero] != 0).any() or zero.all():
        return 0.0
    with np.errstate(all="ignore"):
        ends = (bad - ulp / 2) / good, (bad + ulp / 2) / good
        low, high = (float(pick(end(*ends)[~zero])) for pick, end in ((np.max, np.minimum), (np.min, np.maximum)))
    if not low <= high or min(abs(low - 1), abs(high - 1)) <= ROUNDED * 2.0**-view.format.precision or low <= 1 <= high:
        return 0.0
    doubts = _doubts(good[~zero], bad[~zero], ulp[~zero])
    # One number determines the factor, and the others confirm it.
    return shortest_between(low, high) if doubts.sum() - doubts.max() >= _DOUBT else 0.0


def _is_bias(good: Array, bad: Array, ulp: Array, axis: int) -> bool:
    """Return whether `good` plus one number per column (axis 0) or per row (axis 1), rounded, gives `bad`.

    At least half of these numbers must differ from 0. Return False if they may fit by chance.
    """
    with np.errstate(all="ignore"):
        low, high = (
            (bad - ulp / 2 - good).max(axis=axis, keepdims=True),
            (bad + ulp / 2 - good).min(axis=axis, keepdims=True),
        )
    if not (low <= high).all() or share_of((low > 0) | (high < 0)) < _MOSTLY:
        return False
    # One number of each column or row determines the bias, and the others confirm it.
    doubts = _doubts(good, bad, ulp)
    return bool((doubts.sum(axis=axis) - doubts.max(axis=axis)).sum() >= _DOUBT)


def _is_transposed(good: Array, bad: Array, ulp: Array) -> bool:
    if not np.array_equal(good.T, bad):
        return False
    upper = np.triu_indices(len(good), 1)
    return bool(_doubts(good[upper], bad[upper], _DENSITY * ulp[upper]).sum() >= _DOUBT)
