"""Error limits for models that make the terms of a product far smaller, for example because they clip large inputs."""

from __future__ import annotations

from copy import copy

import numpy as np

from floatlab.arrays.types import Array
from floatlab.reduce.explain.problem import ProductProblem, View
from floatlab.reduce.explain.stages import Model

# Terms are far smaller if Σ|x·y| is below this share of its value for the unchanged inputs. Rounding and quantisation
# change numbers by less, unless they become 0.
_SMALLER = 2.0**-5


def with_changed_terms(
    view: View, problem: ProductProblem, model: Model, product: Array | None, sampled: bool = False
) -> View:
    """Return `view`, or a copy that has limits for the product of a model that makes terms far smaller.

    The usual limits follow from the terms of the unchanged inputs. If a model makes the terms far smaller, such limits
    may exceed its product, and any small number would fit. In the elements with such terms, the limits of the returned
    view follow from the changed terms. If `sampled` is true, the view has only the sampled elements.
    """
    if product is None or model.changes is None or not _may_be_smaller(view, product):
        return view
    rows, columns = (problem.rows, problem.columns) if sampled else map(np.arange, problem.shape)
    x, y = problem.factors
    with np.errstate(all="ignore"):
        left, right = model.changes[0](x[rows], x, 1), model.changes[1](y[:, columns], y, 0)
        size, squares = np.abs(left) @ np.abs(right), (left * left) @ (right * right)
        if (bias := problem.given_bias) is not None:
            given = bias[rows][:, columns]
            size, squares = size + np.abs(given), squares + given * given
        smaller = size < _SMALLER * view.totals.size
    changed = view.totals.replace(
        size=np.where(smaller, size, view.totals.size), squares=np.where(smaller, squares, view.totals.squares),
        simulated=None if view.totals.simulated is None else np.where(smaller, 0.0, view.totals.simulated),
    )  # fmt: skip
    view = copy(view)
    view.totals = view.totals.replace(changed=changed)
    return view


def _may_be_smaller(view: View, product: Array) -> bool:
    """Return whether a model makes the numbers of a row or of a column far smaller, judged by their mean magnitude.

    If it makes a number of an input smaller, it changes a whole row or column.
    """
    with np.errstate(all="ignore"):
        made, usual = (np.where(np.isfinite(product), np.abs(each), 0.0) for each in (product, view.totals.product))
        return any((made.mean(axis) < 2 * _SMALLER * usual.mean(axis)).any() for axis in (0, 1))
