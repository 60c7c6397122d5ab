"""Divide the elements of a product into classes that are computed in the same way.

All rows of the left operand are made equal, and so are all columns of the right operand. Every element is then the same
sum. If two elements have different bits, the order of the additions or the arithmetic of a node differs. Three kinds of
vectors are tried as rows. A mask is a vector with two huge terms of opposite sign. Terms that are added to one of the
huge terms are lost, until the two huge terms cancel. Masks distinguish two orders even if only a few terms are at
different places. Vectors with two opposite products show which of the two products is fused. Random vectors show other
differences. Some random vectors have large terms at the beginning or at the end, some are mostly zero, and in some the
terms nearly cancel.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.reduce.plan.grouped_schedules import NUMPY
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.reveal.probes import Lines, Masks, ProbeReader, inexact_factor
from floatlab.reduce.reveal.probing import PROBES_A_TERM, NotASum, plan_of
from floatlab.reduce.reveal.sized_target import SizedTarget, values_of

_WORK = 1 << 36  # at most this many multiply-adds are spent on probing a single element
_RANDOM_PAIRS = 12  # this many random pairs of terms get a mask
_QUIET = 12  # after this many vectors in a row without a new class, no more are tried
_MOST_VECTORS = 96  # at most this many random vectors are tried
# `_fusing_vectors` places its two products at terms 0 and 2^k, k < _LANES: both are in one lane if there are 2^k lanes.
_LANES = 5
_FEW_VECTORS = 2  # this many random vectors are tried if only the class of the first element is needed


class Classes:
    """Classes of the elements of a result. `labels` holds the class number of each element.

    In each product that was tried, all elements have the same terms. Elements of one class had the same bits in every
    such product.
    """

    def __init__(self, sized: SizedTarget, seed: int = 754) -> None:
        self.sized = sized
        self._rng = np.random.default_rng(seed)
        self.labels = np.zeros(sized.shape, np.int64)
        self._first = np.zeros(1, np.int64)  # the index of one element of each class in C order

    def split(self, masks: bool = True) -> None:
        """Try random vectors until 12 vectors in a row find no new class.

        If `masks` is true, first try masks and vectors with two opposite products. These are left out if both operands
        are the same matrix.
        """
        sized = self.sized
        if masks and not sized.is_gram:  # the diagonal of a Gram matrix cannot have negative terms
            for x in _mask_vectors(sized, _pairs(sized.terms)):
                self._refine(x, np.ones(sized.terms))
            for x, y in _fusing_vectors(sized):
                self._refine(x, y)
        quiet = 0
        for k in range(_MOST_VECTORS):
            quiet = 0 if self._refine(*_random_vectors(self._rng, sized.terms, k)) else quiet + 1
            if quiet >= _QUIET:
                break

    def _refine(self, x: Array, y: Array) -> bool:
        """Divide classes whose elements give different bits for the sum of x·y; return whether any was divided."""
        codes = equal_sums(self.sized, x, y).codes
        if (codes == codes.reshape(-1)[self._first][self.labels]).all():
            return False
        _, codes = np.unique(codes, return_inverse=True)
        joint = self.labels * (int(codes.max()) + 1) + codes.reshape(self.labels.shape)
        _, self._first, labels = np.unique(joint, return_index=True, return_inverse=True)
        self.labels = labels.reshape(self.labels.shape)
        return True


class Prober:
    """Find the plan of the first element of a target's result.

    Probes are read at all elements that are computed in the same way as the first element. The mask `alike` marks the
    elements that no probe has distinguished from the first one yet.
    """

    def __init__(self, sized: SizedTarget) -> None:
        self.sized, self.target = sized, sized.target
        self.alike = np.ones(sized.shape, np.bool_)
        self._from_last: bool | None = None  # whether the last terms are deeper in the tree than the first terms
        self.reader = ProbeReader(sized, Lines(self.alike) if sized.shape else None)

    @property
    def probes(self) -> int:
        """The number of probes made."""
        return self.reader.probes

    @property
    def shares(self) -> bool:
        """True if probes are read at several elements of one product."""
        return self.reader.lines is not None and len(self.reader.lines) > 1

    def plan(self) -> Plan:
        """Return the plan of the first element; raises NotASum if its terms are not added along a tree."""
        try:
            self.reader.check()
            if self.sized.shape:
                self._survey()
            try:
                return self._search()
            except NotASum:
                if not self.shares:
                    raise
            return self.alone()
        except NotASum as trouble:
            raise NotASum(f"{self.target.name} is not a sum along a tree: {trouble}") from None

    def alone(self) -> Plan:
        """Return the plan of the first element, probed at this element only; raises NotASum as `plan` does."""
        if self.shares:
            only = np.zeros_like(self.alike)
            only.flat[0] = True
            self.reader.lines = Lines(only)
        return self._search(_WORK // self.sized.work)

    def _search(self, most: int | None = None) -> Plan:
        n = self.sized.terms
        usual = PROBES_A_TERM * n + 1000
        # Sums usually have NumPy's tree; then one probe per node proves it.
        supposed = _numpy_plan(n) if self.target.kind == "sum" else None
        most = usual if most is None else min(usual, most)
        return plan_of(self.reader.meetings, n, most, supposed, self._from_last, self.reader.batch)

    def _survey(self) -> None:
        """Find the elements that are computed in the same way as the first element.

        Also record in `_from_last` whether the last terms of the first element are deeper in its tree than the first
        terms.
        """
        n = self.sized.terms
        rng = np.random.default_rng(754)
        ends = [(0, 1), (n - 2, n - 1)] if n > 2 else []
        masked = [(x, np.ones(n)) for x in _mask_vectors(self.sized, ends)]
        left = []
        for x, y in [*masked, *(_random_vectors(rng, n, k) for k in range(_FEW_VECTORS))]:
            made = equal_sums(self.sized, x, y)
            self.reader.probes += 1
            self.alike &= made.codes == made.codes.flat[0]
            left.append(values_of(made).flat[0])
        if ends and n <= self.reader.masks.most:  # the pair of huge terms that absorbs fewer terms is deeper
            self._from_last = bool(left[1] > left[0])
        self.reader.lines = Lines(self.alike)


@lru_cache(maxsize=64)
def _numpy_plan(n: int) -> Plan:
    return NUMPY.plan(n)


def equal_sums(sized: SizedTarget, x: Array, y: Array) -> Source:
    """Return the codes of a product in which every element is the sum of x·y."""
    rows, *columns = sized.shape
    left = np.broadcast_to(x.astype(sized.carrier), (rows, sized.terms))
    right = y.astype(sized.carrier)
    return sized.multiply(left, np.broadcast_to(right[:, None], (sized.terms, *columns)) if columns else right)


def _mask_vectors(sized: SizedTarget, pairs: list[tuple[int, int]]) -> Iterator[Array]:
    masks = Masks(sized.format)
    for i, j in pairs:
        x = np.full(sized.terms, masks.unit)
        x[i], x[j] = masks.huge, -masks.huge
        yield x


def _fusing_vectors(sized: SizedTarget) -> Iterator[tuple[Array, Array]]:
    """Yield vectors x and y with only two nonzero products x·y, which are inexact and have opposite values.

    If a node adds these two products, the node's sum shows which product is fused. Random sums show this only in 3 % of
    cases.
    """
    n, factor = sized.terms, inexact_factor(sized.format)
    places = dict.fromkeys([(0, 1), (n - 2, n - 1), *((0, 1 << k) for k in range(1, _LANES)), (0, n // 2)])
    for i, j in places:
        if 0 <= i < j < n:
            x = np.zeros(n)
            x[i], x[j] = 16 * factor, -16 * factor
            yield x, np.full(n, 16 * (2 - factor))


def _random_vectors(rng: np.random.Generator, n: int, kind: int) -> tuple[Array, Array]:
    """Return two random vectors.

    Depending on `kind`, the products of their elements nearly cancel, or are largest at one place, or are mostly zero,
    or have none of these properties.
    """
    x, y = rng.standard_normal((2, n))
    places = np.arange(n) / n
    match kind % 6:
        case 0:  # products that nearly cancel, in random order
            half = n // 2
            order = rng.permutation(n)
            x[order[:half]], y[order[:half]] = -x[order[half : 2 * half]], y[order[half : 2 * half]]
            x *= 1 + rng.standard_normal(n) / 256
        case 1:
            x *= 2.0 ** (-10 * places)
        case 2:
            x *= 2.0 ** (-10 * places[::-1])
        case 3:  # few terms that are not zero
            x[rng.random(n) > 4 / n] = 0
        case 4:
            x *= 2.0 ** (-12 * np.abs(places - rng.random()))
        case _:
            pass
    return x, y


def _pairs(n: int) -> list[tuple[int, int]]:
    """Return pairs of terms whose masks distinguish usual orders, and some random pairs.

    >>> _pairs(3)
    [(0, 1), (0, 2), (1, 2)]
    """
    half = n // 2
    found = [(0, 1), (0, 2), (1, 2), (0, n - 1), (n - 2, n - 1), (0, half), (half - 1, half)]
    found += [(0, 1 << k) for k in range(2, n.bit_length())]
    rng = np.random.default_rng(754)
    found += [(int(i), int(j)) for i, j in np.sort(rng.integers(0, n, (_RANDOM_PAIRS, 2)), axis=1)]
    return sorted({(i, j) for i, j in found if 0 <= i < j < n})
