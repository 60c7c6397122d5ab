"""Holds the inputs of a product or of sums, and computes the codes of the results that each candidate gives."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.pairs import to_odd, two_sum
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, container, is_enough
from floatlab.arrays.operations import operate
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Context
from floatlab.numbers.projection import round_exact
from floatlab.numbers.rounding import DEFAULT
from floatlab.reduce.plan.schedules import Fused
from floatlab.reduce.replay.candidates import Candidate, InputRounding
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.exact_sum import exact_totals, matrix_totals, pair_totals
from floatlab.reduce.simulate.simulation import simulate

SAMPLE = 1024  # the largest number of elements in the sample of a large product; long sums have a smaller sample
_LEAST = 64  # the smallest number of elements in the sample of a large product, even if its sums are long
_TERMS = 1 << 21  # the largest number of terms in the sample, unless `_LEAST` elements have more
_WHOLE = 1 << 30  # if a product has more multiply-adds than this, only its sample is compared


class Evaluator:
    """Computes a product, or sums, with each candidate. The codes of a candidate's results are computed only once.

    Parameters
    ----------
    sides : tuple of Source
        The factors, of shapes (rows, n) and (n, columns); or one source whose rows are summed.
    into : Format
        The format of the results.
    context : Context
        The rounding of results to `into`. Models of machines round to nearest even instead.
    """

    def __init__(self, sides: Sides, into: Format, context: Context = DEFAULT) -> None:
        """Choose the sample, the elements that are compared first: all elements, or random ones if there are many.

        A regular sample could miss periodic differences.
        """
        self.sides, self.into, self.context = sides, into, context
        rows, self.terms = sides[0].codes.shape
        self.shape = (rows, sides[1].codes.shape[1] if len(sides) > 1 else 1)
        self.size = self.shape[0] * self.shape[1]
        self.places = np.arange(self.size)
        most = min(SAMPLE, max(_LEAST, _TERMS // self.terms))
        if self.size > most:
            self.places = np.sort(np.random.default_rng(754).choice(self.size, most, replace=False))
        self._sampled: dict[Candidate, Array] = {}
        self._whole: dict[Candidate, Array] = {}

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats of the factors, or of the terms."""
        return tuple(side.format for side in self.sides)

    @property
    def is_sampled(self) -> bool:
        """Whether the product has more elements than the sample."""
        return bool(len(self.places) < self.size)

    @property
    def is_huge(self) -> bool:
        """Whether the product is so large that only the sample is compared."""
        return bool(self.size * self.terms > _WHOLE)

    def part(self, rows: Array, columns: Array | None = None) -> Sides:
        """Return some rows of the first factor, and some columns of the second (all if `columns` is None)."""
        first, *others = self.sides
        index = slice(None) if columns is None else columns
        return (
            Source(first.codes[rows], first.format),
            *(Source(np.ascontiguousarray(side.codes[:, index]), side.format) for side in others),
        )

    @cached_property
    def _pairs(self) -> Sides:
        """The terms or factors of the sample's elements, each of shape (n, elements)."""
        x, *others = self.part(*np.divmod(self.places, self.shape[1]))
        return Source(np.ascontiguousarray(x.codes.T), x.format), *others

    @cached_property
    def _factors(self) -> Sides:
        """The terms of all sums, of shape (n, rows), or both factors, of shapes (n, rows, 1) and (n, 1, columns)."""
        codes = [np.ascontiguousarray(self.sides[0].codes.T)]
        if len(self.sides) > 1:
            codes = [codes[0][:, :, None], np.ascontiguousarray(self.sides[1].codes)[:, None, :]]
        return tuple(map(Source, codes, self.formats))

    def sampled(self, candidate: Candidate) -> Array:
        """Return the codes of the candidate's results for the sample; raises the errors of `simulate`."""
        plain = candidate.plain
        if plain not in self._sampled:
            self._sampled[plain] = (
                candidate_codes(plain, self._pairs, self.into, self.context) if plain.schedule else self._exact_sample()
            )
        return self._sampled[plain]

    def whole(self, candidate: Candidate) -> Array:
        """Return the codes of the candidate's results for all elements, in C order; raises the errors of `simulate`."""
        plain = candidate.plain
        if not self.is_sampled:
            return self.sampled(plain)
        if plain not in self._whole:
            made = (
                candidate_codes(plain, self._factors, self.into, self.context).reshape(-1)
                if plain.schedule
                else self._exact_product()
            )
            self._whole[plain] = made
        return self._whole[plain]

    def compared(self, candidate: Candidate) -> Array:
        """Return the codes of the candidate's results for all elements, or only for the sample if `is_huge` is true."""
        return self.sampled(candidate) if self.is_huge else self.whole(candidate)

    def _exact_sample(self) -> Array:
        if len(self.sides) == 1 or not self._has_pairs:
            return self._exact(self.places)
        x, y = (decode(side.codes, side.format, np.float64) for side in self._pairs)
        size = np.einsum("ij,ij->j", np.abs(x), np.abs(y))
        return self._rounded(*pair_totals(x, y, True), size, self.places)

    def _exact(self, places: Iterable[int]) -> Array:
        codes = [self._exact_code(*divmod(int(place), self.shape[1])) for place in places]
        return np.array(codes, container(self.into))

    def _exact_code(self, row: int, column: int) -> int:
        """Return the code of one element: its exact sum, rounded once."""
        first, *others = self.sides
        sides = Source(first.codes[row], first.format), *(Source(s.codes[:, column], s.format) for s in others)
        totals = exact_totals(*sides)
        if totals is None or not totals[0]:  # ∞, NaN, or a zero, whose sign `exact_totals` does not give
            fused = Adder(self.into, fma=len(sides) > 1, context=self.context)
            return int(simulate(sides, Fused(max(self.terms, 2)), fused)[()])
        return round_exact(totals[0], self.into, self.context).code

    def _exact_product(self) -> Array:
        """Return the codes of the exact product, computed in double-double arithmetic where this is precise enough."""
        if len(self.sides) == 1 or not self._has_pairs:
            return self._exact(range(self.size))
        a, b = (decode(side.codes, side.format, np.float64) for side in self.sides)
        with np.errstate(all="ignore"):
            high, low, size = (part.reshape(-1) for part in matrix_totals(a, b))
        return self._rounded(high, low, size, np.arange(self.size))

    @property
    def _has_pairs(self) -> bool:
        """Whether all products are exact in binary64, and `into` is narrow enough for `_rounded`."""
        return all(holds(SINGLE, each) for each in self.formats) and is_enough(DOUBLE, self.into)

    def _rounded(self, high: Array, low: Array, size: Array, places: Array) -> Array:
        """Return the codes of high + low, rounded.

        An element is summed exactly if the possible error of high + low could change the element's code, or if `high`
        is 0 or not finite.
        """
        with np.errstate(all="ignore"):
            missing = size * (self.terms**2 * 2.0**-100)
            codes, other = (
                np.asarray(encode(Source(to_odd(two_sum(high, each)), DOUBLE), self.into, context=self.context))
                for each in (low - missing, low + missing)
            )
        unsure = np.flatnonzero((codes != other) | ~np.isfinite(high) | (high == 0))
        zero = unsure[(size[unsure] == 0) & np.isfinite(high[unsure])]
        codes[zero] = self._zeros(places[zero])
        rest = np.setdiff1d(unsure, zero)
        codes[rest] = self._exact(places[rest])
        return codes

    def _zeros(self, places: Array) -> Array:
        """Return the codes of elements whose products are all zeros.

        The sign of an element depends on how many of its products are −0: all, some or none.
        """
        codes = np.zeros(len(places), container(self.into))
        signs = [np.signbit(decode(side.codes, side.format, np.float64)) for side in self.sides]
        rows, columns = np.divmod(places, self.shape[1])
        minus = np.zeros(len(places), np.int64)
        for k in range(self.terms):
            minus += signs[0][rows, k] ^ signs[1][k, columns]
        for kind in (minus == 0, minus == self.terms, (minus > 0) & (minus < self.terms)):
            codes[kind] = self._exact(places[kind][:1]) if kind.any() else 0
        return codes


def candidate_codes(candidate: Candidate, sides: Sides, into: Format, context: Context = DEFAULT) -> Array:
    """Return the codes of a candidate's sums, rounded to `into`. The candidate must have a schedule.

    `sides` has the terms, of shape (n, *batch), or two factors that broadcast to this shape.
    """
    if candidate.machines and len(sides) > 1:
        terms, reading = candidate.machines[0].terms, candidate.machines[0].reading
        codes = [side.codes if side.format == terms else encode(side, terms, context=reading) for side in sides]
        sides = tuple(Source(np.asarray(each), terms) for each in codes)
    if candidate.inputs is not None:
        sides = rounded_inputs(candidate.inputs, sides)
    assert candidate.schedule is not None
    assert candidate.adder is not None
    adder, format = candidate.adder, candidate.adder.accumulator
    separate = isinstance(adder, Adder) and not adder.fma and adder.products != format
    if isinstance(adder, Adder) and separate and sides[0].codes.ndim == 2 == len(sides):
        # Rounded products are ordinary terms, so the processor can add them.
        products = operate("multiply", [*sides], adder.products, context=adder.context, as_codes=True)
        sides = (Source(products, adder.products),)
    sums = simulate(sides, candidate.schedule, adder)
    rules = DEFAULT if candidate.machines else context
    return sums if format == into else np.asarray(encode(Source(sums, format), into, context=rules))


def rounded_inputs(inputs: InputRounding, sides: Sides) -> Sides:
    """Return the inputs rounded to a narrower format, as codes of their original format."""
    made = []
    for side in sides:
        narrow = Source(np.asarray(encode(side, inputs.format, inputs.rounding)), inputs.format)
        made.append(Source(np.asarray(encode(narrow, side.format)), side.format))
    return tuple(made)
