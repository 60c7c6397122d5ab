"""Probes of a target, read at elements of its result that share a tree.

A probe is one vector of terms. One matrix product answers as many probes as there are rows (or columns) that contain an
element with this tree. A sum answers one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.probing import NotASum
from floatlab.reduce.reveal.sized_target import SizedTarget, values_of


class Masks:
    """Huge numbers and the units that they swamp, in a format; and how many units a result can count.

    Mild masks stay within the range of binary16, since partial sums may be in binary16.
    """

    def __init__(self, format: Format, mild: bool = False) -> None:
        if format.emax >= 100 and not mild:
            self.huge, self.unit = 2.0 ** (100 if format.emax < 1000 else 500), 1.0
        else:  # the whole range of binary16, to swamp binary32 accumulators, too
            self.huge, self.unit = 2.0 ** min(format.emax, 15), 2.0 ** max(format.qmin, -24)
        self.most = 1 << format.precision


class Lines:
    """Elements at which probes are read, at most one per line; a line is a row (axis 0) or a column (axis 1)."""

    def __init__(self, wanted: Array, is_gram: bool = False) -> None:
        """Choose as many as possible of the wanted elements, an array of bools in the shape of the results.

        If one matrix is both operands, all are in one column, and the element on the diagonal is left out.
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
    """Finds the subtrees where a target's terms meet; without `lines`, each sum is one call. `probes` counts them."""

    def __init__(self, sized: SizedTarget, lines: Lines | None = None) -> None:
        self.sized, self.lines, self.probes = sized, lines, 0
        self.use(Masks(sized.format))
        self._ones = np.ones(sized.terms, sized.carrier)

    def use(self, masks: Masks) -> None:
        """Probe with these masks from now on."""
        self.masks = masks
        # Each vector has no more units than the result can count.
        self._units: list[Array] = []
        for low in range(0, self.sized.terms, masks.most):
            units = np.zeros(self.sized.terms, self.sized.carrier)
            units[low : low + masks.most] = masks.unit
            self._units.append(units)

    @property
    def batch(self) -> int:
        """The number of probes that cost as much as one."""
        return 1 if self.lines is None else len(self.lines)

    def check(self) -> None:
        """Raise NotASum for a target that does not count its units correctly, or not twice the same."""
        name, terms = self.sized.target.name, self.sized.terms
        counts = self._counts(self.values(np.stack([units for units in self._units for _ in "ab"])))
        if (counts[::2] != counts[1::2]).any():
            raise NotASum(f"{name} gives two results for the same terms")
        if counts[::2].tolist() != [np.count_nonzero(units) for units in self._units]:
            raise NotASum(f"{name} is no sum of its terms: {terms} ones do not make {terms}")

    def meetings(self, first: Array, second: Array) -> Array:
        """Return the sizes of the subtrees where terms meet (see `probing.Meetings`); raises NotASum."""
        self.probes += len(first)
        outside: Array | int = 0
        for units in self._units:
            counts = self._counts(self._masked(units, first, second))
            if (counts < 0).any():
                k = int((counts < 0).argmax())
                raise NotASum(
                    f"a huge number at term {first[k]} and its opposite at {second[k]} leave no count of ones"
                )
            outside = outside + counts
        return np.asarray(self.sized.terms - outside)

    def values(self, vectors: Array, other: Array | None = None) -> Array:
        """Return the sums of vectors (probes, terms), or of their products with another vector (default: ones)."""
        wide, other = vectors.astype(self.sized.carrier), self._ones if other is None else other
        if self.lines is None:
            return values_of(self.sized.sums(iter(wide), other.astype(self.sized.carrier)))
        parts, count = [], len(self.lines)
        for low in range(0, len(wide), count):
            part = wide[low : low + count]
            x, y, mine = self._operands(other.astype(self.sized.carrier))
            mine[self.lines.each[: len(part)]] = part
            parts.append(self._read(x, y, len(part)))
        return np.concatenate(parts)

    def fused(self, plan: Plan) -> tuple[int, ...]:
        """Return the terms of a binary plan whose products are fused onto a sum, not rounded first.

        c² and −c² both need rounding. If both are rounded, their sum is 0; if one is fused, it is the rounding error.
        """
        n, first = plan.terms, plan.first_terms
        nodes = [node for node in plan.nodes if min(node) < n]
        c = 16 * (1 + 2.0 ** (1 - self.sized.format.precision))
        found: list[int] = []
        pairs = [(one, other) if one < n else (other, one) for one, other in nodes]
        batch = max(64, 0 if self.lines is None else len(self.lines))
        for low in range(0, len(pairs), batch):
            some = pairs[low : low + batch]
            rows = np.zeros((len(some), n))
            for row, (one, other) in zip(rows, some, strict=True):
                row[one], row[first[other]] = c, -c
            self.probes += len(some)
            left = self.values(rows, np.full(n, c))
            for (one, other), rest in zip(some, left, strict=True):
                if rest > 0:
                    found.append(one)
                elif rest < 0 and other < n:
                    found.append(other)
        return tuple(sorted(found))

    def _counts(self, sums: Array) -> Array:
        """Return sums as counts of units; -1 if a sum is not a count."""
        units = sums.astype(np.float64) / self.masks.unit
        if not (np.abs(units) <= self.sized.terms).all():  # true for NaN, too
            units = np.where((units >= 0) & (units <= self.sized.terms), units, -1)
        counts = units.astype(np.int64)
        return counts if (counts == units).all() else np.where(counts == units, counts, -1)

    def _masked(self, units: Array, first: Array, second: Array) -> Array:
        """Return what is left of the units with a huge number at one term and its opposite at another."""
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
        """Return x and y, with every row of x and every column of y set to `other`, and what is to be probed.

        That is a view of one operand, with one vector per row.
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


def _masks(units: Array, huge: float, first: Array, second: Array) -> Iterator[Array]:
    opposite = -huge
    for i, j in zip(first.tolist(), second.tolist(), strict=True):
        mask = units.copy()  # a copy: the target may write into its operands
        mask[i], mask[j] = huge, opposite
        yield mask
