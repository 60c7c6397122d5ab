"""Find the computations that reproduce observed results: orders of addition, FMA, accumulators, hardware models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from floatlab.arrays.sources import Source, is_floating
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context, Datum
from floatlab.numbers.rounding import DEFAULT, AnyContext, as_context
from floatlab.presenter import Answering
from floatlab.record import Individual
from floatlab.reduce.explain.diagnosis import diagnose
from floatlab.reduce.plan.schedules import Schedule
from floatlab.reduce.replay.candidates import Candidate, InputRounding, list_candidates
from floatlab.reduce.replay.causes import (
    Cause,
    ExplanationPair,
    Path,
    Refutation,
    Verdict,
    pairs_of,
    refutations_of,
    verdict_of,
)
from floatlab.reduce.replay.evaluator import Evaluator, rounded_inputs
from floatlab.reduce.replay.explanations import Explanation, replay, replay_along
from floatlab.reduce.replay.observations import Observed, difference_of, format_of_result, read_observed
from floatlab.reduce.replay.tile_edges import TileEdge, find_tile_edge
from floatlab.reduce.results.diagnosis_record import Diagnosis
from floatlab.reduce.results.inputs import as_matrices, read_operands
from floatlab.reduce.reveal.known_orders import find_known_orders
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.matrix_units import Machine

__all__ = [
    "Attribution",
    "Cause",
    "Explanation",
    "ExplanationPair",
    "TileEdge",
    "Path",
    "Refutation",
    "Verdict",
    "attribute",
]

_INPUTS = ("tf32", "bf16", "fp16")  # formats to which matrix units round their inputs
_DIRECTIONS = ("RNE", "RNA", "RTZ")
# A candidate that fails on the sample may still reproduce most of a result. If the product has at most _SHORT
# multiply-adds, the best _WHOLE candidates that reproduce at least the share _NEAR of the sample are tried on the whole
# result.
_WHOLE, _NEAR, _SHORT = 4, 0.25, 1 << 26


class Attribution(Answering, Individual):
    """The candidate computations for each observed result. For two results, also pairs that reproduce both.

    `explanations` ranks the candidates for each result by how much of it they reproduce. `pairs` holds at most 256 of
    the `pair_count` pairs; pairs that differ in the fewest causes (order, FMA, …) come first. If neither FMA alone nor
    order alone explains two results of one dot product, `refutations` has a record for each of these two causes: how
    many pairs of candidates differ in this cause alone, and one such pair. No such pair gives both results. For each
    result, `tile_edges` has a `TileEdge` if one candidate reproduces most of the result, and another candidate the
    remaining rows or columns; otherwise None. `context` is the rounding of all candidates except hardware models.
    """

    shape: tuple[int, ...]
    format: Format
    explanations: tuple[tuple[Explanation, ...], ...]
    pairs: tuple[ExplanationPair, ...]
    pair_count: int
    candidate_count: int
    refutations: tuple[Refutation, ...] = ()
    tile_edges: tuple[TileEdge | None, ...] = ()
    context: Context = DEFAULT
    observed: tuple[str, ...] = ()  # for each result: its text if it was given as text, and otherwise its name
    product: tuple[Source, ...] = ()  # both factors and both results, if the results are arrays
    _ASKS = ".fitting or .verdict"

    def __repr__(self) -> str:
        """Show the verdict or the best explanation."""
        return f"Attribution({self.text})"

    @property
    def diagnosis(self) -> Diagnosis | None:
        """The diagnosis of why two arrays differ. It is None unless there are two factors and two arrays.

        Each access computes the diagnosis again.
        """
        return diagnose(*self.product) if self.product else None

    @property
    def fitting(self) -> tuple[tuple[Explanation, ...], ...]:
        """For each observed result, the candidates that reproduce all of its elements."""
        return tuple(tuple(each for each in ranked if each.fits) for ranked in self.explanations)

    @property
    def verdict(self) -> Verdict | None:
        """The verdict on the pair of candidates with the fewest causes; None if only one result was observed."""
        return self.verdicts[0] if self.verdicts else None

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """The distinct verdicts on the pairs with the fewest causes; () if only one result was observed."""
        if len(self.explanations) < 2:
            return ()
        least = [pair.causes for pair in self.pairs if len(pair.causes) == len(self.pairs[0].causes)]
        return tuple(dict.fromkeys(verdict_of(causes) for causes in least)) or (Verdict.NONE,)

    @property
    def text(self) -> str:
        """One line: the verdict on two results, or how much of one result the best candidate reproduces."""
        if self.verdict is not None:
            found = ", or ".join(each.value for each in self.verdicts)
            if not self.pairs:
                return f"{found} of {self.candidate_count:,} candidates"
            pair = self.pairs[0]
            then = "" if self.verdict is Verdict.SAME else f", then {pair.second.text}"
            return f"{found}: {pair.first.text}{then}"
        (ranked,) = self.explanations
        alike = sum(each.fits for each in ranked)
        if alike:
            return ranked[0].summary + f", and {alike - 1:,} other candidate{'s' * (alike > 2)}" * (alike > 1)
        if self.tile_edges and self.tile_edges[0] is not None:
            return self.tile_edges[0].text
        if not ranked[0].matching:
            return f"{Verdict.NONE.value} of {self.candidate_count:,} candidates"
        return f"{ranked[0].summary}, and no candidate gives all"


@in_default_mode
def attribute(
    a: object,
    b: object,
    observed: object,
    *,
    difference: object = None,
    schedules: Sequence[str | Schedule] | None = None,
    formats: Sequence[str | Format] | None = None,
    machines: Sequence[str | Machine] | None = None,
    targets: Sequence[object] | None = None,
    context: AnyContext = DEFAULT,
    started: Callable[[int, str], Callable[[int], None]] | None = None,
) -> Attribution:
    """Return the computations of a·b, or of the sum of a, that reproduce one or two observed results.

    Parameters
    ----------
    a, b : array_like
        Vectors or matrices, as for `dot` and `matmul`. If b is None, each row of a is summed.
    observed : array_like, Datum, str or tuple
        A result, or a tuple of two. Arrays and Datums are compared bit for bit (any NaN equals any NaN). Text is
        allowed for one dot product or sum; it matches every number that is printed as this text.
    difference : float, str or Datum, optional
        The difference of the two results, as a number or as printed text. Its sign is ignored.
    schedules : sequence of str or Schedule, optional
        The orders to try, each with and without FMA. The default is a set of common orders.
    formats : sequence of str or Format, optional
        The accumulator formats to try. By default these are the formats of the result and of the terms, wider formats,
        and the exact sum, rounded once.
    machines : sequence of str or Machine, optional
        The models of matrix units to try. The default is all models that accept the format of the factors.
    targets : sequence of str or callable, optional
        Functions whose orders of addition are found by `reveal` and tried, too. The default is functions of NumPy and
        of imported libraries. These are tried only if `schedules` is None, and only for results that no other candidate
        reproduces. With an empty list, neither orders of libraries nor rounded inputs are tried.
    context : Context or str
        The rounding of all candidates except hardware models. It can, for example, flush subnormal numbers. It cannot
        be stochastic.
    started : callable, optional
        Called with the number of candidates and the word "candidates". It must return a function, which is then called
        with 1 after each candidate.

    Returns
    -------
    Attribution
        The candidates, ranked for each result. For two results, also the pairs of candidates that reproduce both.

    Raises
    ------
    UnsupportedError
        If the shapes or formats of operands and results do not match, the options leave no candidates, or the rounding
        is stochastic.
    LiteralError
        If a text does not denote a number.
    PlanError, FormatError, MissingPartError
        In the same cases as for `dot` and `reveal`.

    Notes
    -----
    For large products, candidates are first compared on at most 1,024 elements. For products of more than 2^30
    multiply-adds, no other elements are compared.

    Examples
    --------
    >>> from floatlab.reduce.results.presets import PRESETS
    >>> found = attribute(*PRESETS["forum"].data, ("0.0559577", "0.0559577569366"), difference="8.19563865662e-08")
    >>> found.verdict.value, [(pair.first.text, pair.second.text) for pair in found.pairs][:2]
    ('explained by order and FMA together', [('reversed', 'serial with FMA'), ('pairwise', 'serial with FMA')])
    >>> found.pairs[1].paths
    (Path(order +16, FMA +6), Path(FMA +32, order -10))
    >>> found.refutations[0]
    Refutation(serial → serial with FMA: Path(FMA +6))
    """
    rules = as_context(context)
    if rules.rounding.is_stochastic:
        raise UnsupportedError("stochastic rounding cannot explain a result: each run draws other random bits")
    results = observed if isinstance(observed, tuple) else (observed,)
    names = ["observed"] if len(results) == 1 else ["the first result", "the second result"]
    if not 1 <= len(results) <= 2:
        raise UnsupportedError(f"observed must be one result or a tuple of two, not of {len(results)}")
    typed = [format_of_result(each, name) for each, name in zip(results, names, strict=False)]
    own = next((each for each in typed if each is not None), None)
    if any(each not in (None, own) for each in typed):
        raise UnsupportedError(f"the two results must have one format, not {' and '.join(x.name for x in typed if x)}")
    sides = {"a": a} if b is None else {"a": a, "b": b}
    has_format = any(_brings_format(side) for side in sides.values())
    sources, into = _sources(sides, None if has_format else own)
    into = into if own is None else own
    shape, evaluator = _evaluator(sources, into, rules)
    goals = [read_observed(each, name, into, shape) for each, name in zip(results, names, strict=False)]
    apart = difference_of(difference, len(goals), shape)
    tried = list_candidates(
        evaluator.terms, evaluator.formats, into, schedules, formats, machines, evaluator.size, rules
    )
    if not tried and not targets:
        raise UnsupportedError("there are no candidates: give schedules and formats, or machines, or targets")
    explanations = _explained(evaluator, tried, goals, started)
    is_wide = schedules is formats is machines is None and (targets is None or len(targets) > 0)
    if is_wide and not all(_is_explained_by_order(each) for each in explanations):
        explanations = _with_rounded_inputs(evaluator, explanations, goals)
    if targets is not None or (schedules is None and not all(_is_explained(each) for each in explanations)):
        kind = _kind([source.codes.ndim for source in sources])
        explanations = _with_known_orders(evaluator, explanations, goals, kind, targets)
    pairs, count = pairs_of(evaluator, explanations, apart) if len(goals) == 2 else ((), 0)
    alone = len(goals) == 2 and not shape and not (pairs and len(pairs[0].causes) < 2)
    refutations = refutations_of(evaluator, explanations, tried) if alone else ()
    most = max(len(each) for each in explanations)
    tile_edges = tuple(
        _tile_edge(evaluator, ranked, goal, tried) for ranked, goal in zip(explanations, goals, strict=True)
    )
    product = (*sources, *(each for each in goals if isinstance(each, Source))) if len(sources) == 2 else ()
    said = tuple(each if isinstance(each, str) else name for each, name in zip(results, names, strict=False))
    return Attribution(
        shape=shape,
        format=into,
        explanations=explanations,
        pairs=pairs,
        pair_count=count,
        candidate_count=most,
        refutations=refutations,
        tile_edges=tile_edges,
        context=rules,
        observed=said,
        product=product if len(product) == 4 else (),
    )


def _brings_format(x: object) -> bool:
    return any(isinstance(each, Datum) for each in x) if isinstance(x, list | tuple) else is_floating(x)


def _sources(sides: dict[str, object], format: Format | None) -> tuple[Sides, Format]:
    sources, settings = read_operands(sides, format=format)
    return sources, settings.format


def _evaluator(sources: Sides, into: Format, context: Context) -> tuple[tuple[int, ...], Evaluator]:
    """Return the shape of the result, and an evaluator to which the inputs are given as matrices."""
    if not all(source.codes.size for source in sources):
        shapes = " and ".join(str(source.codes.shape) for source in sources)
        raise UnsupportedError(f"shapes {shapes} have nothing to add, so no order exists")
    left = sources[0].codes
    if len(sources) > 1:
        x, y, shape = as_matrices(*sources)
        return shape, Evaluator((x, y), into, context)
    if not 1 <= left.ndim <= 2:
        raise UnsupportedError(f"a must be a row to sum or a matrix of rows, but it has shape {left.shape}")
    rows = Source(left.reshape(-1, left.shape[-1]), sources[0].format)
    return left.shape[:-1], Evaluator((rows,), into, context)


def _kind(dimensions: list[int]) -> str:
    """Return the kind of operation, as `reveal` names it, from the number of dimensions of each operand."""
    if len(dimensions) == 1:
        return "sum"
    return {2: "dot", 3: "matvec", 4: "matmul"}[sum(dimensions)]


def _tile_edge(
    evaluator: Evaluator, ranked: tuple[Explanation, ...], goal: Observed, tried: list[Candidate]
) -> TileEdge | None:
    best = next((each for each in ranked if each.codes is not None), None)
    if best is None or any(each.fits for each in ranked) or not isinstance(goal, Source):
        return None
    return find_tile_edge(evaluator, best, goal, dict.fromkeys([*tried, *(each.candidate for each in ranked)]))


def _is_explained(ranked: tuple[Explanation, ...]) -> bool:
    return bool(ranked) and ranked[0].fits


def _is_explained_by_order(ranked: tuple[Explanation, ...]) -> bool:
    """Return whether a candidate other than a hardware model reproduces a result."""
    return any(each.fits and not each.candidate.machines for each in ranked)


def _explained(
    evaluator: Evaluator,
    tried: list[Candidate],
    goals: list[Observed],
    started: Callable[[int, str], Callable[[int], None]] | None,
) -> tuple[tuple[Explanation, ...], ...]:
    """Return the candidates for each result, ranked by the share of its elements that they reproduce.

    All candidates are tried on a sample. Those that reproduce the sample are then tried on all elements. In a small
    product, the best of the other candidates are also tried on all elements.
    """
    told = None if started is None else started(len(tried), "candidates")
    for candidate in tried:
        evaluator.sampled(candidate)
        if told is not None:
            told(1)
    found = []
    for goal in goals:
        ranked = sorted((replay(evaluator, candidate, goal) for candidate in tried), key=lambda each: -each.share)
        part = [i for i, each in enumerate(ranked) if each.codes is None and each.share >= _NEAR][:_WHOLE]
        if evaluator.size * evaluator.terms <= _SHORT:
            for i in part:
                ranked[i] = replay(evaluator, ranked[i].candidate, goal, in_full=True)
        found.append(tuple(sorted(ranked, key=lambda each: -each.share)))
    return tuple(found)


def _with_rounded_inputs(
    evaluator: Evaluator, explanations: tuple[tuple[Explanation, ...], ...], goals: list[Observed]
) -> tuple[tuple[Explanation, ...], ...]:
    """Return the explanations; for results that no candidate gives, add candidates with rounded inputs that give them.

    Hardware models do not count as candidates here, because some of them round their inputs.
    """
    found = [list(ranked) for ranked in explanations]
    for inputs in _input_roundings(evaluator):
        for candidate in list_candidates(evaluator.terms, evaluator.formats, evaluator.into, None, [evaluator.into]):
            for ranked, before, goal in zip(found, explanations, goals, strict=True):
                if not _is_explained_by_order(before) and not candidate.machines:
                    made = replay(evaluator, candidate.replace(inputs=inputs), goal)
                    ranked += [made] if made.fits else []
    return tuple(tuple(sorted(ranked, key=lambda each: not each.fits)) for ranked in found)


def _input_roundings(evaluator: Evaluator) -> list[InputRounding]:
    """Return the roundings to narrower formats that change the inputs.

    If several rounding directions of a format give equal inputs, they are merged into one item. A rounding is left out
    if an earlier format gives the same inputs.
    """
    found: list[tuple[InputRounding, list[Array]]] = []
    plain = [side.codes for side in evaluator.sides]
    for name in _INPUTS:
        format = parse_format(name)
        if any(side.format.precision <= format.precision for side in evaluator.sides):
            continue
        for rounding in _DIRECTIONS:
            made = [side.codes for side in rounded_inputs(InputRounding(format, rounding), evaluator.sides)]
            same = [i for i, (_, codes) in enumerate(found) if all(map(np.array_equal, codes, made))]
            if same and found[same[0]][0].format == format:
                first, codes = found[same[0]]
                found[same[0]] = first.replace(alike=(*first.alike, rounding)), codes
            elif not same and not all(map(np.array_equal, plain, made)):
                found.append((InputRounding(format, rounding), made))
    return [each for each, _ in found]


def _with_known_orders(
    evaluator: Evaluator,
    explanations: tuple[tuple[Explanation, ...], ...],
    goals: list[Observed],
    kind: str,
    targets: Sequence[object] | None,
) -> tuple[tuple[Explanation, ...], ...]:
    """Return the explanations, with the orders of `targets` added.

    By default, the orders of libraries are tried until one fits. Each order is tried with several adders, until one
    adder reproduces every element.
    """
    found = [list(ranked) for ranked in explanations]
    for known_order in find_known_orders(kind, evaluator.terms, evaluator.into.name, targets):
        for ranked, goal in zip(found, goals, strict=True):
            if targets is None and any(each.fits for each in ranked):
                continue
            known = {each.candidate.plain for each in ranked}
            tried = replay_along(evaluator, known_order.schedule, goal, known_order.name, known_order.fused)
            ranked += [each for each in tried if each.candidate.plain not in known]
    return tuple(tuple(sorted(ranked, key=lambda each: -each.share)) for ranked in found)
