"""The inputs of a product or of sums, and the codes that each way to compute makes of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes.pairs import is_enough, to_odd, two_sum
from floatlab.arrays.lanes.reading import DOUBLE, SINGLE, container
from floatlab.arrays.operations import operate
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.numbers import Context
from floatlab.numbers.context import DEFAULT
from floatlab.numbers.projection import round_exact
from floatlab.reduce.plan.orders import Fused
from floatlab.reduce.replay.candidates import Candidate
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.exact_sum import exact_totals, matrix_totals
from floatlab.reduce.simulate.machines import Machine
from floatlab.reduce.simulate.simulation import simulate

SAMPLE = 1024  # elements of large products that every way is tried on; fewer, where sums are long
_LEAST = 64
_TERMS = 1 << 21  # in the sample
_WHOLE = 1 << 30  # multiply-adds; of larger products only the sample is compared


class Evaluator:
    """The inputs of products, and the codes that each way makes of them, computed once.

    The factors are (rows, n) and (n, columns); without a second one, the rows are sums. `context` is what ways round by
    that have no rules of their own.
    """

    def __init__(self, left: Source, right: Source | None, into: Format, context: Context = DEFAULT) -> None:
        """Choose the elements of the sample: all of them, or some that no pattern in the data can follow."""
        self.left, self.right, self.into, self.context = left, right, into, context
        rows, self.terms = left.codes.shape
        self.shape = (rows, 1 if right is None else right.codes.shape[1])
        size = self.size = self.shape[0] * self.shape[1]
        self.places = np.arange(size)
        most = min(SAMPLE, max(_LEAST, _TERMS // self.terms))
        if size > most:
            self.places = np.sort(np.random.default_rng(754).choice(size, most, replace=False))
        self._sampled: dict[Candidate, Array] = {}
        self._whole: dict[Candidate, Array] = {}

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats of the factors, or of the terms."""
        return (self.left.format,) if self.right is None else (self.left.format, self.right.format)

    @property
    def is_sampled(self) -> bool:
        """Whether the sample is a part only."""
        return bool(len(self.places) < self.size)

    @property
    def is_huge(self) -> bool:
        """Whether the whole is too much to compute."""
        return bool(self.size * self.terms > _WHOLE)

    @cached_property
    def _pairs(self) -> tuple[Source, Source | None]:
        rows, columns = np.divmod(self.places, self.shape[1])
        x = Source(np.ascontiguousarray(self.left.codes[rows].T), self.left.format)
        if self.right is None:
            return x, None
        return x, Source(np.ascontiguousarray(self.right.codes[:, columns]), self.right.format)

    @cached_property
    def _factors(self) -> tuple[Source, Source | None]:
        x = np.ascontiguousarray(self.left.codes.T)
        if self.right is None:
            return Source(x, self.left.format), None
        y = np.ascontiguousarray(self.right.codes)[:, None, :]
        return Source(x[:, :, None], self.left.format), Source(y, self.right.format)

    def sampled(self, candidate: Candidate) -> Array:
        """Return the codes of the sample; raises what `simulate` raises."""
        plain = candidate.plain
        if plain not in self._sampled:
            self._sampled[plain] = self._codes(plain, *self._pairs) if plain.schedule else self._exact(self.places)
        return self._sampled[plain]

    def whole(self, candidate: Candidate) -> Array:
        """Return the codes of all elements, in C order."""
        plain = candidate.plain
        if not self.is_sampled:
            return self.sampled(plain)
        if plain not in self._whole:
            made = self._codes(plain, *self._factors).reshape(-1) if plain.schedule else self._exact_product()
            self._whole[plain] = made
        return self._whole[plain]

    def compared(self, candidate: Candidate) -> Array:
        """Return the codes of all elements, or, where that is too much, of the sample."""
        return self.sampled(candidate) if self.is_huge else self.whole(candidate)

    def _codes(self, candidate: Candidate, x: Source, y: Source | None) -> Array:
        if candidate.machines and y is not None:
            x, y = (_read(side, candidate.machines[0]) for side in (x, y))
        assert candidate.schedule is not None
        assert candidate.adder is not None
        adder, made = candidate.adder, candidate.adder.accumulator
        separate = isinstance(adder, Adder) and not adder.fma and adder.products != made
        if y is not None and isinstance(adder, Adder) and separate and x.codes.ndim == 2:
            # Products that are rounded on their own are terms of a sum, which the processor's formats add.
            terms = operate("multiply", [x, y], adder.products, context=adder.context, as_codes=True)
            codes = simulate(Source(terms, adder.products), None, candidate.schedule, adder)
        else:
            codes = simulate(x, y, candidate.schedule, adder)
        rules = DEFAULT if candidate.machines else self.context
        return codes if made == self.into else np.asarray(encode(Source(codes, made), self.into, context=rules))

    def _exact(self, places: Iterable[int]) -> Array:
        found = [self._one(*divmod(int(place), self.shape[1])) for place in places]
        return np.array(found, container(self.into))

    def _one(self, i: int, j: int) -> int:
        """Return the code of one exact sum."""
        x = Source(self.left.codes[i], self.left.format)
        y = None if self.right is None else Source(self.right.codes[:, j], self.right.format)
        totals = exact_totals(x, y)
        if totals is None or not totals[0]:  # specials, and which zero it is
            fused = Adder(self.into, fma=y is not None, context=self.context)
            return int(simulate(x, y, Fused(max(self.terms, 2)), fused)[()])
        return round_exact(totals[0], self.into, self.context).code

    def _exact_product(self) -> Array:
        """Round pairs of binary64 where what they miss cannot matter, and the exact sums elsewhere."""
        if self.right is None:
            return self._exact(range(self.size))
        n = self.terms
        a, b = (decode(side.codes, side.format, np.float64) for side in (self.left, self.right))
        narrow = all(holds(SINGLE, each) for each in self.formats)
        unsure = np.ones(self.shape, np.bool_)
        codes = np.zeros(self.shape, container(self.into))
        if narrow and is_enough(DOUBLE, self.into):
            with np.errstate(all="ignore"):
                high, low, size = matrix_totals(a, b)
                missing = size * (n * n * 2.0**-100)
                ends = [
                    np.asarray(encode(Source(to_odd(two_sum(high, each)), DOUBLE), self.into, context=self.context))
                    for each in (low - missing, low + missing)
                ]
            codes, unsure = ends[0], (ends[0] != ends[1]) | ~np.isfinite(high) | (high == 0)
        for i, j in np.argwhere(unsure).tolist():
            codes[i, j] = self._one(i, j)
        return codes.reshape(-1)


def _read(side: Source, machine: Machine) -> Source:
    if side.format == machine.terms:
        return side
    return Source(np.asarray(encode(side, machine.terms, context=machine.reading)), machine.terms)
