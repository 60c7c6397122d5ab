"""Decide whether a model of the inputs explains a result better than the best of many wrong models would by chance."""

from __future__ import annotations

from math import log2

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.types import Array
from floatlab.reduce.explain.faults.patterns import BITS_EACH, BITS_OF_SUMS, evidence_bits
from floatlab.reduce.explain.problem import View

_ENOUGH = 8  # a wrong model hardly explains this many numbers of more than _HALF digits
_HALF = 11  # many models fit a few numbers of this precision (binary16) or less
# If a model is one of about a hundred and explains n < _ENOUGH numbers, the evidence must exceed _BITS + _MORE_BITS / n
# bits.
_BITS, _MORE_BITS = 9.0, 3.0
_MARGIN = 6.0  # if one of `tried` models is to be named, the evidence must exceed log2(tried) + _MARGIN bits
_HUNDRED = 100
_EXCHANGES = 4  # how many times a model's changes are exchanged among the elements at random


def is_telling(view: View, product: Array, tried: int = 0) -> bool:
    """Return whether a model explains more elements than the best of many models would explain by chance.

    A wrong model reduces the error of an element to 1/k of its size with a probability of about 1/k. `tried` is the
    number of models, or 0 if there are about a hundred. Equal elements count as one.
    """
    with np.errstate(all="ignore"):
        error, left = (np.abs(view.totals.error(view.values, each)) for each in (None, product))
        least = view.noise.sigma(view.totals) + view.half + np.abs(view.values) * view.noise.u
        bits = np.log2(error / np.maximum(left, least))[view.usable & (error > 0)]
        bits = bits[np.unique(view.values[view.usable & (error > 0)], return_index=True)[1]]
    if tried:
        are_enough = bool(bits.sum() > log2(tried) + _MARGIN)
    else:
        are_enough = bits.size >= _ENOUGH and view.format.precision > _HALF
        are_enough = are_enough or bool(bits.sum() > _BITS + _MORE_BITS / max(1, bits.size))
        are_enough = are_enough or gives_numbers(view, product)
    return are_enough or _bits_of_places(view, product) > log2(tried or _HUNDRED) + _MARGIN


def gives_numbers(view: View, product: Array) -> bool:
    """Return whether a model's rounded product equals the result where the rounded exact product does not.

    The elements where this happens must be too many, or too far from the exact product, for a coincidence. Elements
    where the model's rounded product differs from the result count against the model.
    """
    rounded = [np.asarray(quantize(each, view.format), np.float64) for each in (view.totals.product, product)]
    missed, left = (view.usable & (each != view.values) for each in rounded)
    return evidence_bits(view, missed & ~left, view.format) > BITS_OF_SUMS + BITS_EACH * int(left.sum())


def _bits_of_places(view: View, product: Array) -> float:
    """Return the evidence, in bits, for a model whose changes of the product explain every element.

    For comparison, the changes are exchanged among the elements at random. The exchanged changes are as large as those
    of the model, but are as unrelated to the result as those of a wrong model. If the exchanged changes leave the share
    p of the elements right, a wrong model leaves k independent elements right with a probability of pᵏ. The evidence is
    therefore −k·log2(p) bits. It is 0 if an element is wrong even with the model. In an m×n product, at most m + n
    elements count as independent, because the errors along a row or a column may be correlated.
    """
    size, usable = view.totals.size, view.usable & (view.totals.size > 0)
    if not usable.any() or view.fit(product).wrong.any():
        return 0.0
    changes = (product - view.totals.product)[usable] / size[usable]
    rng, right = np.random.default_rng(0), 0.0
    made = view.totals.product.copy()
    for _ in range(_EXCHANGES):
        made[usable] = view.totals.product[usable] + size[usable] * rng.permutation(changes)
        right += float((~view.fit(made).wrong[usable]).mean()) / _EXCHANGES
    count = min(sum(size.shape), len(np.unique(changes)))
    return -count * log2(max(right, 2.0**-8))
