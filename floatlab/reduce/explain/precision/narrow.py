"""Replay sums in a narrow format bit for bit: in many orders, and in blocks whose sums are added in a wider format.

The error bound of sums in a narrow format is so large that most faults stay within it. Replays are therefore judged by
the bits of the result that they reproduce. If no replay fits, `narrow_sums` and `partial_sums` compare errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.record import Individual
from floatlab.reduce.explain.epilogue.given_bias import AROUND_BIAS
from floatlab.reduce.explain.faults.patterns import are_live, live_z
from floatlab.reduce.explain.faults.rivals import is_like_sums
from floatlab.reduce.explain.findings import NEAR, SINGLE
from floatlab.reduce.explain.grid import grid_of
from floatlab.reduce.explain.noise import half_ulp
from floatlab.reduce.explain.problem import ProductProblem, Side, View, middle, view_of
from floatlab.reduce.explain.residuals import share_of
from floatlab.reduce.explain.stages import PLAIN, Model, block_edges, sum_models
from floatlab.reduce.explain.ways import Way, names_between, own_accumulator
from floatlab.reduce.replay.candidates import Candidate, candidate_text
from floatlab.reduce.replay.evaluator import Evaluator
from floatlab.reduce.results.diagnosis_record import Evidence
from floatlab.reduce.simulate.narrow_sums import added_blocks, promoted, stored

_BLOCKS = (4, 8, 16, 32, 64, 128, 256)  # numbers of terms in a block that is added in a narrow format
_WHOLE = 1 << 25  # products with more multiply-adds than this are not replayed
_MOSTLY = 0.4  # a replay must reproduce at least this share of the sample
_TRIED = 3  # at most this many candidates are replayed on all elements
_LEAST = 4  # results with fewer nonzero elements than this are not evidence
_TIES = 0.1  # partial sums close to a tie may be rounded differently in at most this share of the elements
_TWICE = 0.01  # products that are rounded twice, first to binary32, may change at most this share of the elements
# Pairs: whether the sum of each block is rounded, and whether the running sum is rounded.
_ROUNDED = (True, True), (True, False), (False, True)
_HALF = 11  # a format is narrow if its precision is at most this many bits


class Replay(Individual):
    """A computation in a narrow format, with its whole result `values`.

    `name` and `evidence` describe the computation as a cause. The evidence holds pairs (name, text).
    """

    name: str
    evidence: Evidence
    values: Array
    format: Format
    ends: tuple[Array, Array] | None = None  # the smallest and the largest result that partial sums near ties may give

    def misses(self, values: Array) -> Array:
        """Return the mask of the elements in which this computation differs from the result `values`.

        A difference does not count if the element of `values` lies between the bounds `ends`, because a partial sum
        close to a tie may be rounded up or down. But if there are many such differences, all of them count.
        """
        missed: Array = self.values != values
        if self.ends is None:
            return missed
        moved = missed & (self.ends[0] <= values) & (values <= self.ends[1])
        return missed if share_of(moved) > _TIES else missed & ~moved

    @property
    def is_clear(self) -> Array:
        """The mask of the elements in which no partial sum is so close to a tie that it may be rounded either way."""
        clear: Array = np.ones_like(self.values, np.bool_) if self.ends is None else self.ends[0] == self.ends[1]
        return clear

    def wrong(self, values: Array, missed: Array) -> Array:
        """Return the mask `missed` if no order of addition can explain the missed elements; else an all-false mask.

        The mask `missed` is returned if both of these conditions hold. First, the computation rounds no partial sum,
        but only the complete sum: once before the bias is added, and once after it ("output-rounded"). Second, some
        missed element is outside the bounds `ends` by more than one ulp.
        """
        if self.ends is None or self.name != "output-rounded":
            return np.zeros_like(missed)
        low, high = self.ends
        ulp = 2 * half_ulp(np.maximum(np.abs(low), np.abs(high)), self.format)
        return missed & bool((missed & ((values < low - ulp) | (values > high + ulp))).any())


def best_replay(
    problem: ProductProblem, side: Side, usable: Array, wrong: Array, tick: Callable[[], None]
) -> tuple[Replay, Array] | None:
    """Return the computation in a narrow format that reproduces the most elements, and the mask of the other elements.

    Return None if no computation reproduces enough of a sample.
    """
    best: tuple[Replay, Array] | None = None
    exact = problem.noise(SINGLE).is_exact(problem.totals)  # in exact sums, no partial sum is close to a tie
    for replay in narrow_replays(problem, side, tick):
        differs = replay.values != side.values
        missed = usable & (replay.misses(side.values) | (exact & differs))
        # Numbers that may be rounded either way are no evidence. Most of the wrong elements must be exact.
        if (wrong & ~differs).sum() < (wrong & differs & ~missed).sum():
            missed = usable & differs
        if best is None or missed.sum() < best[1].sum():
            best = replay, missed
        if not missed.any():
            break
    return best


def narrow_replays(problem: ProductProblem, side: Side, tick: Callable[[], None]) -> Iterator[Replay]:
    """Yield computations in narrow formats that reproduce at least 40 % of a sample of the result.

    Nothing is yielded for very large products, or if both the inputs and the result have more than 11 significant bits.
    """
    widest = max(source.format.precision for source in problem.sources)
    into = side.rounded_to
    if min(widest, into.precision) > _HALF or problem.shape[0] * problem.shape[1] * problem.terms > _WHOLE:
        return
    grid = grid_of(problem, PLAIN, into, tick)
    grid.ways((side,))
    own = own_accumulator(into)
    ranked = [
        (share, candidate)
        for share, candidate in grid.shares.get(side.name, ())
        if share >= _MOSTLY and _is_narrow(candidate, own)
    ]
    whole = Evaluator(grid.whole_sides, into)
    for _, candidate in sorted(ranked, key=lambda each: -each[0])[:_TRIED]:
        tick()
        codes = whole.whole(candidate)
        values = np.asarray(decode(codes, into), np.float64).reshape(problem.shape)
        text = candidate_text(candidate, into)
        name = next(iter(names_between([], [Way(text, candidate)], own)[0]))
        narrowest = min(
            (format for each in candidate.adders for format in (each.accumulator, each.products)),
            key=lambda each: each.precision,
        )
        yield Replay(name, (("format", narrowest.name), ("computed as", text)), values, narrowest)
    yield from _by_way_of_single(problem, side, tick)
    if widest > _HALF:
        return
    yield from _in_blocks(problem, side, tick)
    if into.precision != SINGLE.precision:
        return
    rows, columns = grid.rows, grid.columns
    goal = side.values[np.ix_(rows, columns)]
    found = []
    for size, fma in ((size, fma) for size in _BLOCKS if size < problem.terms for fma in (False, True)):
        for format in dict.fromkeys(source.format for source in problem.sources):
            tick()
            made = promoted(problem.x[rows], problem.y[:, columns], format, size, fma)
            found.append((share_of(made == goal), size, fma, format))
    for share, size, fma, format in sorted(found, key=lambda each: -each[0])[:1]:
        if share >= _MOSTLY:
            text = f"{size} terms at a time{' with FMA' * fma}"
            known = ("format", format.name), ("added in binary32", text)
            yield Replay("accumulator", known, promoted(problem.x, problem.y, format, size, fma), format)


def _by_way_of_single(problem: ProductProblem, side: Side, tick: Callable[[], None]) -> Iterator[Replay]:
    """Yield replays whose partial sums are computed in binary32 and stored in a narrow format, as in NumPy's einsum."""
    rows, columns = problem.rows, problem.columns
    goal = side.values[np.ix_(rows, columns)]
    formats = dict.fromkeys(each.format for each in (*problem.sources, side) if each.format.precision <= _HALF)
    for format in formats:
        for order, step in (("serial", 1), ("reversed", -1)):
            tick()
            made = stored(problem.x[rows, ::step], problem.y[::step, columns], format)
            if share_of(made == goal) >= _MOSTLY:
                text = f"{order}, each sum made in binary32 and stored in {format.name}"
                made = stored(problem.x[:, ::step], problem.y[::step], format)
                yield Replay("accumulator", (("computed as", text),), made, format)


def _in_blocks(problem: ProductProblem, side: Side, tick: Callable[[], None]) -> Iterator[Replay]:
    """Yield the best replay in which the terms are added in blocks, if one fits.

    In these replays, the sum of each block, the running sum after each block, or both are rounded to the format of the
    result, which is narrow.
    """
    format = side.rounded_to
    if format.precision > _HALF:
        return
    rows, columns = problem.rows, problem.columns
    goal, found = side.values[np.ix_(rows, columns)], []
    bias = [((0, problem.terms - 1, problem.terms), AROUND_BIAS)] * (problem.has_bias and problem.terms > 2)
    for edges, words in (*bias, *block_edges(problem.terms)):
        for blocks, sums in _ROUNDED if words != AROUND_BIAS else _ROUNDED[:1]:
            tick()
            made = added_blocks(problem.x[rows], problem.y[:, columns], format, edges, blocks=blocks, sums=sums)
            found.append((share_of(made == goal), edges, words, blocks, sums))
    for share, edges, words, blocks, sums in sorted(found, key=lambda each: -each[0])[:1]:
        if share >= _MOSTLY:
            error = problem.noise(SINGLE).limit(problem.totals)
            made, low, high = (
                added_blocks(problem.x, problem.y, format, edges, blocks=blocks, sums=sums, error=each)
                for each in (0.0, -error, error)
            )
            name, known = "partials", [("format", format.name), ("blocks", words)]
            if words == AROUND_BIAS:
                name, known[1] = "output-rounded", ("rounding", words)
            elif not sums:
                known.append(("added in", "binary32"))
            elif not blocks:
                name, known[1] = "accumulator", ("stored after each block", words)
            yield Replay(name, tuple(known), made, format, (low, high))


def _is_narrow(candidate: Candidate, own: Format) -> bool:
    return any(min(each.accumulator.precision, each.products.precision) < own.precision for each in candidate.adders)


def has_exact_sums(problem: ProductProblem) -> bool:
    """Return whether binary32 sums of most elements are exact, so that the order of addition cannot cause errors."""
    exact = problem.noise(SINGLE).is_exact(problem.totals)
    return bool(share_of(exact[problem.totals.size > 0]) > 0.5) if problem.totals.size.any() else False


def narrow_formats(side: Side, usual: Format) -> list[Format]:
    """Return the 16-bit formats in which the sums of a result may have been computed."""
    kinds = [parse_format(name) for name in ("fp16", "bf16")]
    own = [each for each in kinds if each in (side.format, side.rounded_to)]
    return own or [each for each in kinds if side.rounded_to.precision <= each.precision < usual.precision]


def narrow_sums(problem: ProductProblem, side: Side, usual: Format) -> tuple[Array, Format] | None:
    """Return the errors of a result, in sigmas, and a narrower format in which the sums may have been computed.

    A sigma is the expected root mean square error of sums in the narrower format.

    A format is chosen only if it holds all numbers of the result, and if the errors are as expected for sums in this
    format: the median is at most 3 sigmas, no error exceeds its limit, and `is_like_sums` is true. Return None if there
    is no such format, or if most sums are exact in binary32.
    """
    if has_exact_sums(problem):
        return None
    accumulators = [parse_format(name) for name in ("fp32", "tf32", "fp16", "bf16")]
    for format in sorted(accumulators, key=lambda each: each != side.rounded_to):
        if format.precision >= usual.precision or side.rounded_to.precision > format.precision:
            continue
        view = view_of(problem, side, format)
        fit = view.fit()
        if live_z(view, fit) <= NEAR and not fit.wrong.any() and is_like_sums(problem, side, format):
            return fit.z, format
    return None


def partial_sums(
    problem: ProductProblem, side: Side, accumulators: tuple[Format, ...], tick: Callable[[], None]
) -> tuple[float, Model, Format] | None:
    """Find a model that explains a result: its products x·y or partial sums were rounded to a narrower format.

    Return None if no such model fits. Otherwise, return a tuple: the median error that the model leaves (in sigmas, the
    expected root mean square errors), the model, and the accumulator format.
    """
    alive = [np.asarray((side != 0).any(axis=axis)) for axis, side in ((1, problem.x), (0, problem.y))]
    rows, columns = (each[some[each]] for each, some in zip((problem.rows, problem.columns), alive, strict=True))
    rows, columns = rows[:: max(1, len(rows) // 20)], columns[:24]
    x, y, index = problem.x[rows], problem.y[:, columns], np.ix_(rows, columns)
    found = []
    for accumulator in accumulators:
        totals = problem.totals.take(rows, columns)
        usable = side.finite[index] & problem.known[index]
        view = View(totals, side.values[index], usable, problem.noise(accumulator), side.rounded_to)
        view.bias = None if problem.given_bias is None else problem.given_bias[index]
        view.usable = are_live(view)
        if (view.usable & (view.values != 0)).sum() < _LEAST:
            continue  # zeros are not evidence
        for model in sum_models(accumulator, problem.terms):
            tick()
            # A result in a narrower format was rounded at the end, not in the sums.
            if side.rounded_to.precision <= parse_format(dict(model.evidence)["format"]).precision:
                continue
            product = model.make(x, y, problem.x, problem.y)
            fit = view.fit(product)
            if middle(fit.z) > NEAR:
                continue
            # A partial sum close to a tie may be rounded up or down, which changes it by 1 ulp.
            step = 2.0 ** (1 - parse_format(dict(model.evidence)["format"]).precision)
            share = float(fit.wrong.sum() / max(1, view.usable.sum()))
            if model.name == "products" and share > _TWICE:
                continue
            off = np.abs(view.totals.error(view.values, product)) > 2 * step * view.totals.size
            if share <= _TIES and not (off & fit.wrong).any():
                found.append((share, middle(fit.z), model, accumulator))
    if not found:
        return None
    _, z, model, accumulator = min(found, key=lambda each: each[:2])
    if problem.shape[0] * problem.shape[1] * problem.terms <= 4 * _WHOLE:
        whole = view_of(problem, side, accumulator)
        fit = whole.fit(problem.whole(model))
        exact = whole.noise.is_exact(whole.totals) & fit.wrong
        share = float(fit.wrong.sum() / max(1, are_live(whole).sum()))
        if exact.any() or share > (_TWICE if model.name == "products" else _TIES):
            return None
    return z, model, accumulator
