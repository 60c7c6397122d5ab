"""Reveal how a real implementation accumulates: its tree by probing, and the rest by replaying it on random data.

A claim is made only after its replay: simulated under the revealed plan, with or without fused multiply-adds and with a
wider accumulator or not, the results must be the real ones bit for bit. What does not match wholly is told as the share
that does.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.sources import Source, format_called
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.record import Record
from floatlab.reduce.bench import Bench
from floatlab.reduce.explanations import Explanation
from floatlab.reduce.matching import schedule_of
from floatlab.reduce.plan import Plan
from floatlab.reduce.probing import NotASum, plan_of
from floatlab.reduce.replays import replays
from floatlab.reduce.schedules import ByHand, Schedule
from floatlab.reduce.targets import Target, target_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]

MOST_TERMS = 1 << 16
_PROBES_A_TERM = 64  # on average; more, and the order is too irregular
_BATCH = 64
_TRIALS = 32


class Findings(Record):
    """What is known of a target: its plan, how it may be written, and what its replays came to."""

    target: Target
    format: Format
    plan: Plan
    schedule: Schedule | None  # the shortest expression found that equals the plan
    replays: tuple[Explanation, ...]  # the best first
    flushes: bool  # subnormal results become zero
    probes: int
    seconds: float

    @property
    def claim(self) -> Explanation | None:
        """The replay that all results equal; None where there is none, and then nothing is claimed."""
        best = self.replays[0] if self.replays else None
        return best if best is not None and best.fits else None


class _Masks:
    """Numbers that swamp, and units that are swamped, in a format; and how many units a result can count."""

    def __init__(self, format: Format) -> None:
        if format.emax >= 100:
            self.huge, self.unit = 2.0 ** (100 if format.emax < 1000 else 500), 1.0
        else:  # binary16: its whole range, so that binary32 accumulators are swamped, too
            self.huge, self.unit = 2.0**format.emax, 2.0**format.qmin
        self.most = 1 << format.precision


class _Prober:
    """Asks a target how many terms meet in which subtree."""

    def __init__(self, target: Target, terms: int, dtype: Any, format: Format) -> None:
        self.target, self.terms, self.dtype, self.format = target, terms, dtype, format
        self.masks, self.probes = _Masks(format), 0
        self.ones = np.ones(terms)
        # No more units at a time than the result can count.
        self.parts = [slice(low, low + self.masks.most) for low in range(0, terms, self.masks.most)]

    def _counts(self, rows: Array) -> Array:
        """Return how many units the sums of rows are; -1 for what is no number of units."""
        found = self.target.sums(rows, self.ones, self.dtype)
        units = _values(found) / self.masks.unit
        whole = np.isfinite(units) & (units == np.rint(units)) & (units >= 0) & (units <= self.terms)
        return np.where(whole, units, -1).astype(np.int64)

    def check(self) -> None:
        """Raise NotASum for a target that does not even count its units, and twice the same."""
        rows = np.zeros((2 * len(self.parts), self.terms))
        for k, part in enumerate(self.parts):
            rows[2 * k : 2 * k + 2, part] = self.masks.unit
        counts = self._counts(rows)
        if (counts[::2] != counts[1::2]).any():
            raise NotASum(f"{self.target.name} gives two results for the same terms")
        wanted = [len(range(*part.indices(self.terms))) for part in self.parts]
        if counts[::2].tolist() != wanted:
            raise NotASum(f"{self.target.name} is no sum of its terms: {self.terms} ones do not make {self.terms}")

    def meetings(self, i: int, others: Array) -> Array:
        """Return the size of the subtree where term i meets each of others."""
        found = np.empty(len(others), np.int64)
        for low in range(0, len(others), _BATCH):
            some = others[low : low + _BATCH]
            self.probes += len(some)
            outside = np.zeros(len(some), np.int64)
            for part in self.parts:
                rows = np.zeros((len(some), self.terms))
                rows[:, part] = self.masks.unit
                rows[:, i] = self.masks.huge
                rows[np.arange(len(some)), some] = -self.masks.huge
                counts = self._counts(rows)
                if (counts < 0).any():
                    j = int(some[counts < 0][0])
                    raise NotASum(f"a huge number at term {i} and its opposite at {j} leave no count of ones")
                outside += counts
            found[low : low + _BATCH] = self.terms - outside
        return found


def _values(source: Source) -> Array:
    """Return the values of codes as float64."""
    return decode(source.codes, source.format, np.float64)


def reveal(target: Any, n: int = 64, dtype: str = "float32", *, kind: str | None = None, device: str = "cpu") -> Plan:
    """Return the plan by which a function adds n terms: a sum, dot product, or (first element of a) matrix product.

    `target` is a function, or a name: `numpy.sum`, `torch.matmul`, `module:function`; `kind` (sum, dot, matvec, matmul)
    says what it takes where its name does not. Raises PlanError for what is no sum along a tree, UnsupportedError for
    what cannot be called so, MissingPartError for a library that is absent. The plan is what masks see: a sum that puts
    its terms in order first, say, looks like one node of them all; `examine` replays it on random data, too.

    >>> reveal(lambda x: ((x[0] + x[1]) + x[2]) + x[3], 4).text
    '(((0 1) 2) 3)'
    """
    return _found(target_of(target, kind, device), n, dtype)[0]


def _found(target: Target, n: int, dtype: str) -> tuple[Plan, _Prober]:
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MOST_TERMS:
        raise UnsupportedError(f"n is a number of terms from 1 to {MOST_TERMS:,}, not {n!r}")
    if not isinstance(dtype, str):
        raise UnsupportedError(f"dtype is a name such as float32, not {type(dtype).__name__}")
    own = target.dtype(dtype)
    format = format_called(str(own).rpartition(".")[2])
    assert format is not None
    prober = _Prober(target, n, own, format)
    prober.check()
    try:
        return plan_of(prober.meetings, n, _PROBES_A_TERM * n + 1000), prober
    except NotASum as trouble:
        raise NotASum(f"{target.name} is no sum along a tree: {trouble}") from None


def examine(
    target: Any,
    n: int = 64,
    dtype: str = "float32",
    *,
    kind: str | None = None,
    device: str = "cpu",
    seed: int = 1,
    trials: int = _TRIALS,
) -> Findings:
    """Return all that can be found out about a function: its plan, and what its replays on random data say.

    Arguments and errors are `reveal`'s; random data are numbers of a normal distribution, seeded.
    """
    began = perf_counter()
    asked = target_of(target, kind, device)
    plan, prober = _found(asked, n, dtype)
    found = _replayed(asked, plan, prober, seed, trials)
    return Findings(
        asked, prober.format, plan, schedule_of(plan), tuple(found), _flushes(asked, prober), prober.probes,
        perf_counter() - began,
    )  # fmt: skip


def _replayed(target: Target, plan: Plan, prober: _Prober, seed: int, trials: int) -> list[Explanation]:
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((trials, plan.terms)), rng.standard_normal(plan.terms)
    sides = [np.asarray(encode(side, prober.format)) for side in (x, y)]
    rows, factors = (_values(Source(side, prober.format)) for side in sides)
    real, again = (target.sums(rows, factors, prober.dtype) for _ in range(2))
    if not np.array_equal(real.codes, again.codes):
        raise NotASum(f"{target.name} gives two results for the same terms")
    column = None if target.kind == "sum" else Source(sides[1][:, None], prober.format)
    bench = Bench(Source(sides[0], prober.format), column, real.format)
    return sorted(replays(bench, ByHand(plan), real), key=lambda each: -each.matching)


def _flushes(target: Target, prober: _Prober) -> bool:
    """Say whether subnormal results become zero."""
    least = float(prober.format.smallest)
    rows = np.zeros((1, prober.terms))
    rows[0, 0] = least
    return bool(_values(target.sums(rows, prober.ones, prober.dtype))[0] == 0)
