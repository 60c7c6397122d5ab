"""How a real implementation accumulates: its tree by probing, and its arithmetic by replaying it on random data.

A claim is made only after its replay: simulated along the revealed plan, with or without fused multiply-add and in this
accumulator or a wider one, all results must be the real ones bit for bit. Otherwise the share that matches is stated.
"""

from __future__ import annotations

from contextlib import suppress
from math import prod
from time import perf_counter

import numpy as np

from floatlab.arrays.conversion import encode
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.formats.catalog import format_called
from floatlab.fpmode import DefaultMode, rounds_to_nearest
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.orders import ByHand, Schedule
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.explanations import Explanation, agreement, replay_along
from floatlab.reduce.reveal.classes import Prober, values
from floatlab.reduce.reveal.probing import NotASum
from floatlab.reduce.reveal.targets import ROWS, Target, target_of

MOST_TERMS = 1 << 16
_TRIALS = 32


class Findings(Answering, Record):
    """What `examine` found out about a target: its plan, and how its replays compare with its results."""

    target: Target
    format: Format
    plan: Plan
    schedule: Schedule | None  # the shortest expression found that equals the plan
    replays: tuple[Explanation, ...]  # the best first; of a product of its first element
    agreeing: int | None  # elements of the result that the claim gives in every trial; None without a claim
    flushes: bool  # subnormal results become zero
    probes: int
    seconds: float
    _ASKS = ".claim"

    def __repr__(self) -> str:
        """Show the target and the order."""
        order = self.plan.text[:80] if self.schedule is None else self.schedule.text
        return f"Findings({self.target.name}: {self.plan.terms:,} terms, {order})"

    @property
    def elements(self) -> int:
        """How many elements the result has that is asked for: 1 for a sum."""
        return prod(self.target.shape)

    @property
    def claim(self) -> Explanation | None:
        """The replay that gives all results; None if no replay does, and then nothing is claimed."""
        best = self.replays[0] if self.replays else None
        return best if best is not None and best.fits else None


def reveal(
    target: object, n: int = 64, dtype: str = "float32", *, kind: str | None = None, device: str = "cpu"
) -> Plan:
    """Return the plan in which a function adds n terms, found by probing it.

    The function is a sum, a dot product or a matrix product; of a matrix product, the plan is the first element's.

    Parameters
    ----------
    target : callable or str
        A function, or its name: "numpy.sum", "torch.matmul", "module:function".
    n : int
        The number of terms, from 1 to 65,536.
    dtype : str
        The type of the terms: "float16", "float32", "float64" or "bfloat16".
    kind : {"sum", "dot", "matvec", "matmul"}, optional
        What the function takes, if its name does not tell.
    device : str
        The device on which its library computes, such as "cuda:1".

    Returns
    -------
    Plan
        The order that the probes see. `fl.examine` returns it with the verdict of a replay on random data: whether
        a simulation along this plan gives the bits of the function.

    Raises
    ------
    PlanError
        If the function is not a sum along a tree.
    UnsupportedError
        If the function cannot be called so.
    MissingPartError
        If its library is not installed.

    Notes
    -----
    Probes are terms that swamp others, so a function that first sorts its terms looks like one node of them all.

    Examples
    --------
    >>> reveal(lambda x: ((x[0] + x[1]) + x[2]) + x[3], 4).text
    '(((0 1) 2) 3)'
    """
    asked = target_of(target, kind, device)  # importing a library may change the mode
    with DefaultMode() as mode:
        return prober_of(_outside(asked, mode), n, dtype).plan()


def _outside(target: Target, mode: DefaultMode) -> Target:
    """Return the target as it computes in the caller's own mode: it may flush subnormals there, which is told.

    Raises UnsupportedError for a mode in which nothing is absorbed by a huge number.
    """
    if not mode.outside(rounds_to_nearest)():
        raise UnsupportedError(
            f"{target.name} is probed with numbers that absorb others, and this thread does not round to nearest: "
            "fesetround(FE_TONEAREST)"
        )
    return target.replace(call=mode.outside(target.call))


def prober_of(target: Target, n: int, dtype: str) -> Prober:
    """Return what asks a target how it adds n terms; raises what `reveal` raises."""
    if not isinstance(n, int) or isinstance(n, bool) or not 1 <= n <= MOST_TERMS:
        raise UnsupportedError(f"n is a number of terms from 1 to {MOST_TERMS:,}, not {n!r}")
    if not isinstance(dtype, str):
        raise UnsupportedError(f"dtype is a name such as float32, not {type(dtype).__name__}")
    own = target.dtype(dtype)
    format = format_called(str(own).rpartition(".")[2])
    assert format is not None
    return Prober(target, n, own, format)


def examine(
    target: object,
    n: int = 64,
    dtype: str = "float32",
    *,
    kind: str | None = None,
    device: str = "cpu",
    seed: int = 1,
    trials: int = _TRIALS,
) -> Findings:
    """Return the plan in which a function adds, and whether replays along it on random data give its bits.

    Parameters
    ----------
    target, n, dtype, kind, device
        As for `reveal`.
    seed : int
        The seed of the random data, which are normally distributed.
    trials : int
        The number of random sums.

    Returns
    -------
    Findings
        The plan, the schedule that gives it, the replays, and the claim: the replay that equals every result, or None.

    Raises
    ------
    PlanError, UnsupportedError, MissingPartError
        As `reveal`.

    Examples
    --------
    >>> found = examine(lambda x: ((x[0] + x[1]) + x[2]) + x[3], 4)
    >>> found.schedule.text, found.claim
    ('serial', Explanation((((0 1) 2) 3): 32 of 32))
    """
    began = perf_counter()
    asked = target_of(target, kind, device)
    with DefaultMode() as mode:
        prober = prober_of(_outside(asked, mode), n, dtype)
        plan = prober.plan()
        data = _Trials(prober, seed, trials)
        found = data.replays(plan)
        if prober.shares and not found[0].fits:  # elements that answered alike may still differ
            with suppress(NotASum):
                plan = prober.alone()
                found = data.replays(plan)
        agreeing = data.agreeing(found[0]) if found[0].fits else None
        return Findings(
            target=asked,
            format=prober.format,
            plan=plan,
            schedule=schedule_of(plan),
            replays=tuple(found),
            agreeing=agreeing,
            flushes=_flushes(prober),
            probes=prober.probes,
            seconds=perf_counter() - began,
        )


class _Trials:
    """Random sums and a target's results for them: the first element of each product, and the whole product.

    Trial t has sum t in the first row and those that follow it in the others, so that every element meets all sums.
    """

    def __init__(self, prober: Prober, seed: int, trials: int) -> None:
        target, self.trials, self.prober = prober.target, trials, prober
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((trials, prober.terms)), rng.standard_normal(prober.terms)
        self.sides = [Source(np.asarray(encode(side, prober.format)), prober.format) for side in (x, y)]
        rows, factors = (values(side) for side in self.sides)
        if target.shape:
            made = [target.product(rows[self._order(t)], factors, prober.dtype) for t in (*range(trials), 0)]
            codes = np.stack([each.codes for each in made])
            steady = np.array_equal(codes[0], codes[-1])
            self.whole = Source(codes[:-1], made[0].format)
            self.real = Source(codes[:-1].reshape(trials, -1)[:, 0], made[0].format)
        else:
            self.real, again = (target.sums(rows, factors, prober.dtype) for _ in range(2))
            steady = np.array_equal(self.real.codes, again.codes)
            self.whole = self.real
        if not steady:
            raise NotASum(f"{target.name} gives two results for the same terms")
        first, column = self.sides[0], Source(self.sides[1].codes[:, None], prober.format)
        self.evaluator = Evaluator((first,) if target.kind == "sum" else (first, column), self.real.format)

    def _order(self, trial: int) -> Array:
        """Return which sums stand in the rows of a product."""
        return (trial + np.arange(ROWS)) % self.trials

    def replays(self, plan: Plan) -> list[Explanation]:
        """Return how many of the first elements each way along a plan gives, the best way first."""
        found = replay_along(self.evaluator, ByHand(plan), self.real, fused=lambda: self.prober.fused(plan))
        return sorted(found, key=lambda each: -each.matching)

    def agreeing(self, claim: Explanation) -> int:
        """Return how many elements a way gives that gives all first elements: each in all trials."""
        shape = self.whole.codes.shape[1:]
        if not shape:
            return 1
        assert claim.codes is not None
        rows = np.stack([claim.codes[self._order(t)] for t in range(self.trials)])
        codes = np.broadcast_to(rows.reshape(rows.shape + (1,) * (len(shape) - 1)), self.whole.codes.shape)
        return int(agreement(codes, self.whole, claim.format).all(axis=0).sum())


def _flushes(prober: Prober) -> bool:
    """Say whether subnormal results become zero."""
    rows = np.zeros((1, prober.terms))
    rows[0, 0] = float(prober.format.smallest)
    return bool(prober.values(rows)[0] == 0)
