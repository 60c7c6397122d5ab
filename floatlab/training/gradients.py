"""The gradients or updates of a run: a constant, a sequence, or a function of the weights.

Gradients are stored exactly. As in a backward pass on the scaled loss, the exact product of a gradient and the loss
scale is rounded once, to the gradients' format. There is one exception: if the numbers are stored in `Gradients.exact`,
and the gradients' format is nearly as wide as binary64, the product is first rounded to binary64.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction

import numpy as np

from floatlab.arrays.conversion import decode, quantize
from floatlab.arrays.lanes.parameters import DOUBLE, is_enough
from floatlab.arrays.recurrences import advance_draws
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction, encode
from floatlab.training.validation import exactly

Weights = float | Array | None  # the argument of a gradient function; None if there is no function
_ODD = Context(Direction.RTO)


def numbers_of(value: object, name: str) -> list[Fraction] | Array:
    """Return numbers as Fractions if they are given exactly, otherwise as an array of float64.

    A Python scalar, a text or a Datum gives a list with one Fraction. A sequence that contains text, Fractions or
    Datums gives a list of Fractions. Anything else gives an array of float64. Raises UnsupportedError for NaN and
    infinities in a list (an array may have them), and for an array that is not numeric. Raises LiteralError for text
    that is not a number.
    """
    if isinstance(value, str | int | float | Fraction | Datum) or not (
        hasattr(value, "__len__") or hasattr(value, "__array__")
    ):
        return [exactly(value, name)]
    if (
        not hasattr(value, "dtype")
        and isinstance(value, Iterable)
        and any(isinstance(each, str | Fraction | Datum) for each in value)
    ):
        return [exactly(each, f"{name}[{i}]") for i, each in enumerate(value)]
    source = source_of(value, name)
    return np.asarray(decode(source.codes, source.format, np.float64))


def starting_numbers(start: object) -> tuple[list[Fraction] | Array, bool]:
    """Return the starting weights as a row of numbers, and whether they were given as a scalar.

    Raises UnsupportedError for numbers that are not finite, and for arrays that are empty or have two or more axes.
    """
    numbers = numbers_of(start, "start")
    if isinstance(numbers, list):
        return numbers, isinstance(start, str) or not hasattr(start, "__len__")
    if numbers.ndim > 1 or not numbers.size:
        raise UnsupportedError(f"start must be a number or a row of numbers, not an array of shape {numbers.shape}")
    row = numbers.reshape(-1)
    if not np.isfinite(row).all():
        i = int(np.argmin(np.isfinite(row)))
        raise UnsupportedError(f"start[{i}] is {row[i]}: starting weights must be finite")
    return row, numbers.ndim == 0


class Gradients:
    """Gradients for every step and `count` weights.

    If `is_scalar`, the weight is a scalar, and a one-dimensional array gives its gradient for each step. Otherwise
    there is a row of weights, and a one-dimensional array gives the gradient of each weight, the same in all steps.
    A two-dimensional array has one row for each step.

    >>> given = Gradients("0.1", 1, True)
    >>> given.rounded(0, 2, 1.0, DOUBLE, Context()).tolist()
    [[0.1], [0.1]]
    """

    def __init__(self, given: object, count: int, is_scalar: bool, name: str = "gradient") -> None:
        """Store the gradients; raises UnsupportedError for shapes that do not fit and constants that are not finite."""
        self.name, self.count = name, count
        self.function = given if callable(given) else None
        self.exact: list[Fraction] = []  # a number for each weight, or for each step of a scalar weight
        self.table: Array | None = None
        self.raw: Array | None = None  # the last result of the function
        self.length: int | None = None  # number of steps that have gradients; None: unlimited
        self._scaled: tuple[tuple[float, Format], Array] | None = None
        if self.function is None:
            self._take(given, is_scalar)

    def _take(self, given: object, is_scalar: bool) -> None:
        numbers = numbers_of(given, self.name)
        is_exact = isinstance(numbers, list)
        shape: tuple[int, ...] = numbers.shape if not isinstance(numbers, list) else (len(numbers),)
        if is_exact and (isinstance(given, str) or not hasattr(given, "__len__")):
            shape = ()
        if shape and is_scalar and isinstance(numbers, list):
            self.exact, self.length = numbers, len(numbers)
        elif not shape or (len(shape) == 1 and not is_scalar):
            values = numbers if isinstance(numbers, list) else numbers.reshape(-1).tolist()
            for value in values if not is_exact else ():
                if not math.isfinite(value):
                    raise UnsupportedError(f"{self.name} must be a finite number, not {value}")
            if shape and len(values) != self.count and not (is_exact and len(values) == 1):
                raise UnsupportedError(f"{self.name} has {len(values)} numbers for {self.count} weights")
            self.exact = [Fraction(value) for value in values]
            self.exact *= self.count if len(values) == 1 else 1
        else:
            assert not isinstance(numbers, list)
            table = numbers[:, None] if len(shape) == 1 else numbers
            if table.ndim != 2 or table.shape[1] not in (1, self.count) or not len(table):
                raise UnsupportedError(
                    f"{self.name} has shape {shape}, but must be a number or have shape (steps, {self.count})"
                )
            self.table, self.length = np.broadcast_to(table, (len(table), self.count)), len(table)

    @property
    def is_constant(self) -> bool:
        """Whether every step has the same gradients."""
        return self.function is None and self.length is None

    def check_last(self, steps: int) -> None:
        """Raise UnsupportedError if the gradients cover fewer than `steps` steps."""
        if self.length is not None and steps > self.length:
            raise UnsupportedError(f"{self.name} has numbers for {self.length:,} steps, not for {steps:,}")

    def at(self, step: int, element: int) -> Fraction | None:
        """Return the exact gradient of one weight in a step, or None if it is NaN or infinite.

        If the gradients are a function, the result of the function's last call is used. Before the first call, return
        None.
        """
        if self.exact:
            return self.exact[element if self.is_constant else step]
        row = self.raw if self.table is None else self.table[step]
        return None if row is None or not np.isfinite(row[element]) else Fraction(float(row[element]))

    def last_given(self, steps: int) -> Array:
        """Return, for each weight, the last step (from 1 to `steps`) with a nonzero gradient; 0 if there is none.

        Raises UnsupportedError if the gradients are a function.

        >>> Gradients([0.5, 0.0, 0.25, 0.0], 1, True).last_given(4).tolist()
        [3]
        """
        if self.function is not None:
            raise UnsupportedError("gradients that a function computes from the weights are not known in advance")
        if self.is_constant:
            return np.array([steps if each else 0 for each in self.exact])
        table = np.array([[each != 0] for each in self.exact]) if self.table is None else self.table[:steps] != 0
        # The row of ones is a sentinel: argmax finds it for a weight whose gradients are all zero.
        backward = np.vstack([table[:steps][::-1], np.ones((1, table.shape[1]), bool)])
        return len(backward) - 1 - np.argmax(backward, axis=0)

    def totals(self, at: Sequence[int], element: int) -> tuple[list[int], Fraction]:
        """For each k in `at` (ascending), return the exact sum of one weight's gradients in the first k steps.

        The sums are returned as integer multiples of a unit, together with this unit. Raises UnsupportedError if the
        gradients are a function, since the function's values depend on the run.

        >>> Gradients(["0.1", "0.2", "-0.3"], 1, True).totals([0, 2, 3], 0)
        ([0, 3, 0], Fraction(1, 10))
        """
        if self.function is not None:
            raise UnsupportedError(
                "gradients that a function computes from the weights cannot be summed before the run"
            )
        if self.is_constant:
            each = self.exact[element]
            return [k * each.numerator for k in at], Fraction(1, each.denominator)
        table = self.table
        numbers = self.exact if table is None else list(map(Fraction, table[: max(at, default=0), element].tolist()))
        bottom = math.lcm(*{each.denominator for each in numbers})
        sums = [0, *itertools.accumulate(each.numerator * (bottom // each.denominator) for each in numbers)]
        return [sums[k] for k in at], Fraction(1, bottom)

    def rounded(
        self, first: int, steps: int, scale: float, format: Format, context: Context, weights: Weights = None
    ) -> Array:
        """Return the gradients of `steps` steps, times the loss scale and rounded, as a float64 array (steps, count).

        `first` is the number of earlier steps. If the gradients are a function, only the gradients of one step are
        returned.
        """
        context = advance_draws(context, first * self.count)
        if self.function is not None:
            return self._called(first, scale, format, context, weights)
        if self.table is not None:
            return self._rounded(self.table[first : first + steps], scale, format, context)
        wide = self._wide(scale, format)
        rows = wide[None] if self.is_constant else wide[first : first + steps, None]
        if self.is_constant and not context.rounding.is_stochastic:
            return np.broadcast_to(self._rounded(rows, 1.0, format, context), (steps, self.count))
        return self._rounded(np.broadcast_to(rows, (steps, self.count)), 1.0, format, context)

    def _rounded(self, numbers: Array, scale: float, format: Format, context: Context) -> Array:
        found: Array
        if scale == 1:
            found = quantize(np.ascontiguousarray(numbers), format, context=context)
        else:
            from floatlab.arrays.operations import multiply

            found = multiply(numbers, np.float64(scale), format, context=context)
        if not format.has_nan and not np.isfinite(numbers).all():
            return np.where(np.isfinite(numbers), found, numbers)  # the format cannot store NaN and ∞: keep them
        return found

    def _wide(self, scale: float, format: Format) -> Array:
        """Return the exact numbers times the scale, rounded to binary64.

        These products are rounded to odd. Rounding them again to `format` then gives the same numbers as a single
        rounding of the exact products. Stochastic rounding may give other numbers if `format` is not much narrower than
        binary64. If binary64 is not wide enough for rounding to odd, the products are rounded to nearest.
        """
        key = (scale, format)
        if self._scaled is None or self._scaled[0] != key:
            context = _ODD if is_enough(DOUBLE, format) else Context()
            by = Fraction(scale)
            made = {each: float(encode(each * by, DOUBLE, context)) for each in set(self.exact)}
            self._scaled = key, np.array([made[each] for each in self.exact])
        return self._scaled[1]

    def _called(self, step: int, scale: float, format: Format, context: Context, weights: Weights) -> Array:
        assert self.function is not None
        try:
            found = np.asarray(self.function(weights, step), np.float64)
            self.raw = np.broadcast_to(found.reshape(-1), (self.count,))
        except (TypeError, ValueError) as trouble:
            plural = "number" if self.count == 1 else "numbers"
            raise UnsupportedError(
                "the gradient function takes the weights and the step number, and returns "
                f"{self.count:,} {plural}: {str(trouble).splitlines()[0]}"
            ) from None
        return self._rounded(self.raw[None], scale, format, context)
