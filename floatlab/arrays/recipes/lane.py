"""Applies scale rules of libraries, and rules that choose between scales, to arrays.

The rule's formulas are evaluated for all blocks at once, and then for all elements. The elements are rounded once to
their format. The module `arrays.block_job` is faster than this module, but supports only the exact rules of floatlab,
on blocks along one axis.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache

import numpy as np

from floatlab.arith.blocks import TIES_DOWN, TIES_TO_ZERO, read_tensor_scale, wider
from floatlab.arrays.codec import decode_array, round_array
from floatlab.arrays.lanes.parameters import SINGLE, container
from floatlab.arrays.recipes import formulas
from floatlab.arrays.types import Array
from floatlab.formats import parse_format
from floatlab.formats.blocks import Integers
from floatlab.formats.format import Format
from floatlab.formats.formulas import parse_formula
from floatlab.formats.recipes import Recipe
from floatlab.formats.scaling import BLOCK, ELEMENT, TENSOR
from floatlab.numbers import Context, Direction, encode

_NUDGE = 1 - 2.0**-40  # a factor that moves binary32 numbers slightly toward zero: off a tie, but never across one
_DISTANCE, _SUM, _SQUARE = parse_formula("q * scale - x"), parse_formula("a + b"), parse_formula("e * e")


class FormulaLane:
    """Quantizes a matrix whose rows are blocks, by a scale rule that rounds the result of each operation."""

    def __init__(self, recipe: Recipe, source: Format, context: Context) -> None:
        """Compute the constants of the formulas; `source` is the format of the values."""
        fmt, rule = recipe.format, recipe.rule
        self.fmt, self.rule, self.context, self.numbers = fmt, rule, context, fmt.magnitudes
        self.working = source if rule.working == "input" else parse_format(rule.working)
        constants: dict[str, Fraction | int] = {
            "largest": self.numbers.largest,
            "emax": self.numbers.emax,
            "p": self.numbers.precision,
            "top": fmt.scale.largest,
            "input_max": source.largest,
            "input_eps": Fraction(1, 1 << source.precision - 1),
        }
        self.constants = {name: np.asarray(_nearest(value), np.float32) for name, value in constants.items()}

    def __call__(
        self, blocks: Array, rows: Array | None, width: int, given: object
    ) -> tuple[Array, Array, Array | None, tuple[Array, ...]]:
        """Return codes of scales and of elements, the scale of the tensor (or of each row), and the groups' exponents.

        A group is a part of a block that has its own exponent, 0 or 1, as in HiF4. If each row of the original array
        has its own tensor scale, `rows` holds the row index of each block; otherwise, `rows` is None. In the original
        array, each block is a rectangle with `width` columns. `given` is the caller's tensor scale, or None.
        """
        amax = np.abs(blocks).max(axis=1, keepdims=True, initial=0)
        known: dict[str, Array] = {**self.constants, "amax": amax, "x": blocks, "tensor": np.ones((1, 1), np.float32)}
        if any("peak" in line.formula.names() for line in self.rule.steps()):
            known["peak"] = np.take_along_axis(blocks, np.abs(blocks).argmax(axis=1)[:, None], axis=1)
        tensor = self._tensor(known, rows, given)
        for size in self.fmt.groups:
            largest = np.abs(blocks).reshape(len(blocks), blocks.shape[1] // size, size).max(axis=2)
            known[f"amax{size}"] = np.repeat(largest, size, axis=1)
        choice = self.rule.choice
        factors = choice.factors if choice else ("1",)
        attempts = [self._attempt(known if self.fmt.groups else {**known}, factor) for factor in factors]
        scales, codes, error = attempts[0]
        if choice:
            error = self._measured(error, width)
            for other_scales, other_codes, errors in attempts[1:]:
                better = self._measured(errors, width) < error
                scales = np.where(better, other_scales, scales)
                codes = np.where(better, other_codes, codes)
        groups = tuple((known[f"micro{size}"][:, ::size] == 2).astype(np.uint8) for size in self.fmt.groups)
        if self.fmt.first_scale:
            stored = np.minimum(scales - self.fmt.first_scale, (1 << self.fmt.scale_bits) - 1)
            scales = stored.astype(np.min_scalar_type((1 << self.fmt.scale_bits) - 1))
        return scales[:, 0], codes, tensor, groups

    def _tensor(self, known: dict[str, Array], rows: Array | None, given: object) -> Array | None:
        """Evaluate the rule's formulas for the whole tensor.

        Return the stored scale of the tensor, or of each row if `rows` is given. Return None if the rule has no tensor
        scale.
        """
        kind, amax = self.fmt.tensor, known["amax"]
        tensor: Array | None = None
        if rows is None:
            known["tensor_amax"] = np.max(amax, initial=0, keepdims=True).astype(np.float32).reshape(1, 1)
        else:
            largest = np.zeros(int(rows.max(initial=-1)) + 1, np.float32)
            np.maximum.at(largest, rows, amax[:, 0])
            known["tensor_amax"] = largest[rows].reshape(-1, 1)
        if given is not None and kind is not None:
            tensor = known["tensor"] = np.array([[float(read_tensor_scale(given, kind))]], np.float32)
        for line in self.rule.steps():
            if line.level != TENSOR or (line.name == "tensor" and (kind is None or given is not None)):
                continue
            known[line.name] = formulas.evaluate(line.formula, known, self.working)
            if line.name == "tensor":
                assert kind is not None
                codes = stored(np.asarray(known["tensor"], np.float64), kind, "RNE")
                tensor = known["tensor"] = decode_array(codes, kind, np.float64, threads=1).astype(np.float32)
        if tensor is None or rows is None:
            return tensor
        _, firsts = np.unique(rows, return_index=True)
        return np.broadcast_to(tensor, (len(rows), 1))[firsts, 0]

    def _attempt(self, known: dict[str, Array], factor: str) -> tuple[Array, Array, Array]:
        """Quantize the blocks; the variable `grow` of the rule's formulas has the value `factor` (see `ScaleChoice`).

        Return the codes of the scales and of the elements, and the errors of the elements. If the rule does not choose
        between scales, the third array has no meaning.
        """
        known["grow"] = np.asarray(factor, np.float32)
        scales = np.zeros((len(known["x"]), 1), container(self.fmt.scale))
        for line in self.rule.steps():
            if line.level == BLOCK:
                known[line.name] = formulas.evaluate(line.formula, known, self.working)
                if line.name == "scale":
                    wanted = np.broadcast_to(np.asarray(known["scale"], np.float64), scales.shape)
                    scales = stored(np.ascontiguousarray(wanted), self.fmt.scale, self.rule.stored)
                    known["scale"] = decode_array(scales, self.fmt.scale, np.float64, threads=1).astype(np.float32)
        for line in self.rule.steps():
            if line.level == ELEMENT:
                known[line.name] = formulas.evaluate(line.formula, known, self.working)
        codes, numbers = self._codes(known)
        if self.rule.choice is None:
            return scales, codes, numbers
        known["q"] = numbers
        return scales, codes, formulas.evaluate(parse_formula(self.rule.choice.error), known, self.working)

    def _codes(self, known: dict[str, Array]) -> tuple[Array, Array]:
        """Return the codes of the elements, and their values; if codes wrap around, the values before wrapping.

        Only rules that choose between scales need the values. For other rules, the original elements are returned
        instead of the values.
        """
        if self.rule.rounding == "closest":
            return self._closest(known), known["x"]
        scaled = np.ascontiguousarray(np.broadcast_to(known["scaled"], known["x"].shape))
        lost = np.isnan(scaled)
        if lost.any():
            scaled = np.where(lost, 0, scaled)
        if isinstance(self.fmt.element, Integers):
            return self._integers(self.fmt.element, scaled, lost), known["x"]
        codes = self._rounded(scaled, self.numbers)
        if self.rule.wraps:
            wide = wider(self.numbers)
            beyond = self._rounded(scaled, wide)
            sign = np.where(np.signbit(scaled), 1 << self.numbers.width - 1, 0)
            overflowed = beyond & ((1 << wide.width - 1) - 1) > self.numbers.largest_magnitude
            codes = np.where(overflowed, (beyond | sign) & ((1 << self.numbers.width) - 1), codes)
        nan = self.numbers.nan_code if self.numbers.has_nan else self.rule.nan
        if lost.any():
            codes = np.where(lost, nan, codes)
        codes = codes.astype(container(self.numbers), copy=False)
        if self.rule.choice is None:
            return codes, known["x"]
        values = decode_array(codes, self.numbers, np.float64, threads=1)
        if self.rule.wraps:
            values = np.where(overflowed, decode_array(beyond, wide, np.float64, threads=1), values)
        return codes, values.astype(np.float32)

    def _integers(self, kind: Integers, scaled: Array, lost: Array) -> Array:
        """Return the codes of scaled values rounded to integers; the lowest integer, such as −128, is allowed."""
        wide, half = wider(self.numbers), 1 << kind.width - 1
        unit = 2.0**kind.quantum
        n = decode_array(self._rounded(scaled, wide), wide, np.float64, threads=1) / unit
        codes = np.clip(n, kind.lowest, half - 1).astype(np.int64) + kind.zero
        return np.where(lost, self.rule.nan, codes & (2 * half - 1)).astype(np.uint8)

    def _rounded(self, scaled: Array, numbers: Format) -> Array:
        """Round scaled values into the format `numbers`, and return the codes.

        If the context's direction is RNE, values are rounded in the rule's direction; otherwise in the context's
        direction.
        """
        context, direction = self.context, self.rule.rounding
        if direction != "RNE" and context.rounding is Direction.RNE:
            if direction == TIES_TO_ZERO:
                scaled = scaled.astype(np.float64) * _NUDGE
            elif direction == TIES_DOWN:
                scaled = scaled.astype(np.float64) * np.where(scaled < 0, 2 - _NUDGE, _NUDGE)
            else:
                context = context.replace(rounding=Direction(direction))
        codes: Array = round_array(scaled, numbers, context=context, threads=1, as_codes=True)
        return codes

    def _closest(self, known: dict[str, Array]) -> Array:
        """Return, for each element, the first code whose decoded value is closest to the element.

        The errors are computed in the working precision.
        """
        codes = np.zeros(known["x"].shape, container(self.numbers))
        least = None
        for code in range(1 << self.numbers.width):
            known["q"] = decode_array(np.asarray(code), self.numbers, np.float64).astype(np.float32)
            error = np.abs(formulas.evaluate(_DISTANCE, known, self.working))
            if least is None:
                least = error
                continue
            better = error < least
            codes[better] = code
            least = np.where(better, error, least)
        return codes

    def _measured(self, errors: Array, width: int) -> Array:
        """Return the measure of each block's errors (`arith.blocks.formulas.measured`), in the shape (blocks, 1)."""
        choice = self.rule.choice
        assert choice is not None
        square = choice.measure == "square"
        sizes = formulas.evaluate(_SQUARE, {"e": errors}, self.working) if square else np.abs(errors)
        if choice.measure == "largest":
            return np.max(sizes, axis=1, keepdims=True)

        def add(a: Array, b: Array) -> Array:
            return formulas.evaluate(_SUM, {"a": a, "b": b}, self.working)

        rows = sizes.reshape(len(sizes), sizes.shape[1] // width, width)
        total = rows[:, :, 0]
        for column in range(1, width):
            total = add(total, rows[:, :, column])
        return summed_in_halves(total, add)[:, None]


@lru_cache(maxsize=256)
def _nearest(value: Fraction | int) -> float:
    return float(encode(Fraction(value), SINGLE, Context(overflow="saturate")))


def stored(values: Array, kind: Format, direction: str) -> Array:
    """Round scales into the format `kind`, and return the codes.

    In formats without infinities, scales that are too large saturate.

    >>> stored(np.array([3.0, np.inf, np.nan]), parse_format("e8m0"), "RNE").tolist()
    [129, 254, 255]
    """
    infinite = Context(direction) if kind.infinities else Context(direction, overflow="saturate")
    lost = np.isnan(values)
    codes: Array = round_array(np.where(lost, 1, values), kind, context=infinite, threads=1, as_codes=True)
    return np.where(lost, codes.dtype.type(kind.nan_code), codes)


def summed_in_halves(rows: Array, add: Callable[[Array, Array], Array]) -> Array:
    """Return sums along the last axis: add the second half to the first half, and repeat this until one number remains.

    >>> summed_in_halves(np.array([[1, 2, 3]]), np.add).tolist()
    [6]
    """
    while (count := rows.shape[-1]) > 1:
        half = (count + 1) // 2
        rows = np.concatenate(
            [add(rows[..., : count - half], rows[..., half:]), rows[..., count - half : half]], axis=-1
        )
    return rows[..., 0]


@lru_cache(maxsize=256)
def lane_for(recipe: Recipe, source: Format, context: Context) -> FormulaLane:
    """Return the `FormulaLane` of a recipe; it is cached, because it does not depend on the values."""
    return FormulaLane(recipe, source, context)
