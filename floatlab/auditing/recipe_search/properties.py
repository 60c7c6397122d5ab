"""Describes a trial in words: the properties of its recipe, and how codes and scales are stored."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from floatlab.auditing.recipe_search.arrangements import Arrangement, Shape
from floatlab.auditing.recipe_search.matching import Agreement, Evidence, Trial
from floatlab.auditing.recipe_search.records import MatchedRecipe
from floatlab.formats import parse_format
from floatlab.formats.formulas import Formula
from floatlab.formats.recipes import parse_recipe
from floatlab.formats.scaling import ELEMENT, ScaleRule

_ROUNDINGS = {
    "RNE": "to nearest, ties to even", "RNA": "to nearest, ties away from zero", "RNZ": "to nearest, ties toward zero",
    "RND": "to nearest, ties to the lower number", "RTZ": "toward zero", "RTP": "toward +∞", "RTN": "toward −∞",
    "RAZ": "away from zero", "closest": "the first code with the least error",
}  # fmt: skip
_COMMON = ("tensor", "channel", "128", "128x128")  # shapes that are mentioned if they cut the same blocks
_UP = {"RTP": "up", "RTZ": "down"}


def matched(trial: Trial, tally: Agreement, evidence: Evidence) -> MatchedRecipe:
    """Return a trial and its tally as the record that users get."""
    candidate, shape = trial.candidate, evidence.shape
    recipe = candidate.recipe
    first_scale = tally.first_scale
    return MatchedRecipe(
        recipe=candidate.base,
        changes=candidate.changes,
        source=parse_recipe(candidate.base).rule.source,
        properties=tuple(_properties(trial, evidence)),
        layout=tuple(_layout(trial)),
        codes=tally.codes,
        codes_tried=tally.codes_tried,
        scales=tally.scales,
        scales_tried=tally.scales_tried,
        tensor_scale=tally.tensor,
        is_exact=tally.is_exact,
        first_code=_place(tally.first_code, shape),
        first_scale=None
        if first_scale is None
        else (first_scale,)
        if recipe.format.minimum
        else candidate.arrangement.place(first_scale, shape),
    )


def _place(index: int | None, shape: Shape) -> tuple[int, ...] | None:
    return None if index is None else tuple(int(n) for n in np.unravel_index(index, shape))


def _properties(trial: Trial, evidence: Evidence) -> list[tuple[str, str]]:
    candidate, own = trial.candidate, evidence.survey.format
    recipe, rule = candidate.recipe, candidate.recipe.rule
    values = candidate.takes or own.name
    found = [(line.name, str(line.formula)) for line in rule.steps()[:-1]]
    found.append(("arithmetic", _arithmetic(rule, values)))
    found.append(("scales", f"{recipe.format.scale.name}, rounded {_UP.get(rule.stored, _ROUNDINGS[rule.stored])}"))
    found.append(("quotient", f"{rule.steps()[-1].formula} ({_division(rule)})"))
    found.append(("elements", f"{recipe.format.element.name}, {_ROUNDINGS.get(rule.rounding, rule.rounding)}"))
    found.append(("beyond the largest", "elements wrap" if rule.wraps else "elements saturate"))
    if rule.choice is not None:
        factors = " or ".join(rule.choice.factors)
        found.append(("choice", f"grow = {factors}, by {_MEASURES[rule.choice.measure]} {rule.choice.error}"))
    return [*found, ("blocks", blocks_words(candidate.arrangement, evidence.shape))]


_MEASURES = {"square": "the sum of squares of", "absolute": "the sum of magnitudes of", "largest": "the largest"}


def _arithmetic(rule: ScaleRule, values: str) -> str:
    if rule.is_exact:
        return "exact; each result is rounded once"
    working = values if rule.working == "input" else parse_format(rule.working).name
    return f"{working}, amax of {values} values"


def _division(rule: ScaleRule) -> str:
    """Say whether elements are divided by the scale, or multiplied by its reciprocal."""
    operations = {operation for line in rule.steps() if line.level == ELEMENT for operation in _on_x(line.formula)}
    if "*" in operations:
        return "multiplication by the reciprocal"
    return "division" if "/" in operations else "no scale"


def _on_x(formula: Formula) -> Iterator[str]:
    """Yield "*" for a product and "/" for a quotient if the left operand contains x, which stands for the element."""
    for each in formula.arguments:
        yield from _on_x(each)
    if formula.name in ("*", "/") and "x" in formula.arguments[0].names():
        yield formula.name


def blocks_words(arrangement: Arrangement, shape: Shape) -> str:
    """Return the shape of the blocks and their axis in words.

    >>> blocks_words(Arrangement("16", 1), (4, 64)), blocks_words(Arrangement("tensor", 1), (4, 64))
    ('1×16 along axis 1', 'the whole tensor')
    """
    rows, columns = arrangement.size
    same = [each for each in arrangement.same if each in _COMMON]
    also = f" (here the same as {', '.join(same)})" if same else ""
    axis = f" along axis {arrangement.axis}"
    if arrangement.shape in ("tensor", ""):
        return ("the whole tensor" if arrangement.shape else "no scales") + also
    if arrangement.is_flat:
        return f"{columns} elements of the flattened tensor{also}"
    if columns is None:
        return f"{'each row' if arrangement.axis == len(shape) - 1 else 'all elements'}{axis}{also}"
    return f"{rows}×{columns}{axis if rows == 1 else ''}{also}"


def _layout(trial: Trial) -> list[str]:
    found = [f"codes: {trial.layout.words}"]
    if trial.reading is not None:
        order = trial.candidate.arrangement.order
        words = [f"scales: {trial.reading.kind}", *([order] if order else []), *([trial.form] if trial.form else [])]
        found.append(", ".join(words))
    return found
