"""The gradients or updates of a run: a constant, a sequence, or a function of the weights.

They are kept exactly, and rounded once to their format after multiplication by the loss scale, as a backward pass on
the scaled loss would give them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from floatlab.arrays.conversion import decode, quantize
from floatlab.arrays.lanes.parameters import DOUBLE, is_enough
from floatlab.arrays.operations import multiply
from floatlab.arrays.recurrences import drawing
from floatlab.arrays.sources import source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction, encode
from floatlab.training.validation import exactly

_ODD = Context(Direction.RTO)


def numbers_of(value: Any, name: str) -> list[Fraction] | Array:
    """Return one number, or a row or table of them, as Fractions where text was given, else as float64.

    Raises UnsupportedError for one that is not finite, and for arrays of other things.
    """
    if isinstance(value, str | int | float | Fraction | Datum) or not (
        hasattr(value, "__len__") or hasattr(value, "__array__")
    ):
        return [exactly(value, name)]
    if not hasattr(value, "dtype") and any(isinstance(each, str | Fraction | Datum) for each in value):
        return [exactly(each, f"{name}[{i}]") for i, each in enumerate(value)]
    source = source_of(value, name)
    return np.asarray(decode(source.codes, source.format, np.float64))


class Gradients:
    """Gradients for every step, for `count` weights; `alone` where there is one weight and not a row of one.

    >>> given = Gradients("0.1", 1, True)
    >>> given.rounded(0, 2, 1.0, DOUBLE, Context()).tolist()
    [[0.1], [0.1]]
    """

    def __init__(self, given: Any, count: int, alone: bool, name: str = "gradient") -> None:
        """Take what was given; raises UnsupportedError for shapes that do not fit, and for a constant of no number."""
        self.name, self.count = name, count
        self.function = given if callable(given) else None
        self.exact: list[Fraction] | None = None
        self.table: Array | None = None
        self.raw: Array | None = None  # what a function gave last
        self.length: int | None = None  # steps that there are; None: as many as asked for
        self._scaled: tuple[Any, Array] | None = None
        if self.function is None:
            self._take(given, alone)

    def _take(self, given: Any, alone: bool) -> None:
        found = numbers_of(given, self.name)
        if isinstance(found, list):
            lone = isinstance(given, str) or not hasattr(given, "__len__")
            self.length = None if lone or not alone else len(found)
            if self.length is None and len(found) not in (1, self.count):
                raise UnsupportedError(f"{self.name} has {len(found)} numbers for {self.count} weights")
            self.exact = found * self.count if self.length is None and len(found) == 1 else found
            return
        if found.ndim == 0 or (found.ndim == 1 and not alone):
            bad = found[~np.isfinite(found)] if found.ndim else found
            if not np.isfinite(found).all():
                raise UnsupportedError(f"{self.name} is a finite number, not {bad.reshape(-1)[0]}")
            if found.ndim and len(found) != self.count:
                raise UnsupportedError(f"{self.name} has {len(found)} numbers for {self.count} weights")
            self.exact = [Fraction(*each.as_integer_ratio()) for each in np.broadcast_to(found, self.count).tolist()]
            return
        table = found[:, None] if found.ndim == 1 else found
        if table.ndim != 2 or table.shape[1] not in (1, self.count) or not len(table):
            raise UnsupportedError(
                f"{self.name} has shape {found.shape}; a number, or (steps, {self.count}) of them, would fit"
            )
        self.table, self.length = np.broadcast_to(table, (len(table), self.count)), len(table)

    @property
    def is_constant(self) -> bool:
        """Whether every step is given the same."""
        return self.function is None and self.length is None

    def check_last(self, steps: int) -> None:
        """Refuse so many steps where there are numbers for fewer: UnsupportedError."""
        if self.length is not None and steps > self.length:
            raise UnsupportedError(f"{self.name} has numbers for {self.length:,} steps, not for {steps:,}")

    def at(self, step: int, element: int) -> Fraction | None:
        """Return what one weight is given in a step, exactly; None where that is no number.

        Of a function: what it gave when it was last called.
        """
        if self.exact is not None:
            return self.exact[element if self.is_constant else step]
        row = self.raw if self.table is None else self.table[step]
        if row is None or not np.isfinite(row[element]):
            return None
        return Fraction(*float(row[element]).as_integer_ratio())

    def last_given(self, steps: int) -> Array:
        """Return for every weight the last of so many steps (from 1) that it is given anything but zero in; 0: none.

        Raises UnsupportedError for a function.

        >>> Gradients([0.5, 0.0, 0.25, 0.0], 1, True).last_given(4).tolist()
        [3]
        """
        if self.function is not None:
            raise UnsupportedError("what a function of the weights gives is not known beforehand")
        if self.is_constant:
            assert self.exact is not None
            return np.array([steps if each else 0 for each in self.exact])
        if self.exact is not None:
            table = np.array([each != 0 for each in self.exact])[:steps, None]
        else:
            assert self.table is not None
            table = self.table[:steps] != 0
        if not len(table):
            return np.zeros(table.shape[1], np.int64)
        return np.where(table.any(axis=0), len(table) - np.argmax(table[::-1], axis=0), 0)

    def rounded(
        self, first: int, steps: int, scale: float, format: Format, context: Context, weights: Any = None
    ) -> Array:
        """Return gradients of some steps, times the loss scale and rounded once, as (steps, count) float64."""
        context = drawing(context, first * self.count)
        if self.function is not None:
            return self._called(first, scale, format, context, weights)
        if self.table is not None:
            return self._rounded(self.table[first : first + steps], scale, format, context)
        wide = self._wide(scale, format)
        rows = wide[None] if self.is_constant else wide[first : first + steps, None]
        if self.is_constant and context.rounding is not Direction.SR:
            return np.broadcast_to(self._rounded(rows, 1.0, format, context), (steps, self.count))
        return self._rounded(np.broadcast_to(rows, (steps, self.count)), 1.0, format, context)

    def _rounded(self, numbers: Array, scale: float, format: Format, context: Context) -> Array:
        found: Array
        if scale == 1:
            found = quantize(np.ascontiguousarray(numbers), format, context=context)
        else:
            found = multiply(numbers, np.float64(scale), format, context=context)
        if not format.has_nan and not np.isfinite(numbers).all():
            return np.where(np.isfinite(numbers), found, numbers)  # they do not become the largest number unseen
        return found

    def _wide(self, scale: float, format: Format) -> Array:
        """Return exact numbers, times the scale, as binary64 that rounds as they do."""
        assert self.exact is not None
        key = (scale, format)
        if self._scaled is None or self._scaled[0] != key:
            context = _ODD if is_enough(DOUBLE, format) else Context()
            by = Fraction(scale)
            made = {each: float(encode(each * by, DOUBLE, context)) for each in set(self.exact)}
            self._scaled = key, np.array([made[each] for each in self.exact])
        return self._scaled[1]

    def _called(self, step: int, scale: float, format: Format, context: Context, weights: Any) -> Array:
        assert self.function is not None
        try:
            found = np.asarray(self.function(weights, step), np.float64)
            self.raw = np.broadcast_to(found.reshape(-1), (self.count,))
        except (TypeError, ValueError) as trouble:
            plural = "number" if self.count == 1 else "numbers"
            raise UnsupportedError(
                "a gradient's function takes the weights and the number of the step, and gives "
                f"{self.count:,} {plural}: {str(trouble).splitlines()[0]}"
            ) from None
        return self._rounded(self.raw[None], scale, format, context)


def running_totals(given: Gradients, at: Sequence[int], element: int) -> tuple[list[int], Fraction]:
    """Return the exact sums of what one weight was given in the first k steps, for k of `at`, ascending.

    They are integers of one unit, which is returned with them. Raises UnsupportedError for a function, whose values
    depend on the run.

    >>> running_totals(Gradients(["0.1", "0.2", "-0.3"], 1, True), [0, 2, 3], 0)
    ([0, 3, 0], Fraction(1, 10))
    """
    if given.function is not None:
        raise UnsupportedError("a function of the weights has no total of its own")
    if given.is_constant:
        assert given.exact is not None
        each = given.exact[element]
        return [k * each.numerator for k in at], Fraction(1, each.denominator)
    if given.exact is not None:
        numbers = given.exact
    else:
        assert given.table is not None
        numbers = [Fraction(*each.as_integer_ratio()) for each in given.table[: max(at, default=0), element].tolist()]
    bottom = math.lcm(*{each.denominator for each in numbers})
    terms = [each.numerator * (bottom // each.denominator) for each in numbers]
    sums = [0, *itertools.accumulate(terms)]
    return [sums[k] for k in at], Fraction(1, bottom)
