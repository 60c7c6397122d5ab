"""Send probes to a target, and read the results at elements whose terms are added along the same tree.

A probe is one vector of terms. One call of a sum or dot product answers one probe. A call of a matrix product answers
several probes: one for each row (or column) that has an element with this tree.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.probing import NotASum
from floatlab.reduce.reveal.sized_target import SizedTarget, values_of

# `ProbeReader.kept` tests whether partial sums have fewer significand bits than each of these numbers.
_DIGITS = (25, 24, 11)
_SINGLE, _HALF = 127, 15  # the largest exponents of binary32 and binary16


class Masks:
    """The numbers of a probe: a huge number, and a unit that is lost when it is added to the huge number.

    `most` is the number of units that a sum can count exactly.

    Partial sums may have another format than the terms. Two assumptions are made about this other format. `emax` is the
    format's largest exponent. If `few` is true, the format has 8 significand bits, as bfloat16 has, so sums count at
    most 2^8 units.
    """

    def __init__(self, format: Format, emax: int | None = None, few: bool = False) -> None:
        emax = format.emax if emax is None else min(format.emax, emax)
        if emax >= 100:
            self.huge, self.unit = 2.0 ** (100 if emax < 1000 else 500), 1.0
        else:  # the huge number uses the whole range of binary16, so that it absorbs units in binary32 accumulators too
            self.huge, self.unit = 2.0 ** min(emax, 15), 2.0 ** max(format.qmin, -24)
        self.most = 1 << (8 if few else format.precision)


def all_masks(format: Format, terms: int) -> list[Masks]:
    """Return masks, in the order in which to try them: first for sums as wide as the terms, then for narrower sums."""
    exponents = dict.fromkeys((format.emax, min(format.emax, _SINGLE), _HALF))
    few = Masks(format, _SINGLE, few=True)
    return [*(Masks(format, emax) for emax in exponents), *[few] * (terms > few.most)]


class Lines:
    """The elements at which probes are read: at most one in each row (axis 0) or in each column (axis 1)."""

    def __init__(self, wanted: Array, is_gram: bool = False) -> None:
        """Choose as many elements in the mask `wanted` as possible, at most one in each row or in each column.

        If one matrix is both operands, all chosen elements are in one column, without the element on the diagonal.
        """
        self.axis = 0
        places = wanted if wanted.ndim > 1 else wanted[:, None]
        if is_gram:
            apart = places & ~np.eye(len(places), dtype=np.bool_)
            column = int(apart.sum(axis=0).argmax())
            self.rows = np.flatnonzero(apart[:, column])
            self.columns = np.full(len(self.rows), column)
        else:
            by_row, by_column = places.any(axis=1), places.any(axis=0)
            if by_row.sum() >= by_column.sum():
                self.rows = np.flatnonzero(by_row)
                self.columns = places[self.rows].argmax(axis=1)
            else:
                self.axis, self.columns = 1, np.flatnonzero(by_column)
                self.rows = places[:, self.columns].argmax(axis=0)
        self.places = (self.rows, self.columns) if wanted.ndim > 1 else (self.rows,)
        self.each = self.columns if self.axis else self.rows

    def __len__(self) -> int:
        """Return the number of probes that one product answers."""
        return len(self.rows)


class ProbeReader:
    """Finds the subtree in which two terms of a target meet: the smallest subtree that contains both terms.

    `lines` has the elements of a product at which probes are read. `lines` is None for a sum or dot product: each of
    its probes takes one call of the target. `probes` is the number of probes made.
    """

    def __init__(self, sized: SizedTarget, lines: Lines | None = None) -> None:
        self.sized, self.lines, self.probes = sized, lines, 0
        self.use(Masks(sized.format))
        self._ones = np.ones(sized.terms, sized.carrier)

    def use(self, masks: Masks) -> None:
        """Use these masks for the following probes."""
        self.masks = masks
        # Each vector has no more units than the result can count.
        self._units: list[Array] = []
        for low in range(0, self.sized.terms, masks.most):
            units = np.zeros(self.sized.terms, self.sized.carrier)
            units[low : low + masks.most] = masks.unit
            self._units.append(units)

    @property
    def batch(self) -> int:
        """The largest number of probes that one call of the target answers."""
        return 1 if self.lines is None else len(self.lines)

    def check(self) -> None:
        """Raise NotASum if the sum of n units is not n units, or if a second call gives another sum."""
        name, terms = self.sized.target.name, self.sized.terms
        counts = self._counts(self.values(np.array([units for units in self._units for _ in "ab"]))).tolist()
        if counts[::2] != counts[1::2]:
            raise NotASum(f"{name} gives two results for the same terms")
        if counts[::2] != [np.count_nonzero(units) for units in self._units]:
            raise NotASum(f"the sum of {terms} ones is not {terms}")

    def meetings(self, first: Array, second: Array) -> Array:
        """Return the size of the subtree in which the terms `first[k]` and `second[k]` meet, for each k.

        Raises NotASum if the result of a probe is not a whole number of units from 0 to the number of terms.
        """
        self.probes += len(first)
        outside: Array | int = 0
        for units in self._units:
            counts = self._counts(self._masked(units, first, second))
            if (counts < 0).any():
                k = int((counts < 0).argmax())
                raise NotASum(
                    f"a huge number at term {first[k]} and its negative at {second[k]} do not leave a count of ones"
                )
            outside = outside + counts
        return np.asarray(self.sized.terms - outside)

    def values(self, vectors: Array, other: Array | None = None) -> Array:
        """Return the sum of each row of `vectors` (probes, terms), or the dot product of each row with `other`."""
        carrier = self.sized.carrier
        wide, other = vectors.astype(carrier), self._ones if other is None else other.astype(carrier)
        if self.lines is None:
            return values_of(self.sized.sums(iter(wide), other))
        parts, count = [], len(self.lines)
        for low in range(0, len(wide), count):
            part = wide[low : low + count]
            x, y, mine = self._operands(other)
            mine[self.lines.each[: len(part)]] = part
            parts.append(self._read(x, y, len(part)))
        return np.concatenate(parts)

    def fused(self, plan: Plan) -> tuple[int, ...]:
        """Return the terms whose products are added by FMA.

        Each node of the plan must add two numbers. A probe has two inexact products, x·y and −x·y; all other products
        are 0. If both products are rounded, the result is 0. If FMA adds one product exactly, the result is the
        rounding error of the other product. The rounded products are powers of two. So partial sums with fewer bits
        hold them exactly, too.
        """
        n, first = plan.terms, plan.first_terms
        nodes = [node for node in plan.nodes if min(node) < n]
        factor = inexact_factor(self.sized.format)
        found: list[int] = []
        pairs = [(one, other) if one < n else (other, one) for one, other in nodes]
        vectors = ([(one, factor), (first[other], -factor)] for one, other in pairs)
        left = self._values_of(vectors, len(pairs), 16 * (2 - factor))
        for (one, other), rest in zip(pairs, left, strict=True):
            if rest < 0:
                found.append(one)
            elif rest > 0 and other < n:
                found.append(other)
        return tuple(sorted(found))

    def kept(self, plan: Plan, into: Format) -> tuple[tuple[int, ...], int]:
        """Return the nodes whose sums have fewer significand bits than other sums, and the number of these bits.

        Each node must add two numbers. If all sums have the same number of bits, all nodes are returned if this number
        is below 25, and otherwise no node. The root is returned only if its sum has fewer bits than the format of the
        results. If no node is returned, the number of bits is 0.
        """
        ids = range(plan.terms, plan.root + 1)
        found: tuple[int, ...] = ()
        for digits in _DIGITS:
            limits = {plan.root: min(digits, into.precision)}
            lost = self._lost(plan, [(id, 2.0 ** (1 - limits.get(id, digits))) for id in ids])
            found = tuple(id for id, is_lost in zip(ids, lost, strict=True) if is_lost) or found
            if not all(lost[:-1]):
                break
        if not found:
            return (), 0
        lost = self._lost(plan, [(found[0], 2.0**-k) for k in range(1, _DIGITS[0])])
        return found, 1 + lost.count(False)

    def _lost(self, plan: Plan, asked: list[tuple[int, float]]) -> list[bool]:
        """Return, for each pair (node id, small number), whether the number is lost when the node adds it to 1."""
        n, first = plan.terms, plan.first_terms
        parents = {child: node for node in plan.nodes for child in node}

        def vector(id: int, little: float) -> list[tuple[int, float]]:
            one, other = (first[child] for child in plan.nodes[id - n])
            beside = [first[child] for child in parents.get(id, ()) if child != id]
            return [(one, 1.0), (other, little), *((term, -1.0) for term in beside)]

        rests = self._values_of((vector(*each) for each in asked), len(asked), 16.0)
        # If the number is lost, subtracting the 1 leaves 0. For the root, nothing is subtracted, because its sum is the
        # result.
        return [rest == (256.0 if id == plan.root else 0.0) for (id, _), rest in zip(asked, rests, strict=True)]

    def _values_of(self, vectors: Iterable[list[tuple[int, float]]], count: int, factor: float) -> Iterator[float]:
        """Yield the sum of each vector, times 16·`factor`. A vector lists its nonzero terms as pairs (index, value)."""
        waiting, n = iter(vectors), self.sized.terms
        batch = max(64, 0 if self.lines is None else len(self.lines))
        for low in range(0, count, batch):
            rows = np.zeros((min(batch, count - low), n))
            for row in rows:
                for term, value in next(waiting):
                    row[term] = 16 * value
            self.probes += len(rows)
            yield from self.values(rows, np.full(n, factor)).tolist()

    def _counts(self, sums: Array) -> Array:
        """Return the number of units in each sum, or −1 if this is not a whole number from 0 to the number of terms."""
        units = sums.astype(np.float64)
        if self.masks.unit != 1:
            units /= self.masks.unit
        if not (np.abs(units) <= self.sized.terms).all():  # NaN also satisfies this condition
            units = np.where((units >= 0) & (units <= self.sized.terms), units, -1)
        counts = units.astype(np.int64)
        return counts if (counts == units).all() else np.where(counts == units, counts, -1)

    def _masked(self, units: Array, first: Array, second: Array) -> Array:
        """Return the results of probes.

        A probe is a sum of units in which two terms are replaced: the term `first` by a huge number, and the term
        `second` by the negative of the huge number.
        """
        huge = self.masks.huge
        if self.lines is None:
            return values_of(self.sized.sums(_masks(units, huge, first, second), self._ones))
        lines, parts, count = self.lines.each, [], len(self.lines)
        x, y, mine = self._operands(self._ones)
        mine[lines] = units
        for low in range(0, len(first), count):
            i, j = first[low : low + count], second[low : low + count]
            some = lines[: len(i)]
            mine[some, i], mine[some, j] = huge, -huge
            parts.append(self._read(x, y, len(i)))
            mine[some, i], mine[some, j] = units[i], units[j]
        return np.concatenate(parts)

    def _operands(self, other: Array) -> tuple[Array, Array, Array]:
        """Return two matrices x and y, and a view of one of them.

        Every row of x and every column of y is `other`. The view is x or the transpose of y. Each row of the view can
        be overwritten with one probe.
        """
        assert self.lines is not None
        rows, *columns = self.sized.shape
        x, y = np.empty((rows, len(other)), other.dtype), np.empty((len(other), *columns), other.dtype)
        x[...], y[...] = other, other[:, None] if columns else other
        return x, y, x if self.lines.axis == 0 else y.T

    def _read(self, x: Array, y: Array, count: int) -> Array:
        assert self.lines is not None
        found: Array = values_of(self.sized.multiply(x, y))[tuple(place[:count] for place in self.lines.places)]
        return found


def inexact_factor(format: Format) -> float:
    """Return a number 1 + h of a format such that (1 + h)·(1 − h) is inexact and rounds to 1."""
    return float(1 + 2.0 ** -((format.precision + 3) // 2))


def _masks(units: Array, huge: float, first: Array, second: Array) -> Iterator[Array]:
    opposite = -huge
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        mask = units.copy()  # the target may write into its operands, so they are copied
        mask[i], mask[j] = huge, opposite
        yield mask
