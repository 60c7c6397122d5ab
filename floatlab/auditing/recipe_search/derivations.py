"""The first element at which two recipes differ, or a recipe and the stored codes, with the derivation by each."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from floatlab.arith.block_records import BlockDerivation
from floatlab.arith.blocks import quantize_blocks
from floatlab.arith.scaling import Value, value_of
from floatlab.arrays.codec import decode_array
from floatlab.arrays.types import Array
from floatlab.auditing.recipe_search.arrangements import Arrangement, Shape
from floatlab.auditing.recipe_search.encoding import Candidate, Encoded, Part, Survey, magnitudes, taken
from floatlab.auditing.recipe_search.matching import Evidence, Trial, canonical, parts, stored_as
from floatlab.auditing.recipe_search.records import DerivedElement, RecipeStep, TellingElement
from floatlab.auditing.recipe_search.trials import encoded_by
from floatlab.errors import FloatlabError
from floatlab.numbers import Datum
from floatlab.numbers.exact import Ratio

_WHOLE = 256  # larger blocks are derived from their largest element and the element in question alone


def telling_element(one: Trial, other: Trial | None, evidence: Evidence) -> TellingElement | None:
    """Return the first element at which two recipes differ; without `other`, at which one and the stored codes do.

    Returns None if there is none in the parts that are compared.
    """
    arrangement = one.candidate.arrangement
    for part in parts(evidence, arrangement):
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
            return told(part, at, pair, evidence.survey, one, evidence)
    return None


def first_difference(candidate: Candidate, one: Encoded, other: Encoded, shape: Shape, same_grid: bool) -> int | None:
    """Return the index of the first element whose code differs, or whose block has another scale; None if none does."""
    table = canonical(candidate.recipe.format.element)
    differs = (table[one.codes] != table[np.minimum(other.codes, len(table) - 1)]).reshape(-1)
    found = [int(differs.argmax())] if differs.any() else []
    if same_grid and one.scales.shape == other.scales.shape:
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
        arrangement = trial.candidate.arrangement
        ordered = arrangement.ordered(trial.reading.values, evidence.shape)
        theirs = Encoded(theirs.codes, arrangement.part(ordered, evidence.shape, part.start, part.stop), None)
        mine = Encoded(encoded.codes, stored_as(encoded.scales, trial.reading.kind, trial.form), None)
    return first_difference(trial.candidate, mine, theirs, part.codes.shape, True)


def _elements_of(arrangement: Arrangement, scale: int, shape: Shape) -> Array:
    """Return the indices of the elements of a block, by the number of its scale."""
    index = np.arange(int(np.prod(shape))).reshape(shape)
    rows, columns = arrangement.size
    if rows is None:
        return index.reshape(-1)
    if arrangement.is_flat:
        assert columns is not None
        return index.reshape(-1)[scale * columns : (scale + 1) * columns]
    turned = np.moveaxis(index, arrangement.axis, -1)
    place = np.unravel_index(min(scale, int(np.prod(arrangement.grid(shape))) - 1), arrangement.grid(shape))
    wide = columns or turned.shape[-1]
    last = slice(place[-1] * wide, (place[-1] + 1) * wide)
    if turned.ndim == 1:
        return turned[last]
    found: Array = turned[(*place[:-2], slice(place[-2] * rows, (place[-2] + 1) * rows), last)].reshape(-1)
    return found


def _block_with(arrangement: Arrangement, at: int, shape: Shape) -> Array:
    """Return the indices of the elements of the block in which an element lies."""
    rows, columns = arrangement.size
    if rows is None:
        return np.arange(int(np.prod(shape)))
    if arrangement.is_flat:
        assert columns is not None
        return _elements_of(arrangement, at // columns, shape)
    place = np.unravel_index(at, shape)
    turned = [*place[: arrangement.axis], *place[arrangement.axis + 1 :], place[arrangement.axis]]
    turned[-1] //= columns or shape[arrangement.axis]
    if len(turned) > 1:
        turned[-2] //= rows
    grid = arrangement.grid(shape)
    return _elements_of(arrangement, int(np.ravel_multi_index(turned, grid)), shape)


def told(
    part: Part, at: int, pair: tuple[Candidate, ...], survey: Survey, trial: Trial | None, evidence: Evidence | None
) -> TellingElement:
    """Return the record of an element, by its index in a part."""
    flat, shape = part.codes.reshape(-1), part.codes.shape
    places = _block_with(pair[0].arrangement, at, shape)
    largest = int(magnitudes(flat[places], survey.format).max())
    code, scale = None, None
    if trial is not None and evidence is not None:
        code = int(trial.layout.read(part.first + at, 1)[0])
        if trial.reading is not None:
            stored = trial.candidate.arrangement.ordered(trial.reading.values, evidence.shape)
            mine = np.arange(stored.size).reshape(stored.shape)
            here = trial.candidate.arrangement.part(mine, evidence.shape, part.start, part.stop)
            number = _scale_number(pair[0].arrangement, at, shape)
            if number < len(here):
                scale = exact(float(stored.reshape(-1)[here[number]]))
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
    place = np.unravel_index(at, shape)
    turned = [*place[: arrangement.axis], *place[arrangement.axis + 1 :], place[arrangement.axis]]
    turned[-1] //= columns or shape[arrangement.axis]
    if len(turned) > 1:
        turned[-2] //= rows
    return int(np.ravel_multi_index(turned, arrangement.grid(shape)))


def derived(candidate: Candidate, part: Part, at: int, survey: Survey) -> DerivedElement:
    """Return how a candidate computes the element with this index in a part.

    The tensor's largest magnitude stands in a second block. Of a large block, only the largest element and this one are
    derived; the scale does not depend on the others.
    """
    flat = part.codes.reshape(-1)
    places = _block_with(candidate.arrangement, at, part.codes.shape)
    recipe, values = candidate.recipe, flat[places]
    position = int(np.flatnonzero(places == at)[0])
    fmt = recipe.format
    rows = min(fmt.rows or 1, len(places)) if not fmt.flat else 1
    if len(places) > _WHOLE:
        peak = magnitudes(values, survey.format).argmax()
        reach = survey.amax if fmt.rows is None or fmt.block is None else int(values[peak])
        values, position, rows = np.array([reach if part.stop else values[peak], values[position]], flat.dtype), 1, 1
        recipe = recipe.replace(format=fmt.replace(rows=None, block=None, flat=False, by_row=False))
    values = values.reshape(rows, -1)
    width = (fmt.block or values.shape[1]) if len(places) <= _WHOLE else values.shape[1]
    padded = np.zeros((rows, width), values.dtype)
    padded[:, : values.shape[1]] = values
    position = position // values.shape[1] * width + position % values.shape[1]
    if fmt.tensor is not None and fmt.superblock is None and not fmt.by_row and candidate.given is None:
        second = np.zeros_like(padded)
        second[0, 0] = survey.amax
        padded = np.concatenate([padded, second], axis=1)
    try:
        return _from(_derivation(padded, candidate.replace(recipe=recipe), survey), position, candidate)
    except FloatlabError:
        return DerivedElement(candidate.name, (), None, 0)


def _derivation(values: Array, candidate: Candidate, survey: Survey) -> BlockDerivation:
    source = taken(values, survey.format, candidate.takes)
    data = [[Datum(source.format, code) for code in row] for row in source.codes.tolist()]
    return quantize_blocks(data, candidate.recipe, tensor_scale=candidate.given)[0]


def _from(block: BlockDerivation, position: int, candidate: Candidate) -> DerivedElement:
    element = block.elements[position]
    steps = [RecipeStep(step.name, step.formula, _fraction(step.value)) for step in block.steps]
    scaled = None if element.scaled is None else element.scaled.as_fraction()
    line = candidate.recipe.rule.steps()[-1]
    steps = [each for each in steps if each.name != line.name]
    steps.append(RecipeStep(line.name, str(line.formula), scaled))
    return DerivedElement(candidate.name, tuple(steps), _fraction(value_of(block.scale)), element.code)


def _fraction(value: Value) -> Fraction | None:
    return value.as_fraction() if isinstance(value, Ratio) else None


def exact(x: float) -> Fraction | None:
    """Return a float as a fraction; None for NaN and ∞."""
    return Fraction(x) if np.isfinite(x) else None


def _number(code: int, survey: Survey) -> Fraction | None:
    word = {16: np.uint16, 32: np.uint32, 64: np.uint64}[survey.format.width]
    return exact(float(decode_array(np.array([code], word), survey.format, np.float64)[0]))
