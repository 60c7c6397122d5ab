"""Two tests for rounding to nearest: not all numbers are rounded in one direction; equal numbers get equal codes."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.auditing.rerounding.grids import CodeGrid, indices

# Rounding counts as directed, for instance up, if less than the share _FEW of the numbers moved the other way (down).
# Changes up to the share _SLACK of a number are ignored.
_SLACK, _FEW = 2.0**-7, 0.005
_UNEQUAL = 0.01  # equal numbers count as rounded unequally if at least this share of all numbers is concerned


def is_directed(q: Array, x: Array, grid: CodeGrid) -> bool:
    """Return whether all numbers were rounded in one direction: up, down, towards zero, or away from zero.

    `q` has the first numbers of a weight, and `x` has the first numbers of its original. Numbers beyond the outermost
    codes do not count: every rounding direction moves them to these codes.
    """
    q, x = q.reshape(-1), x.reshape(-1)
    code, scale, _ = _codes(q, grid)
    beyond = (x - q) * np.sign(scale)
    is_clipped = (code == code.max()) & (beyond > 0) | (code == code.min()) & (beyond < 0)
    up = np.where(is_clipped, 0.0, q - x)
    outwards = np.where(is_clipped, 0.0, np.abs(q) - np.abs(x))
    slack = np.abs(x) * _SLACK
    moves = (up > slack, up < -slack, outwards > slack, outwards < -slack)
    return min(float(each.mean()) for each in moves) < _FEW


def has_unequal_codes(q: Array, x: Array, grid: CodeGrid) -> bool:
    """Return whether equal numbers of the original, with equal scales, have different codes.

    Rounding to nearest gives equal numbers equal codes, even if all scales are wrong by a factor. Stochastic rounding
    and error feedback can give equal numbers different codes.
    """
    q, x = q.reshape(-1), x.reshape(-1)
    code, scale, offset = _codes(q, grid)
    with np.errstate(all="ignore"):
        place = np.where(scale != 0, (x - offset) / scale, 0.0)
    order = np.argsort(place, kind="stable")
    is_same, is_other = np.diff(place[order]) == 0, np.diff(code[order]) != 0
    return bool(np.count_nonzero(is_same & is_other) >= _UNEQUAL * q.size)


def _codes(q: Array, grid: CodeGrid) -> tuple[Array, Array, Array | float]:
    """Return, for the elements of q, the indices of their codes in the grid, their scales, and their offsets."""
    with grid.open() as opened, np.errstate(all="ignore"):
        scale, offset = opened.scales(0, q.size)
        return indices(grid.values, np.where(scale != 0, (q - offset) / scale, 0.0)), scale, offset
