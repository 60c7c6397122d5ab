"""Probes of a real implementation, read at the elements of its result that share a tree.

A library may add the elements of one product along different trees: at the edges of its tiles, for instance. A probe
is a row of the left matrix, so one product answers as many probes as it has rows, but only elements that share a tree
may be taken for one another. So a few pairs of terms are first probed at all elements at once; only those that answer
as the first one does are read from then on. The tree is the first element's: it has to agree with all that the first
element answered, and where it does not, that element is probed alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.probing import NotASum, plan_of
from floatlab.reduce.reveal.targets import ROWS, Target
from floatlab.reduce.timing.devices import Foreign

_PROBES_A_TERM = 64  # on average; more, and the order is too irregular
_BATCH = 64
_RANDOM_PAIRS = 12
_WORK = 1 << 36  # multiply-adds that one element alone is probed with


class _Masks:
    """Numbers that swamp, and units that are swamped, in a format; and how many units a result can count."""

    def __init__(self, format: Format) -> None:
        if format.emax >= 100:
            self.huge, self.unit = 2.0 ** (100 if format.emax < 1000 else 500), 1.0
        else:  # binary16: its whole range, so that binary32 accumulators are swamped, too
            self.huge, self.unit = 2.0**format.emax, 2.0**format.qmin
        self.most = 1 << format.precision


class Prober:
    """Probes how many terms of a target meet in which subtree.

    `alike` says of a product which elements answer as the first one does, as far as they have been asked; `places` are
    those that are read, one a row at most.
    """

    def __init__(self, target: Target, terms: int, dtype: Foreign, format: Format) -> None:
        self.target, self.terms, self.dtype, self.format = target, terms, dtype, format
        self.masks, self.probes = _Masks(format), 0
        self.ones = np.ones(terms)
        # No more units at a time than the result can count.
        self.parts = [slice(low, low + self.masks.most) for low in range(0, terms, self.masks.most)]
        self.alike = np.ones(target.shape, np.bool_)
        self.places = np.zeros((1, len(target.shape)), np.intp) if target.shape else None
        self._first: dict[tuple[int, int], int] = {}  # pairs of terms: where they meet in the first element

    @property
    def shares(self) -> bool:
        """Whether probes are read at several elements of one product."""
        return self.places is not None and len(self.places) > 1

    def plan(self) -> Plan:
        """Return the plan of the first element; raises NotASum."""
        self._check()
        most = _PROBES_A_TERM * self.terms + 1000
        try:
            self._survey()
            if self.shares:
                with suppress(NotASum):
                    return self._searched(most)
                return self.alone()
            return self._searched(most)
        except NotASum as trouble:
            raise NotASum(f"{self.target.name} is no sum along a tree: {trouble}") from None

    def alone(self) -> Plan:
        """Return the plan of the first element, probed at no other one; raises NotASum."""
        if self.shares:
            assert self.places is not None
            self.places = self.places[:1]
        return self._searched(min(_PROBES_A_TERM * self.terms + 1000, _WORK // (self.alike.size * self.terms)))

    def values(self, rows: Array) -> Array:
        """Return the sums of rows (probes, terms), each with ones, as float64."""
        return values(self.target.sums(rows, self.ones, self.dtype, self.places))

    def fused(self, plan: Plan) -> tuple[int, ...]:
        """Return the terms of a plan of two operands a node whose products are fused onto a sum, not rounded before.

        c² and −c², which both need rounding, leave nothing where both were rounded, and else what one rounding missed.
        """
        n, first = plan.terms, plan.first_terms
        nodes = [node for node in plan.nodes if min(node) < n]
        c = 16 * (1 + 2.0 ** (1 - self.format.precision))
        found: list[int] = []
        for low in range(0, len(nodes), _BATCH):
            some = [(one, other) if one < n else (other, one) for one, other in nodes[low : low + _BATCH]]
            rows = np.zeros((len(some), n))
            for row, (one, other) in zip(rows, some, strict=True):
                row[one], row[first[other]] = c, -c
            self.probes += len(some)
            left = values(self.target.sums(rows, np.full(n, c), self.dtype, self.places))
            for (one, other), rest in zip(some, left, strict=True):
                if rest > 0:
                    found.append(one)
                elif rest < 0 and other < n:
                    found.append(other)
        return tuple(sorted(found))

    def _searched(self, most: int) -> Plan:
        plan = plan_of(self._meetings, self.terms, most)
        parents = {child: i for i, node in enumerate(plan.nodes, plan.terms) for child in node}
        sizes = plan.sizes
        for (i, j), size in self._first.items():
            one, other = i, j
            while one != other:  # a node comes after all that it adds
                one, other = max(one, other), parents[min(one, other)]
            if sizes[one] != size:
                raise NotASum(f"terms {i} and {j} of the first element meet among {size}, and elsewhere {sizes[one]}")
        return plan

    def _counts(self, sums: Array) -> Array:
        """Return how many units sums are; -1 for what is no number of units."""
        units = sums / self.masks.unit
        whole = np.isfinite(units) & (units == np.rint(units)) & (units >= 0) & (units <= self.terms)
        return np.where(whole, units, -1).astype(np.int64)

    def _check(self) -> None:
        """Raise NotASum for a target that does not even count its units, and twice the same."""
        rows = np.zeros((2 * len(self.parts), self.terms))
        for k, part in enumerate(self.parts):
            rows[2 * k : 2 * k + 2, part] = self.masks.unit
        counts = self._counts(self.values(rows))
        if (counts[::2] != counts[1::2]).any():
            raise NotASum(f"{self.target.name} gives two results for the same terms")
        wanted = [len(range(*part.indices(self.terms))) for part in self.parts]
        if counts[::2].tolist() != wanted:
            raise NotASum(f"{self.target.name} is no sum of its terms: {self.terms} ones do not make {self.terms}")

    def _survey(self) -> None:
        """Probe some pairs of terms at all elements of a product, and choose those that answer as the first one."""
        if not self.target.shape:
            return
        for i, j in _pairs(self.terms):
            self.probes += 1
            sizes = self._met(i, np.array([j]), lambda rows: self._everywhere(rows[0])[None])[0]
            first = int(sizes.flat[0])
            self.alike &= sizes == first
            self._first[i, j] = first
        rows = np.flatnonzero(self.alike.reshape(ROWS, -1).any(axis=1))
        columns = self.alike.reshape(ROWS, -1)[rows].argmax(axis=1)
        self.places = np.stack([rows, columns][: len(self.target.shape)], axis=1)

    def _everywhere(self, row: Array) -> Array:
        """Return what a product whose rows are all the same one makes of it, at every element."""
        made = self.target.product(np.broadcast_to(row, (ROWS, self.terms)), self.ones, self.dtype)
        return values(made)

    def _meetings(self, i: int, others: Array) -> Array:
        """Return the size of the subtree where term i meets each of others."""
        found = np.empty(len(others), np.int64)
        for low in range(0, len(others), _BATCH):
            some = others[low : low + _BATCH]
            self.probes += len(some)
            found[low : low + _BATCH] = self._met(i, some, self.values)
        return found

    def _met(self, i: int, others: Array, ask: Callable[[Array], Array]) -> Array:
        """Return the sizes (others, …) where term i meets others, as `ask` answers rows of terms."""
        outside: Array | int = 0
        for part in self.parts:
            rows = np.zeros((len(others), self.terms))
            rows[:, part] = self.masks.unit
            rows[:, i] = self.masks.huge
            rows[np.arange(len(others)), others] = -self.masks.huge
            counts = self._counts(ask(rows))
            none = counts.reshape(len(others), -1)[:, 0] < 0
            if none.any():
                j = int(others[none][0])
                raise NotASum(f"a huge number at term {i} and its opposite at {j} leave no count of ones")
            outside = outside + np.where(counts < 0, self.terms, counts)  # elsewhere: a size that no pair has
        return np.asarray(self.terms - outside)


def values(source: Source) -> Array:
    """Return the values of codes as float64."""
    return decode(source.codes, source.format, np.float64)


def _pairs(n: int) -> list[tuple[int, int]]:
    """Return pairs of terms that tell orders apart: neighbours, powers of two, both ends, the middle, and random ones.

    >>> _pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    half = n // 2
    found = [(0, 1), (0, 2), (1, 2), (0, n - 1), (n - 2, n - 1), (0, half), (half - 1, half)]
    found += [(0, 1 << k) for k in range(2, n.bit_length())]
    rng = np.random.default_rng(754)
    found += [(int(i), int(j)) for i, j in np.sort(rng.integers(0, n, (_RANDOM_PAIRS, 2)), axis=1)]
    return sorted({(i, j) for i, j in found if 0 <= i < j < n})
