"""Finds the first element to which two recipes, or a recipe and the stored tensor, give different codes or scales.

Then shows how each recipe computes this element.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from floatlab.arith.blocks import quantize_blocks
from floatlab.arith.blocks.formulas import Value, value_of
from floatlab.arith.blocks.records import BlockDerivation
from floatlab.arrays.codec import decode_array
from floatlab.arrays.types import Array
from floatlab.auditing.recipe_search.arrangements import Arrangement, Shape
from floatlab.auditing.recipe_search.encoding import Encoded, Part, RecipeCandidate, Survey, magnitudes, taken
from floatlab.auditing.recipe_search.matching import (
    Evidence,
    Trial,
    canonical,
    comparable_parts,
    stored_as,
    stored_scales,
)
from floatlab.auditing.recipe_search.records import DerivedElement, RecipeStep, TellingElement
from floatlab.auditing.recipe_search.trials import encoded_by
from floatlab.errors import FloatlabError
from floatlab.numbers import Datum
from floatlab.numbers.exact import Ratio


def telling_element(one: Trial, other: Trial | None, evidence: Evidence) -> TellingElement | None:
    """Return the first element that the recipes of two trials quantise differently.

    Without `other`, return the first element for which the recipe of `one` does not give the stored code or scale.
    Return None if the compared parts have no such element, or if a recipe cannot quantise these parts.
    """
    arrangement = one.candidate.arrangement
    for part in comparable_parts(one.candidate, evidence):
        encoded = encoded_by(one.candidate, evidence, part)
        if encoded is None:
            return None
        if other is None:
            at = _differs_from_stored(one, encoded, part, evidence)
        else:
            rival = encoded_by(other.candidate, evidence, part)
            if rival is None:
                return None
            same = other.candidate.arrangement.grid(part.codes.shape) == arrangement.grid(part.codes.shape)
            at = first_difference(one.candidate, encoded, rival, part.codes.shape, same)
        if at is not None:
            pair = (one.candidate,) if other is None else (one.candidate, other.candidate)
            return telling_record(part, at, pair, evidence.survey, one, evidence)
    return None


def first_difference(
    candidate: RecipeCandidate, one: Encoded, other: Encoded, shape: Shape, same_grid: bool
) -> int | None:
    """Return the index of the first element whose codes in `one` and `other` differ, or None if there is none.

    If `same_grid` is true, an element whose scales in `one` and `other` differ also counts.
    """
    table = canonical(candidate.recipe.format.element)
    differs = (table[one.codes] != table[np.minimum(other.codes, len(table) - 1)]).reshape(-1)
    found = [int(differs.argmax())] if differs.any() else []
    if same_grid and not candidate.recipe.format.minimum and one.scales.shape == other.scales.shape:
        scales = (one.scales != other.scales) & ~(np.isnan(one.scales) & np.isnan(other.scales))
        if scales.any():
            places = _elements_of(candidate.arrangement, int(scales.argmax()), shape)
            inside = [at for at in places.tolist() if differs[at]]
            found.append(inside[0] if inside else int(places[0]))
    return min(found, default=None)


def _differs_from_stored(trial: Trial, encoded: Encoded, part: Part, evidence: Evidence) -> int | None:
    stored = trial.layout.read(part.first, part.codes.size)
    theirs = Encoded(stored.reshape(part.codes.shape), encoded.scales, None)
    mine = encoded
    if trial.reading is not None:
        stored_here = stored_scales(trial.reading, trial.candidate.arrangement, evidence.shape, part)
        theirs = Encoded(theirs.codes, stored_here, None)
        mine = Encoded(encoded.codes, stored_as(encoded.scales, trial.reading.kind, trial.form), None)
    return first_difference(trial.candidate, mine, theirs, part.codes.shape, True)


def _elements_of(arrangement: Arrangement, scale: int, shape: Shape) -> Array:
    """Return the indices of the elements of one block. `scale` is the index of its scale in the flattened grid."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    rows, columns = arrangement.size
    if rows is None:
        return index.reshape(-1)
    if arrangement.is_flat:
        assert columns is not None
        return index.reshape(-1)[scale * columns : (scale + 1) * columns]
    turned = np.moveaxis(index, arrangement.axis, -1)
    place = [int(n) for n in np.unravel_index(scale, arrangement.grid(shape))]
    wide = columns or turned.shape[-1]
    last = slice(place[-1] * wide, (place[-1] + 1) * wide)
    if turned.ndim == 1:
        return turned[last]
    high = slice(place[-2] * rows, (place[-2] + 1) * rows)
    matrix: Array = turned[tuple(place[:-2])]
    found: Array = matrix[high, last].reshape(-1)
    return found


def _block_with(arrangement: Arrangement, at: int, shape: Shape) -> Array:
    """Return the indices of all elements of the block that contains the element `at`."""
    rows, columns = arrangement.size
    if rows is None:
        return np.arange(int(np.prod(shape)))
    if arrangement.is_flat:
        assert columns is not None
        return _elements_of(arrangement, at // columns, shape)
    place = [int(n) for n in np.unravel_index(at, shape)]
    turned = [*place[: arrangement.axis], *place[arrangement.axis + 1 :], place[arrangement.axis]]
    turned[-1] //= columns or shape[arrangement.axis]
    if len(turned) > 1:
        turned[-2] //= rows
    grid = arrangement.grid(shape)
    return _elements_of(arrangement, int(np.ravel_multi_index(turned, grid)), shape)


def telling_record(
    part: Part,
    at: int,
    pair: tuple[RecipeCandidate, ...],
    survey: Survey,
    trial: Trial | None,
    evidence: Evidence | None,
) -> TellingElement:
    """Return the record of an element, with the steps in which each candidate of `pair` quantises this element.

    `at` is the index of the element in the flattened part. If `trial` is None, the code and the scale in the record are
    None.
    """
    flat, shape = part.codes.reshape(-1), part.codes.shape
    places = _block_with(pair[0].arrangement, at, shape)
    largest = int(magnitudes(flat[places], survey.format).max())
    code, scale = None, None
    if trial is not None and evidence is not None:
        code = int(trial.layout.read(part.first + at, 1)[0])
        if trial.reading is not None:
            here = stored_scales(trial.reading, trial.candidate.arrangement, evidence.shape, part)
            number = _scale_number(pair[0].arrangement, at, shape)
            if number < len(here) and not pair[0].recipe.format.minimum:
                scale = exact(float(here[number]))
    return TellingElement(
        index=tuple(int(n) for n in np.unravel_index(part.first + at, survey.shape)),
        number=_number(int(flat[at]), survey),
        largest=_number(largest, survey),
        code=code,
        scale=scale,
        derivations=tuple(derived(each, part, at, survey) for each in pair),
    )


def _scale_number(arrangement: Arrangement, at: int, shape: Shape) -> int:
    rows, columns = arrangement.size
    if rows is None:
        return 0
    if arrangement.is_flat:
        return at // (columns or 1)
    place = [int(n) for n in np.unravel_index(at, shape)]
    turned = [*place[: arrangement.axis], *place[arrangement.axis + 1 :], place[arrangement.axis]]
    turned[-1] //= columns or shape[arrangement.axis]
    if len(turned) > 1:
        turned[-2] //= rows
    return int(np.ravel_multi_index(turned, arrangement.grid(shape)))


def derived(candidate: RecipeCandidate, part: Part, at: int, survey: Survey) -> DerivedElement:
    """Return how a candidate computes the element with this index in a part.

    Scales depend only on the largest elements. Therefore, only these elements are used: this one, the largest of its
    block and, if there is a scale of the tensor, the largest of the tensor. If the rule chooses between scales, or
    searches for them, the whole block is used. If the candidate cannot quantise these elements, the result has no
    steps.
    """
    flat = part.codes.reshape(-1)
    places = _block_with(candidate.arrangement, at, part.codes.shape)
    rule, fmt = candidate.recipe.rule, candidate.recipe.format
    values = flat[places]
    largest = values[magnitudes(values, survey.format).argmax()]
    if candidate.arrangement.size[0] is None:
        largest = flat.dtype.type(survey.amax)
    whole = _amax_of_tensor(candidate, part, at, survey)
    pair = np.array([[largest, flat[at], whole, 0]], flat.dtype)
    if fmt.tensor is None or fmt.superblock is not None or candidate.given is not None:
        pair = pair[:, :2]
    try:
        if fmt.superblock is not None or fmt.minimum:
            number, position = divmod(int(np.flatnonzero(places == at)[0]), fmt.block or len(places))
            return _from((_derivation(values[None, :], candidate, survey)[number], position), candidate)
        small = candidate.recipe.replace(format=fmt.replace(rows=1, block=2, flat=False))
        found = _derivation(pair, candidate.replace(recipe=small), survey)[0]
        if rule.choice is None:
            return _from((found, 1), candidate)
        matrix = values.reshape(fmt.rows or 1, -1)
        if pair.shape[1] > 2:
            second = np.zeros_like(matrix)
            second[0, 0] = whole
            matrix = np.concatenate([matrix, second], axis=1)
        return _from((_derivation(matrix, candidate, survey)[0], int(np.flatnonzero(places == at)[0])), candidate)
    except FloatlabError:
        return DerivedElement(candidate.name, (), None, 0)


def _amax_of_tensor(candidate: RecipeCandidate, part: Part, at: int, survey: Survey) -> int:
    """Return the code of the largest magnitude in the tensor, or in the element's row if each row has its own scale."""
    if not candidate.recipe.format.by_row:
        return survey.amax
    columns = part.codes.shape[-1]
    row = part.codes.reshape(-1, columns)[at // columns]
    return int(magnitudes(row, survey.format).max())


def _derivation(values: Array, candidate: RecipeCandidate, survey: Survey) -> tuple[BlockDerivation, ...]:
    source = taken(values, survey.format, candidate.takes)
    data = [[Datum(source.format, code) for code in row] for row in source.codes.tolist()]
    return quantize_blocks(data, candidate.recipe, tensor_scale=candidate.given)


def _from(found: tuple[BlockDerivation, int], candidate: RecipeCandidate) -> DerivedElement:
    block, position = found
    element = block.elements[position]
    line = candidate.recipe.rule.steps()[-1]
    steps = [RecipeStep(step.name, step.formula, _fraction(step.value)) for step in block.steps]
    steps = [each for each in steps if each.name != line.name]
    scaled = None if element.scaled is None else element.scaled.as_fraction()
    steps.append(RecipeStep(line.name, str(line.formula), scaled))
    return DerivedElement(candidate.name, tuple(steps), _fraction(value_of(block.scale)), element.code)


def _fraction(value: Value) -> Fraction | None:
    return value.as_fraction() if isinstance(value, Ratio) else None


def exact(x: float) -> Fraction | None:
    """Return a float as a fraction; None for NaN and ∞."""
    return Fraction(x) if np.isfinite(x) else None


def _number(code: int, survey: Survey) -> Fraction | None:
    return exact(float(decode_array([code], survey.format, np.float64)[0]))
