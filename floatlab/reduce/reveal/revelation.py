"""Find out how a real implementation adds: its tree by probing, and its arithmetic by a replay on random data.

A replay simulates the revealed plan, with or without fused multiply-add, in the format of the terms or in a wider
accumulator. The arithmetic is claimed only if a replay reproduces all real results bit for bit. Otherwise, the share of
results that match is given.
"""

from __future__ import annotations

from contextlib import suppress
from math import prod
from time import perf_counter
from typing import overload

import numpy as np

from floatlab.arrays.conversion import encode
from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.fpmode import DefaultMode
from floatlab.presenter import Answering
from floatlab.record import Record
from floatlab.reduce.plan.matching import schedule_of
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import ExplicitTree, Schedule
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.replay.explanations import Explanation, agreement, replay, replay_along
from floatlab.reduce.reveal.classes import Prober
from floatlab.reduce.reveal.node_arithmetic import compensated_candidates
from floatlab.reduce.reveal.order_map import order_map
from floatlab.reduce.reveal.order_map_record import OrderMap
from floatlab.reduce.reveal.probing import NotASum
from floatlab.reduce.reveal.sized_target import LAYOUTS, SizedTarget, check_mode, values_of
from floatlab.reduce.reveal.targets import COLUMNS, ROWS, Target, target_of

_TRIALS = 32  # the default number of random sums


class Findings(Answering, Record):
    """The result of `examine`: a target's plan, and how replays of this plan compare with the target's results."""

    target: Target
    format: Format
    plan: Plan
    schedule: Schedule | None  # a schedule that gives the plan; None if none was found
    replays: tuple[Explanation, ...]  # sorted, the best first; for a product, they are replays of its first element
    agreeing: int | None  # the number of elements that the claim reproduces in every trial; None without a claim
    flushes: bool  # True if subnormal results become zero
    probes: int
    seconds: float
    _ASKS = ".claim"

    def __repr__(self) -> str:
        """Show the target and the order."""
        order = self.plan.text[:80] if self.schedule is None else self.schedule.text
        return f"Findings({self.target.name}: {self.plan.terms:,} terms, {order})"

    @property
    def elements(self) -> int:
        """The number of elements of the result: 1 for a sum."""
        return prod(self.target.shape)

    @property
    def claim(self) -> Explanation | None:
        """The replay that reproduces all results bit for bit, or None if no replay does."""
        best = self.replays[0] if self.replays else None
        return best if best is not None and best.fits else None


@overload
def reveal(
    target: object, n: int = ..., dtype: str = ..., *, kind: str | None = ..., device: str = ..., shape: None = ...
) -> Plan: ...
@overload
def reveal(
    target: object, *, dtype: str = ..., kind: str | None = ..., device: str = ..., shape: tuple[int, ...],
    layout: str = ...,
) -> OrderMap: ...  # fmt: skip
def reveal(
    target: object,
    n: int = 64,
    dtype: str = "float32",
    *,
    kind: str | None = None,
    device: str = "cpu",
    shape: tuple[int, ...] | None = None,
    layout: str = LAYOUTS[0],
) -> Plan | OrderMap:
    """Find the order in which a function adds n terms, by probing it. With `shape`, find the order of every element.

    The function is a sum, a dot product or a matrix product. For a matrix product without `shape`, the result is the
    plan of the first element of a product with 64 rows and columns.

    Parameters
    ----------
    target : callable or str
        A function, or its name: "numpy.sum", "torch.matmul", "module:function".
    n : int
        The number of terms, from 1 to 65,536.
    dtype : str
        The type of the terms: "float16", "float32", "float64" or "bfloat16".
    kind : {"sum", "dot", "matvec", "matmul"}, optional
        The operands of the function. By default, its name determines them. A function with an unknown name gets one
        vector ("sum"). With `shape`, the number of axes determines the operands: "matvec" for (M, K), else "matmul".
    device : str
        The device on which the function's library computes, such as "cuda:1".
    shape : tuple of int, optional
        A shape instead of `n`: rows, terms and columns (M, K, N) of a matrix product, (B, M, K, N) of a batch of
        products, or (M, K) of a matrix and a vector.
    layout : str
        With `shape`: the memory layout of the operands (see `order_map`).

    Returns
    -------
    Plan or OrderMap
        The order that the probes show. With `shape`, the order of every element, confirmed by a replay on random data.
        Without `shape`, there is no replay; `fl.examine` also replays the plan and says whether the replay gives the
        bits of the function.

    Raises
    ------
    PlanError
        If the function does not add its terms along a tree.
    UnsupportedError
        If the function cannot be called with these operands.
    MissingPartError
        If the function's library is not installed.

    Notes
    -----
    Probes contain huge terms that absorb other terms. A function that sorts its terms first therefore looks like one
    node over all terms.

    Examples
    --------
    >>> reveal(lambda x: ((x[0] + x[1]) + x[2]) + x[3], 4).text
    '(((0 1) 2) 3)'
    >>> reveal(lambda a, b: a[:, :1] * b[:1] + a[:, 1:] * b[1:], kind="matmul", shape=(3, 2, 2)).plan
    Plan((0 1))
    """
    if shape is not None:
        return order_map(target, shape, dtype, kind=kind, layout=layout, device=device)
    asked = target_of(target, kind, device)  # importing a library may change the mode
    with DefaultMode() as mode:
        return prober_of(asked, n, dtype, mode).plan()


def prober_of(target: Target, n: int, dtype: str, mode: DefaultMode | None = None) -> Prober:
    """Return a prober for the order in which a target adds n terms; raises what `reveal` raises.

    `mode` is a `DefaultMode` that the caller has entered. If it is given, the target computes in the floating-point
    mode that was set before. This earlier mode may flush subnormal numbers. Raises UnsupportedError if it does not
    round to nearest.
    """
    return Prober(SizedTarget(target, n, dtype, mode=check_mode(target, mode)))


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
    """Find the order in which a function adds, and test whether a replay on random data gives the function's bits.

    Parameters
    ----------
    target, n, dtype, kind, device
        As for `reveal`.
    seed : int
        The seed of the random numbers, which are normally distributed.
    trials : int
        The number of random sums.

    Returns
    -------
    Findings
        The plan, the schedule that gives it, the replays, and the claim. The claim is the replay that reproduces every
        result, or None.

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
        prober = prober_of(asked, n, dtype, mode)
        plan = prober.plan()
        data = _Trials(prober, seed, trials)
        found = data.replays(plan)
        if prober.shares and not found[0].fits:  # elements that no probe distinguished may still differ
            with suppress(NotASum):
                plan = prober.alone()
                found = data.replays(plan)
        agreeing = data.agreeing(found[0]) if found[0].fits else None
        return Findings(
            target=asked,
            format=prober.sized.format,
            plan=plan,
            schedule=schedule_of(plan),
            replays=tuple(found),
            agreeing=agreeing,
            flushes=_flushes(prober),
            probes=prober.probes,
            seconds=perf_counter() - began,
        )


class _Trials:
    """Random sums, and the results of a target for them.

    The random sums are numbered. In the product of trial t, row r computes the sum with the number (t + r) mod
    `trials`. Over all trials, a row therefore computes every sum once. `real` holds the first element of each product,
    and `whole` all elements. For a sum or dot product, both hold the results of all trials.
    """

    def __init__(self, prober: Prober, seed: int, trials: int) -> None:
        sized, target, self.trials, self.prober = prober.sized, prober.target, trials, prober
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal((trials, sized.terms)), rng.standard_normal(sized.terms)
        self.sides = [Source(np.asarray(encode(side, sized.format)), sized.format) for side in (x, y)]
        rows, other = (values_of(side).astype(sized.carrier) for side in self.sides)
        if sized.shape:
            y_side = np.broadcast_to(other[:, None], (len(other), COLUMNS)) if target.kind == "matmul" else other
            made = [sized.multiply(rows[self._order(t)], y_side) for t in (*range(trials), 0)]
            codes = np.stack([each.codes for each in made])
            steady = np.array_equal(codes[0], codes[-1]) and all(each.format == made[0].format for each in made)
            self.whole = Source(codes[:-1], made[0].format)
            self.real = Source(codes[:-1].reshape(trials, -1)[:, 0], made[0].format)
        else:
            self.real, again = (sized.sums(iter(rows.copy()), other) for _ in range(2))
            steady = np.array_equal(self.real.codes, again.codes)
            self.whole = self.real
        if not steady:
            raise NotASum(f"{target.name} gives two results for the same terms")
        first, column = self.sides[0], Source(self.sides[1].codes[:, None], sized.format)
        self.evaluator = Evaluator((first,) if target.kind == "sum" else (first, column), self.real.format)

    def _order(self, trial: int) -> Array:
        """Return the indices of the random sums that a trial's product computes, one per row."""
        return (trial + np.arange(ROWS)) % self.trials

    def replays(self, plan: Plan) -> list[Explanation]:
        """Replay the first element of each product along a plan, with every usual arithmetic.

        Return the replays, the best first.
        """
        found = [
            *replay_along(self.evaluator, ExplicitTree(plan), self.real, fused=lambda: self.prober.reader.fused(plan))
        ]
        if not found[-1].fits:
            found += [
                replay(self.evaluator, each, self.real) for each in compensated_candidates(self.real.format, plan)
            ]
        return sorted(found, key=lambda each: -each.matching)

    def agreeing(self, claim: Explanation) -> int:
        """Return the number of elements that a claim reproduces bit for bit in all trials.

        The caller has checked that the claim reproduces the first element of each trial.
        """
        shape = self.whole.codes.shape[1:]
        if not shape:
            return 1
        assert claim.codes is not None
        rows = np.stack([claim.codes[self._order(t)] for t in range(self.trials)])
        codes = np.broadcast_to(rows.reshape(rows.shape + (1,) * (len(shape) - 1)), self.whole.codes.shape)
        return int(agreement(codes, self.whole, claim.format).all(axis=0).sum())


def _flushes(prober: Prober) -> bool:
    """Return whether the target replaces subnormal results by zero."""
    rows = np.zeros((1, prober.sized.terms))
    rows[0, 0] = float(prober.sized.format.smallest)
    return bool(prober.reader.values(rows)[0] == 0)
