"""Rounds and decodes blocks of formats that store a minimum beside each scale (q4_1, q4_k).

The values have the same bits as those of `arith.blocks`. If the rule comes from a library, `arith.blocks` itself
computes the blocks with NaNs or infinities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from floatlab.arith.blocks import element_context
from floatlab.arith.blocks import quantize_blocks as derive_blocks
from floatlab.arrays.codec import decode_array, round_array
from floatlab.arrays.lanes import pairs
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE
from floatlab.arrays.quotients import divide_to_odd
from floatlab.arrays.recipes import formulas
from floatlab.arrays.recipes.lane import FormulaLane, stored
from floatlab.arrays.types import Array
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.formulas import parse_formula
from floatlab.formats.recipes import Recipe
from floatlab.formats.scaling import BLOCK, ELEMENT, TENSOR
from floatlab.numbers import Context

_STEPS, _TOP = 20, np.float32(15)


class ShiftedBlocks(NamedTuple):
    """Decoded blocks, one per row, with their scales, factors and minima: value = element × factor + minimum.

    A factor is the stored scale of the block, times the scale of its superblock if there is one.
    """

    values: Array
    scales: Array
    factors: Array
    minima: Array


def round_blocks(blocks: Array, recipe: Recipe) -> ShiftedBlocks:
    """Round a matrix whose rows are consecutive blocks of an array, in a format with minima.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> found = round_blocks(np.float32([[1, 2, 3, 16]]), parse_recipe("q4_1/4"))
    >>> found.values.tolist(), found.scales.tolist(), found.minima.tolist()
    ([[1.0, 2.0, 3.0, 16.0]], [[1.0]], [[1.0]])
    """
    if not blocks.size:
        empty = np.ones((len(blocks), 1))
        return ShiftedBlocks(blocks.astype(np.float64), empty, empty, empty)
    with np.errstate(all="ignore"):
        return _exactly(blocks, recipe) if recipe.rule.is_exact else _Lane(recipe)(blocks.astype(np.float32))


def _exactly(blocks: Array, recipe: Recipe) -> ShiftedBlocks:
    """Round blocks by the exact rule, which divides a block's range into equal steps, and rounds each result once."""
    fmt, numbers = recipe.format, recipe.format.magnitudes
    saturating, elements = Context(overflow="saturate"), element_context(Context(), fmt)
    finite = np.isfinite(blocks).all(axis=1, keepdims=True)
    x = np.where(finite, blocks, 0).astype(np.float64)
    low, high = x.min(axis=1, keepdims=True), x.max(axis=1, keepdims=True)
    parts = np.full(low.shape, float(numbers.largest))
    wanted = divide_to_odd(_difference(high, low), parts)
    codes = round_array(wanted, fmt.scale, context=saturating, threads=1, as_codes=True)
    scales = decode_array(np.maximum(codes, fmt.scale.smallest_magnitude), fmt.scale, np.float64, threads=1)
    minima = round_array(low, fmt.scale, context=saturating, threads=1, as_codes=True)
    minima = decode_array(minima, fmt.scale, np.float64, threads=1)
    scaled = divide_to_odd(_difference(x, minima), np.broadcast_to(scales, x.shape))
    q = decode_array(round_array(scaled, numbers, context=elements, threads=1, as_codes=True), numbers, np.float64)
    scales, minima = (np.where(finite, each, np.nan) for each in (scales, minima))
    return ShiftedBlocks(q * scales + minima, scales, scales, minima)


def _difference(a: Array, b: Array) -> Array:
    """Return a − b rounded to odd, so that a second rounding gives the result of rounding a − b once."""
    a, b = np.broadcast_arrays(a, -b)
    found: Array = pairs.to_odd(pairs.two_sum(np.ascontiguousarray(a), np.ascontiguousarray(b))).view(np.float64)
    return np.where(a == -b, 0.0, found)


class _Lane(FormulaLane):
    """Rounds blocks by the scale rules of libraries; these rules round the result of each operation."""

    def __init__(self, recipe: Recipe) -> None:
        super().__init__(recipe, SINGLE, element_context(Context(), recipe.format))
        self.recipe = recipe
        self.together = (recipe.format.superblock or 0) // (recipe.format.block or 1) or 1  # blocks per superblock

    def __call__(self, blocks: Array) -> ShiftedBlocks:  # type: ignore[override]  # rows are whole blocks here
        """Round blocks. `round_one_by_one` rounds those superblocks (or blocks) that have a NaN or an infinity."""
        found = self._rounded_blocks(blocks)
        if not np.isfinite(blocks).all():
            group = np.arange(len(blocks)) // self.together
            for bad in np.unique(group[~np.isfinite(blocks).all(axis=1)]):
                rows = group == bad
                values, *others = round_one_by_one(blocks[rows].reshape(-1), self.recipe)
                for whole, part in zip(found, (values.reshape(-1, blocks.shape[1]), *others), strict=True):
                    whole[rows] = part
        return found

    def _rounded_blocks(self, blocks: Array) -> ShiftedBlocks:
        fmt = self.fmt
        known: dict[str, Array] = {**self.constants, "x": blocks, "tensor": np.ones((1, 1), np.float32)}
        known |= {"low": blocks.min(axis=1, keepdims=True), "high": blocks.max(axis=1, keepdims=True)}
        if self.rule.search:
            known["step"], known["depth"], known["found"] = qkx2(blocks)
            for name in ("step", "depth"):
                known[f"tensor_{name}"] = np.repeat(_largest(known[name], self.together), self.together, axis=0)
                known[f"tensor_{name}"] = known[f"tensor_{name}"][: len(blocks)]
        for level in (TENSOR, BLOCK, ELEMENT):
            for line in self.rule.steps():
                if line.level == level:
                    value = formulas.evaluate(line.formula, known, self.working)
                    if line.name in ("tensor", "tensor_minimum"):
                        assert fmt.tensor is not None
                        value = _kept(value, fmt, of_tensor=True)
                    elif line.name in ("scale", "minimum"):
                        value = _kept(value, fmt)
                    known[line.name] = value
        codes = self._codes(known)[0]
        q = decode_array(codes, self.numbers, np.float64, threads=1)
        decoding, ones, zeros = parse_formula(self.rule.value), np.ones((1, 1)), np.zeros((1, 1))
        shape = len(blocks), 1
        factors, shifted = (
            np.broadcast_to(formulas.evaluate(decoding, known | more, DOUBLE), shape).copy()
            for more in ({"q": ones, "minimum": zeros}, {"q": zeros})
        )
        values = np.array(formulas.evaluate(decoding, known | {"q": q}, DOUBLE))
        scales = np.array(np.broadcast_to(known["scale"], shape), np.float64)
        return ShiftedBlocks(values, scales, factors, shifted)


def round_one_by_one(values: Array, recipe: Recipe) -> ShiftedBlocks:
    """Round a row of values as `arith.blocks` does; the last block may be shorter. This function is slow.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> found = round_one_by_one(np.float32([1, 2, 3, 16, 5]), parse_recipe("q4_1/4"))
    >>> found.values.tolist(), found.minima.tolist()
    ([1.0, 2.0, 3.0, 16.0, 5.0], [[1.0], [5.0]])
    """
    blocks = derive_blocks(values.tolist(), recipe)
    made, factors, minima = [], [], []
    for block in blocks:
        decoded = [None if each.decoded is None else float(each.decoded.as_fraction()) for each in block.elements]
        factor = None if block.multiplier is None else float(block.multiplier.as_fraction())
        first, code = decoded[0], block.elements[0].code
        is_known = first is not None and factor is not None
        factors.append(factor if factor is not None else np.nan)
        minima.append(first - code * factor if is_known else np.nan)  # type: ignore[operator]  # codes are integers
        made += [np.nan if each is None else each for each in decoded]
    scales = [float(block.scale) for block in blocks]
    return ShiftedBlocks(np.array(made), *(np.array(each)[:, None] for each in (scales, factors, minima)))


def _kept(values: Array, fmt: BlockFormat, of_tensor: bool = False) -> Array:
    """Round values into the format of scales (or of the tensor's scale); return numbers, not codes."""
    kind = fmt.tensor if of_tensor and fmt.tensor is not None else fmt.scale
    lost = np.isnan(values)  # integers have no NaN
    codes = (
        stored(np.ascontiguousarray(np.where(lost, 0, values), np.float64), kind, "RNE")
        if kind.has_nan
        else (round_array(np.where(lost, 0, values), kind, overflow="saturate", threads=1, as_codes=True))
    )
    return np.where(lost, np.float32(np.nan), decode_array(codes, kind, np.float64, threads=1).astype(np.float32))


def _largest(values: Array, count: int) -> Array:
    """Return, for each column, the largest number in every group of `count` consecutive rows."""
    return np.maximum.reduceat(values, np.arange(0, len(values), count), axis=0)


def qkx2(x: Array) -> tuple[Array, Array, Array]:
    """Search for the scale and the minimum of each block of q4_k, as `arith.blocks.searches` does.

    Each row of `x` is a block. Return the scales, the negated minima, and the integers that stand for the elements.

    >>> step, depth, q = qkx2(np.arange(-3, 13, dtype=np.float32)[None])
    >>> step.tolist(), depth.tolist(), q.tolist()[0][:4]
    ([[1.0]], [[3.0]], [0.0, 1.0, 2.0, 3.0])
    """
    spread = np.sqrt(_sum(x * x) / np.float32(x.shape[1]))
    weights = spread + np.abs(x)
    high, low = x.max(axis=1, keepdims=True), np.minimum(x.min(axis=1, keepdims=True), np.float32(0))
    flat = high == low
    inverse, best = _elements(x, _TOP, low, high)
    scale = np.float32(1) / inverse
    least = _error(x, weights, best, scale, low)
    for step in range(_STEPS + 1):
        tried = np.float32(0.1) * np.float32(step) - np.float32(1) + _TOP
        q = _elements(x, tried, low, high)[1]
        possible, (other_scale, other_low) = _fit(x, weights, q)
        error = _error(x, weights, q, other_scale, other_low)
        better = possible & (error < least)
        best, least = np.where(better, q, best), np.where(better, error, least)
        scale, low = np.where(better, other_scale, scale), np.where(better, other_low, low)
    return np.where(flat, np.float32(0), scale), -low, np.where(flat, np.float32(0), best)


def _sum(terms: Array) -> Array:
    """Return the sum of each row of `terms`; the terms of a row are added one after the other."""
    total = terms[:, :1]
    for column in range(1, terms.shape[1]):
        total = total + terms[:, column : column + 1]
    return total


def _elements(x: Array, count: np.float32, low: Array, high: Array) -> tuple[Array, Array]:
    """Quantize `x` in steps of (`high` − `low`) / `count`, starting at `low`.

    Return 1/step for each block, and the distance of each value from `low` in steps, rounded to an integer.
    """
    inverse = count / (high - low)
    q = np.rint(inverse * (x - low))
    return inverse, np.where(np.isfinite(q), np.clip(q, 0, _TOP), np.float32(0))


def _fit(x: Array, weights: Array, q: Array) -> tuple[Array, tuple[Array, Array]]:
    """Fit the scale and the minimum of each block, so that scale · `q` + minimum is close to `x`.

    The fit minimises the weighted sum of squares; the minimum must not be positive. Return a mask of the blocks that
    have a fit, and the pair (scales, minima).
    """
    w, wx, wq = _sum(weights), _sum(weights * x), weights * q
    of_q, of_qq, of_qx = _sum(wq), _sum(wq * q), _sum(wq * x)
    divisor = w * of_qq - of_q * of_q
    scale = (w * of_qx - wx * of_q) / divisor
    low = (of_qq * wx - of_q * of_qx) / divisor
    above = low > 0
    return divisor > 0, (np.where(above, of_qx / of_qq, scale), np.where(above, np.float32(0), low))


def _error(x: Array, weights: Array, q: Array, scale: Array, low: Array) -> Array:
    off = scale * q + low - x
    return _sum(weights * (off * off))
