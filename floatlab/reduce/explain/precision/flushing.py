"""Whether numbers that were flushed to zero may be the reason for the errors of some elements."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.problem import ProductProblem, View
from floatlab.reduce.explain.residuals import find_places, share_of

_TERMS = 1 << 22  # single terms are examined in elements that together have at most this many
_CANCELLED = 3  # large terms may cancel, so that this many partial sums are close to zero
# Right elements exclude flushing under three conditions: their sums of magnitudes are at most _SIMILAR times those of
# the wrong ones, their error limits are below the smallest normal number divided by _FINE, and there are at least
# _COMPARED of them. A rectangle of wrong elements must have at least _LINE elements.
_SIMILAR, _FINE, _COMPARED, _LINE = 2.0, 8.0, 8, 4
_TIMES, _OTHERS = 3.0, 8  # single wrong elements are off by 3·`least`, and 8 times as many are right


def may_be_flushed(view: View, wrong: Array, least: float, x: Array, y: Array) -> bool:
    """Return whether the wrong elements' errors are small enough to be caused by flushing to zero.

    Inputs, products and partial sums below `least` are assumed to be flushed.
    """
    error = (
        np.abs(view.totals.error(view.values))[wrong]
        - np.broadcast_to(view.noise.limit(view.totals), wrong.shape)[wrong]
    )
    if not wrong.any() or not ((error <= 2 * view.totals.terms * least) & (view.totals.size > 0)[wrong]).all():
        return False
    if error.size * view.totals.terms > _TERMS:
        return True
    rows, columns = np.nonzero(wrong)
    a, b = np.abs(x[rows]), np.abs(y[:, columns].T)
    lost = ((a < least) | (b < least) | (a * b < least)) & (a * b > 0)
    # Each small term may be lost, and the partial sum after it. A few other partial sums may also be close to zero.
    most = (lost * (a * b + least)).sum(axis=1) + _CANCELLED * least
    return bool((error <= most).all())


def is_no_flushing(problem: ProductProblem, view: View, wrong: Array, least: float) -> bool:
    """Return whether right elements show that flushing numbers below `least` to zero is not the cause.

    The right elements that are compared have terms as small as those of the wrong elements. Flushing would change both,
    so it does not explain why the wrong elements form a rectangle, or why only they have errors of several times
    `least`.
    """
    error, room = np.abs(view.totals.error(view.values)), view.noise.limit(view.totals) + view.half
    similar = view.usable & ~wrong & (view.totals.size > 0) & (room < least / _FINE)
    similar &= view.totals.size <= _SIMILAR * float(np.median(view.totals.size[wrong]))
    x, y = (np.where(np.abs(each) < least, 0.0, each) for each in (problem.x, problem.y))
    from_inputs = np.abs(x @ y - view.values) <= room
    if similar.sum() < _COMPARED or share_of(from_inputs[wrong]) > 0.5:
        return False
    places = find_places(wrong)
    if places is not None and places.name == "region" and wrong.sum() >= _LINE:
        return bool(similar.sum() >= wrong.sum())
    return bool((error > _TIMES * least)[wrong].all() and similar.sum() >= _OTHERS * max(int(wrong.sum()), _LINE))
