"""Describe how the order of a matrix's rows differs from that of its original: permuted, or a few rows exchanged."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.auditing.fidelity import MOST_LEFT

SAMPLE = 1 << 22  # at most this many numbers of a weight are compared
ALMOST_ALL = 0.95
MOST_ROWS = 1 << 13  # at most this many rows are compared with each other
SHORTEST = 24  # rows shorter than this may be similar by chance
_FEW_LINES = 0.1  # rows count as exchanged only if at most this share of all rows has large errors
_ALIKE = 0.8


def unit_rows(rows: Array) -> Array:
    """Return rows as unit vectors of float32; rows of zeros stay zeros."""
    top = np.abs(rows).max(axis=1, keepdims=True)
    found = rows / np.where(top > 0, top, 1)
    norms = np.linalg.norm(found, axis=1, keepdims=True)
    unit: Array = (found / np.where(norms > 0, norms, 1)).astype(np.float32)
    return unit


def order_of(q: Array, x: Array, shape: tuple[int, ...], noun: str) -> str:
    """If q has the rows of x in another order, describe this order. Otherwise return ""."""
    count, length = q.shape
    if not 2 <= count <= MOST_ROWS or length < SHORTEST:
        return ""
    own, others = unit_rows(q[:, : 1 << 10]), unit_rows(x[:, : 1 << 10])
    step = max(1, SAMPLE // count)
    found = []
    for first in range(0, count, step):
        similar = own[first : first + step] @ others.T
        found.append((similar.argmax(axis=1), similar.max(axis=1)))
    best, near = (np.concatenate(column) for column in zip(*found, strict=True))
    if (near >= _ALIKE).mean() < ALMOST_ALL or len(set(best.tolist())) < 0.9 * count:
        return ""
    if (best == np.arange(count)).mean() >= ALMOST_ALL:
        return ""
    return f"its {noun} are the original's in another order{_named_order(best, shape)}"


def _named_order(best: Array, shape: tuple[int, ...]) -> str:
    count = len(best)
    at = np.arange(count)
    height = shape[-2] if len(shape) > 2 and shape[-2] and count % shape[-2] == 0 else count
    within, base = at % height, at // height * height
    half = height // 2
    orders = (
        ("the halves are exchanged", base + (within + half) % height),
        ("reversed", base + height - 1 - within),
        ("rows of both halves alternate", base + within % 2 * half + within // 2),
        ("every other row, then the rest", base + within % half * 2 + within // half if half else at),
    )
    for words, order in orders:
        if height % 2 == 0 and (best == order).mean() >= ALMOST_ALL:
            return f": {words}"
    return ""


def exchanged(q: Array, x: Array, noun: str) -> str:
    """Name the rows of q that are exchanged with each other. Return "" if there are none, or more than a few."""
    error, signal = np.square(q - x).sum(axis=1), np.square(x).sum(axis=1)
    bad = np.flatnonzero(error > MOST_LEFT**2 * signal)
    if not 2 <= len(bad) <= _FEW_LINES * len(q) or q.shape[1] < SHORTEST or len(bad) > SAMPLE // q.shape[1]:
        return ""
    similar = unit_rows(q[bad]) @ unit_rows(x[bad]).T
    best = similar.argmax(axis=1)
    moved = best != np.arange(len(bad))
    if (similar.max(axis=1)[moved] < _ALIKE).any() or len(set(best[moved].tolist())) < max(moved.sum(), 2):
        return ""
    which = bad[moved]
    if len(which) == 2:
        return f"its {noun} {which[0]:,} and {which[1]:,} are exchanged; the rest fits"
    return f"{len(which):,} of its {noun}, first {noun[:-1]} {which[0]:,}, are in another order; the rest fits"
