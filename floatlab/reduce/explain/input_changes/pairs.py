"""Find pairs of changes, one of each input, that explain a result. A sample of the elements is compared first.

Every change is applied to sampled rows of x and columns of y. One multiplication gives the products of all pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from hashlib import sha256
from itertools import product as every_pair

import numpy as np

from floatlab.arrays.types import Array
from floatlab.formats import Format
from floatlab.record import Individual, Record
from floatlab.reduce.explain.input_changes.one_input import AS_IS, InputChange, changes_of
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.stages import Change, Known, Model
from floatlab.reduce.results.product_error import spread_indices

_ROWS, _ELEMENTS = 16, 256  # the sample has at least about this many rows and elements, if the product has as many
_WIDEST = 64  # the sample has at most this many columns
_LONG = 1024  # with more terms than this, the sample has half as many rows and columns
_MOSTLY = 0.5  # a pair explains at least this share of the sample
_FEW = 0.03  # shares of wrong elements that differ by less than this count as equal
_LISTED = 8  # at most this many pairs are returned
_EQUALS = 2  # at most this many changes that explain a result equally well are named
_ALIKE = 6  # at most this many changes with the same effect on the sample are compared on whole inputs
_ONE, _BOTH = 5, 10  # the weights of changing one input only, and of changing both in different ways
_ROOM = 1.5  # in the sample, errors may exceed their limits by this factor


class _Group(Individual):
    """Changes of an input that give the same numbers in the sampled rows or columns; `lines` has these numbers."""

    changes: list[InputChange]
    lines: Array


class ChangePair(Record):
    """A model that consists of two changes, one of each input.

    `accumulator` is the format of the sums, and `wrong` is the share of wrong elements in the sample.

    `alike` holds, for each input, all changes that give the same numbers in the sampled rows or columns.
    """

    model: Model
    accumulator: Format
    wrong: float
    changes: tuple[InputChange, InputChange]
    alike: tuple[list[InputChange], list[InputChange]]

    __hash__ = object.__hash__


def likely_pairs(
    problem: ProductProblem, side: Side, accumulators: tuple[Format, ...], tick: Callable[[], None]
) -> tuple[list[ChangePair], int]:
    """Return two values: a list of the pairs of changes that explain a sample best, and the number of pairs compared.

    The likeliest pair comes first. Each pair explains at least half of the sample, and at most eight pairs are
    returned. An accumulator is left out if, with this accumulator, the unchanged inputs explain as much of the sample
    as the best pair does. Pairs with the same effect on the sample count once.
    """
    rows, columns = _sample(problem)
    groups = [_grouped(*each, lines, tick) for each, lines in zip(_lined(problem), (rows, columns), strict=True)]
    index = np.ix_(rows, columns)
    totals = problem.totals.take(rows, columns)
    usable = side.finite[index] & problem.known[index] & (totals.size > 0)
    made = _products(groups, problem, rows, columns)
    found: list[tuple[tuple[float, ...], ChangePair]] = []
    if not usable.any():
        return [], 0
    stored = problem.scaled_output(side)
    half = None if stored is None else np.broadcast_to(stored[1], side.values.shape)[index]
    for accumulator in accumulators:
        view = View(totals, side.values[index], usable, problem.noise(accumulator), side.rounded_to, half)
        with np.errstate(all="ignore"):
            # Leave out `grain`: exact sums of the unchanged inputs do not show that those of changed inputs are exact.
            limit = _ROOM * view.noise.limit(totals.replace(grain=None), totals.product) + view.half
            error = np.abs(view.values[:, None, :] - made)
            wrong = (~(error <= limit[:, None, :]) & usable[:, None, :]).sum(axis=(1, 3)) / usable.sum()
            size = np.minimum(error / np.maximum(limit, 1e-300)[:, None, :], 4.0)
            rms = np.where(usable[:, None, :], size * size, 0.0).sum(axis=(1, 3))
        least = float(wrong.min())
        if least > _MOSTLY or wrong[0, 0] <= least:
            continue
        for i, j in np.argwhere(wrong <= min(least + _FEW, _MOSTLY)):
            alike = groups[0][i].changes, groups[1][j].changes
            weight, changes = min(_weighed(*alike), key=lambda each: each[0])
            key = float(wrong[i, j] > least), weight, float(rms[i, j])
            pair = ChangePair(
                model=_model(*changes, weight), accumulator=accumulator, wrong=float(wrong[i, j]), changes=changes,
                alike=alike,
            )  # fmt: skip
            found.append((key, pair))
    found.sort(key=lambda each: each[0])
    return [pair for _, pair in found[:_LISTED]], len(groups[0]) * len(groups[1])


def alike_pairs(pair: ChangePair, problem: ProductProblem) -> Iterator[ChangePair]:
    """Yield pairs that change the sample as `pair` does, but the whole inputs in another way, the simplest first."""
    groups, effects = [], []
    for one, alike, (matrix, _) in zip(pair.changes, pair.alike, _lined(problem), strict=True):
        others = sorted((each for each in alike if each is not one), key=lambda each: each.weight)
        groups.append([one, *others[:_ALIKE]])
        effects.append({each.evidence: _effect(each, matrix) for each in groups[-1]})
    seen = {tuple(made[each.evidence] for made, each in zip(effects, pair.changes, strict=True))}
    for weight, changes in sorted(_weighed(groups[0], groups[1]), key=lambda each: each[0]):
        effect = tuple(made[each.evidence] for made, each in zip(effects, changes, strict=True))
        if effect not in seen and all(effect):
            seen.add(effect)
            yield pair.replace(model=_model(*changes, weight), changes=changes)


def single_changes(pair: ChangePair) -> list[Model]:
    """Return two models, each with only one change of a pair; an empty list if the pair has only one change."""
    first, second = pair.changes
    if not (first.name and second.name):
        return []
    return [_model(first, AS_IS, first.weight), _model(AS_IS, second, second.weight)]


def _effect(change: InputChange, matrix: Array) -> bytes:
    """Return a digest of the numbers that a change gives. The digest is empty if a number is not finite."""
    with np.errstate(all="ignore"):
        numbers = np.ascontiguousarray(change.change(matrix, matrix, 1)) + 0.0
    return sha256(numbers.tobytes()).digest() if np.isfinite(numbers).all() else b""


def with_equals(pair: ChangePair, others: list[ChangePair], problem: ProductProblem) -> Model:
    """Return the model of a pair. Its evidence also names equally simple changes that explain the result equally well.

    Such changes either give the same numbers as a change of the pair, or belong to the pairs `others`.
    """
    words = [_text(*each.changes) for each in others if each.model.weight == pair.model.weight]
    first, second = pair.changes
    x, y = (_twins(one, *each) for one, each in zip(pair.changes, _lined(problem), strict=True))
    if first.evidence == second.evidence:
        words += [_text(each, each) for each in x if any(each.evidence == other.evidence for other in y)]
    else:
        words += [_text(each, second) for each in x] + [_text(first, each) for each in y]
    words = [each for each in dict.fromkeys(words) if each != _text(first, second)]
    if not words:
        return pair.model
    return pair.model.replace(evidence=(*pair.model.evidence, ("or", ", or ".join(words[:_EQUALS]))))


def _twins(one: InputChange, matrix: Array, format: Format) -> list[InputChange]:
    """Return the other changes of an input that are as simple as the given one and have the same effect."""
    goal = one.change(matrix, matrix, 1)
    others = (each for each in changes_of(matrix, format) if each.weight == one.weight)
    return [
        each
        for each in others
        if each.evidence != one.evidence and np.array_equal(each.change(matrix, matrix, 1), goal)
    ]


def _lined(problem: ProductProblem) -> list[tuple[Array, Format]]:
    """Return x and the transpose of y, each with its format. The terms lie along the rows of both."""
    x, y = problem.factors
    return [(x, problem.sources[0].format), (y.T, problem.sources[1].format)]


def _sample(problem: ProductProblem) -> tuple[Array, Array]:
    rows, columns = problem.shape
    least = _ROWS if problem.terms <= _LONG else _ROWS // 2
    elements = least * least
    m = min(rows, max(least, -(-elements // columns)), _WIDEST)
    n = min(columns, max(least, -(-elements // m)), _WIDEST)
    return spread_indices(rows, m), spread_indices(columns, n)


def _grouped(matrix: Array, format: Format, lines: Array, tick: Callable[[], None]) -> list[_Group]:
    """Return the changes of an input, grouped by the numbers that they give in the rows `lines`.

    Changes that give NaN or infinity in these rows are left out.
    """
    found: dict[bytes, _Group] = {}
    for change in changes_of(matrix, format):
        tick()
        with np.errstate(all="ignore"):
            made = np.ascontiguousarray(change.lines_of(matrix, lines)) + 0.0
        if np.isfinite(made).all():
            found.setdefault(made.tobytes(), _Group(changes=[], lines=made)).changes.append(change)
    return list(found.values())


def _products(groups: list[list[_Group]], problem: ProductProblem, rows: Array, columns: Array) -> Array:
    """Return the products of all pairs, in an array with these axes: change of x, row, change of y, column."""
    left, right = (np.concatenate([each.lines for each in some]) for some in groups)
    made: Array = (left @ right.T).reshape(len(groups[0]), len(rows), len(groups[1]), len(columns))
    if problem.has_bias:
        made += (problem.x[rows, -1:] * problem.y[-1:, columns])[:, None, :]
    return made


def _weighed(
    first: list[InputChange], second: list[InputChange]
) -> Iterator[tuple[int, tuple[InputChange, InputChange]]]:
    """Yield every pair of a change of the first input and a change of the second, as (complexity, pair).

    A pair of equal changes is simpler than a pair of different changes.
    """
    for one, other in every_pair(first, second):
        if one.evidence == other.evidence:
            yield 2 * one.weight, (one, other)
        else:
            yield 2 * (one.weight + other.weight) + (_BOTH if one.name and other.name else _ONE), (one, other)


def _model(first: InputChange, second: InputChange, weight: int) -> Model:
    changes = first.change, second.change
    names = first.name, second.name
    name = "inputs-quantized" if "inputs-quantized" in names else "inputs-rounded"
    evidence: Known
    if first.evidence == second.evidence:
        evidence = (*first.evidence, ("inputs", "both"))
    elif not all(names):
        evidence = (*first.evidence, *second.evidence, ("inputs", "x" if names[0] else "y"))
    else:
        evidence = (("x", first.text), ("y", second.text))
    return Model(
        name=name, stage="inputs", evidence=evidence, make=partial(_multiply, changes), weight=weight, changes=changes
    )  # fmt: skip


def _multiply(changes: tuple[Change, Change], x: Array, y: Array, all_x: Array, all_y: Array) -> Array:
    with np.errstate(all="ignore"):
        product: Array = changes[0](x, all_x, 1) @ changes[1](y, all_y, 0)
    return product


def _text(first: InputChange, second: InputChange) -> str:
    if first.evidence == second.evidence:
        return f"{first.text}, both inputs"
    if not first.name or not second.name:
        return f"{second.text}, the second input" if not first.name else f"{first.text}, the first input"
    return f"{first.text} and {second.text}"
