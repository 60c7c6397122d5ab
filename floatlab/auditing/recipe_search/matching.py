"""Counts the stored codes and scales that a candidate gives, and finds the first code and scale that differ.

The signs of zeros and NaNs do not count, because they come from the processor and the compiler.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from math import prod

import numpy as np

from floatlab.arrays.codec import decode_array, round_array
from floatlab.arrays.recipes.tiling import Tiling
from floatlab.arrays.sources import ArraySource, Source, source_of
from floatlab.arrays.types import Array
from floatlab.auditing.conventions.described import NestedScales
from floatlab.auditing.recipe_search.arrangements import Arrangement, Shape
from floatlab.auditing.recipe_search.encoding import (
    Encoded,
    Part,
    RecipeCandidate,
    Survey,
    is_finite,
    magnitudes,
    single,
)
from floatlab.auditing.recipe_search.stored_codes import CodeLayout, ScaleReading
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats import parse_format
from floatlab.formats.blocks import Integers
from floatlab.formats.format import Format
from floatlab.record import Individual, Record

PLAIN, RECIPROCAL = "", "scales are stored as reciprocals"
SMALL = 1 << 16  # tensors of up to this many elements are quantised whole
_PART = 1 << 20  # number of elements in a part of a larger tensor
_PIECE, _PIECES = 256, 16
_SAMPLE, _SAMPLES = 1 << 14, 8


class Trial(Individual):
    """A candidate with a way to read the stored codes and scales.

    `form` is `RECIPROCAL` if the scales are stored as reciprocals.
    """

    candidate: RecipeCandidate
    layout: CodeLayout
    reading: ScaleReading | None
    form: str = PLAIN


class Agreement(Record):
    """The numbers of codes and scales that agree in a trial, and the indices of the first code and scale that differ.

    `tensor` says how the stored scale of the tensor relates to the scale that the recipe gives. `tensor` is empty if
    the tensor has no scale. `tensor_fits` says whether these two scales agree.
    """

    codes: int = 0
    codes_tried: int = 0
    scales: int = 0
    scales_tried: int = 0
    first_code: int | None = None
    first_scale: int | None = None
    tensor: str = ""
    tensor_fits: bool = True

    @property
    def is_exact(self) -> bool:
        """Whether all codes and scales agree, and the scale of the tensor fits."""
        return self.codes == self.codes_tried and self.scales == self.scales_tried and self.tensor_fits

    @property
    def rank(self) -> tuple[float, float, bool]:
        """A sort key, larger for better trials.

        It has three parts: the share of equal codes plus the share of equal scales, the share of equal codes, and
        `tensor_fits`.
        """
        scales = self.scales / self.scales_tried if self.scales_tried else 1.0
        codes = self.codes / self.codes_tried if self.codes_tried else 1.0
        return codes + scales, codes, self.tensor_fits


class Evidence(Individual):
    """The data of a search: the original, facts about it, and the stored codes and scales.

    `layouts` are the possible ways to read the codes, and `readings` are the possible ways to read the scales. `tensor`
    has the scale of the tensor, or one scale for each row; it is None if there is no such scale. `nested` are scales
    that are themselves quantised; `readings` does not contain them.
    """

    original: ArraySource
    survey: Survey
    layouts: list[CodeLayout]
    readings: list[ScaleReading]
    tensor: Array | None
    nested: NestedScales | None = None

    @property
    def shape(self) -> Shape:
        """The shape of the tensor."""
        return self.survey.shape

    @property
    def is_small(self) -> bool:
        """Whether the tensor is small enough to be quantised in one piece."""
        return prod(self.shape) <= SMALL


def check_original(original: ArraySource) -> None:
    """Raise UnsupportedError for integers, for a single number, and for an array without elements; reads no element."""
    if original.dtype is not None and original.dtype.kind in "iub":
        kind = original.kind
        raise UnsupportedError(f"{quoted(original.name, 90)} has integers ({kind}), but an original has floats")
    if not original.shape:
        raise UnsupportedError(f"{quoted(original.name, 90)} is one number, but an original is an array")
    if not prod(original.shape):
        raise UnsupportedError(f"{quoted(original.name, 90)} has no elements")


def surveyed(original: ArraySource, advance: object = None) -> Survey:
    """Read the original once and return the facts about the whole tensor.

    Raises UnsupportedError for originals that `check_original` refuses, and if no number is finite.
    """
    check_original(original)
    format, shape = original.format, original.shape
    inner, columns, amax, least = prod(shape[1:]), None, 0, None
    step = max(1, _PART // inner)
    for start in range(0, shape[0], step):
        codes = magnitudes(codes_of(original, start * inner, (min(start + step, shape[0]) - start) * inner), format)
        most = codes.reshape(-1, inner).max(axis=0)
        columns = most if columns is None else np.maximum(columns, most)
        amax = max(amax, int(most.max()))
        least = int(codes.min()) if least is None else min(least, int(codes.min()))
        if callable(advance):
            advance(codes.size)
    assert columns is not None
    assert least is not None
    if not is_finite(least, format):
        raise UnsupportedError(f"{quoted(original.name, 90)} has only NaNs and infinities, which tell no recipe")
    return Survey(format, shape, amax, columns, is_finite(amax, format))


def codes_of(source: ArraySource, first: int, count: int) -> Array:
    """Return the codes of floats, from index `first` on."""
    piece = source.read(first, count)
    return piece.codes if isinstance(piece, Source) else source_of(piece).codes


def parts(evidence: Evidence, arrangement: Arrangement, sampled: bool = False) -> Iterator[Part]:
    """Yield the parts of the tensor, or a sample of them.

    A part has whole blocks of this arrangement, unless blocks extend along the whole first axis.
    """
    shape = evidence.shape
    inner = prod(shape[1:])
    if evidence.is_small:
        yield Part(0, shape[0], codes_of(evidence.original, 0, prod(shape)).reshape(shape), True)
        return
    unit = arrangement.unit(shape)
    wanted = _SAMPLE if sampled else _PART
    step = max(1, wanted // (unit * inner)) * unit
    starts: Sequence[int] = range(0, shape[0], step)
    wanted_parts = min(max(_SAMPLE * _SAMPLES // (step * inner), 2), _SAMPLES) if sampled else len(starts)
    if len(starts) > wanted_parts:
        starts = [starts[at * (len(starts) - 1) // (wanted_parts - 1)] for at in range(wanted_parts)]
    for start in starts:
        stop = min(start + step, shape[0])
        codes = codes_of(evidence.original, start * inner, (stop - start) * inner)
        yield Part(start, stop, codes.reshape(stop - start, *shape[1:]), stop - start == shape[0])


def pieces(evidence: Evidence) -> Iterator[Part]:
    """Yield pieces of 256 elements of the flattened tensor, for slow recipes; at most 16, evenly distributed."""
    count = prod(evidence.shape)
    starts = range(0, count, _PIECE)
    if len(starts) > _PIECES:
        starts = range(0, count, -(-len(starts) // _PIECES) * _PIECE)
    for start in starts:
        codes = codes_of(evidence.original, start, min(_PIECE, count - start))
        yield Part(start, start + len(codes), codes, len(codes) == count)


@lru_cache(maxsize=64)
def canonical(element: Format | Integers) -> Array:
    """Return a table that maps each code to the first code with the same value; all NaNs count as one value.

    Codes of integers are mapped to themselves.
    """
    if isinstance(element, Integers):
        return np.arange(1 << element.width, dtype=np.uint8)
    first: dict[float | str, int] = {}
    return np.array(
        [first.setdefault("nan" if x != x else x, code) for code, x in enumerate(values_of(element).tolist())], np.uint8
    )


def compared(trial: Trial, encoded: Encoded, part: Part, evidence: Evidence, before: Agreement) -> Agreement:
    """Compare one more part with the stored codes and scales; return the tally: `before` plus the new counts."""
    candidate = trial.candidate
    table = canonical(candidate.recipe.format.element)
    stored = trial.layout.read(part.first, part.codes.size)
    mine = encoded.codes.reshape(-1)
    wrong = table[mine] != table[np.minimum(stored, len(table) - 1)]
    wrong |= stored >= len(table)
    lost = int(np.count_nonzero(wrong))
    first = before.first_code
    if lost and first is None:
        first = part.first + int(wrong.argmax())
    tally = before.replace(
        codes=before.codes + wrong.size - lost, codes_tried=before.codes_tried + wrong.size, first_code=first
    )
    return _with_scales(trial, encoded, part, evidence, tally)


def _with_scales(trial: Trial, encoded: Encoded, part: Part, evidence: Evidence, tally: Agreement) -> Agreement:
    reading, arrangement, shape = trial.reading, trial.candidate.arrangement, evidence.shape
    if reading is None:
        return tally
    theirs = stored_scales(reading, arrangement, shape, part)
    mine = stored_as(encoded.scales, reading.kind, trial.form)
    if arrangement.size[0] is None or (arrangement.size[1] is None and arrangement.axis == 0):
        tally = tally.replace(scales=0, scales_tried=0)  # every part has the same scales, which are counted only once
    differs = (mine != theirs) & ~(np.isnan(mine) & np.isnan(theirs))
    lost, first = int(np.count_nonzero(differs)), tally.first_scale
    if lost and first is None:
        first = tally.scales_tried + int(differs.argmax())
    return tally.replace(
        scales=tally.scales + differs.size - lost, scales_tried=tally.scales_tried + differs.size, first_scale=first
    )


def stored_scales(reading: ScaleReading, arrangement: Arrangement, shape: Shape, part: Part) -> Array:
    """Return the stored scales of a part, in the order of `Arrangement.grid`."""
    ordered = _ordered(reading, arrangement, shape)
    if arrangement.is_flat:
        return arrangement.part(ordered, (prod(shape),), part.first, part.first + part.codes.size)
    return arrangement.part(ordered, shape, part.start, part.stop)


def comparable_parts(candidate: RecipeCandidate, evidence: Evidence) -> Iterator[Part]:
    """Yield the parts of the tensor that are compared: all of them, or for slow recipes only short pieces."""
    if candidate.recipe.format.minimum:
        return pieces(evidence)
    return parts(evidence, candidate.arrangement)


@lru_cache(maxsize=32)
def _ordered(reading: ScaleReading, arrangement: Arrangement, shape: Shape) -> Array:
    return arrangement.ordered(reading.values, shape)


def stored_as(scales: Array, kind: str, form: str) -> Array:
    """Return the scales of a recipe as they are stored: in the format `kind`, and as reciprocals if `form` says so."""
    with np.errstate(all="ignore"):
        if form == RECIPROCAL:
            scales = (np.float32(1) / scales.astype(np.float32)).astype(np.float64)
        if kind in ("bfloat16", "float16"):
            return np.asarray(round_array(scales, parse_format(kind), threads=1), np.float64)
    return scales


def tensor_form(candidate: RecipeCandidate, mine: Array | None, evidence: Evidence, part: Part) -> tuple[str, bool]:
    """Say how the tensor's stored scale relates to the recipe's scale; also return whether the two scales agree."""
    stored = evidence.tensor
    if stored is None:
        return "", True
    if candidate.recipe.format.by_row:
        columns = evidence.shape[-1]
        stored = stored.reshape(-1)[part.first // columns : (part.first + part.codes.size) // columns]
    if mine is None:
        return ("stored as 1", True) if bool(np.all(stored == 1)) else ("stored, but the recipe has none", False)
    if candidate.given is not None:
        return "taken as stored, not derived from this tensor", True
    own = mine.reshape(-1).astype(np.float64)
    theirs = stored.reshape(-1).astype(np.float64)
    for words, values in _forms(candidate, own, evidence):
        if values.shape == theirs.shape and bool(np.all((values == theirs) | (np.isnan(values) & np.isnan(theirs)))):
            return words, True
    return "differs", False


def _forms(candidate: RecipeCandidate, own: Array, evidence: Evidence) -> Iterator[tuple[str, Array]]:
    """Yield the forms in which the scale of a tensor may be stored, as words and numbers.

    `own` has the scale that the recipe's rule computes. This scale is yielded first; then its reciprocal and other
    forms follow.
    """
    yield "as in the recipe", own
    with np.errstate(all="ignore"):
        yield "the reciprocal of the recipe's", (np.float32(1) / own.astype(np.float32)).astype(np.float64)
        amax = own if any(str(line) == "tensor = tensor_amax" for line in candidate.recipe.rule.steps()) else None
        if amax is None and len(own) == 1:
            amax = decode_array([evidence.survey.amax], evidence.survey.format, np.float64)
        if amax is None:
            return
        yield "the largest magnitude", amax
        for divisor in (2688, 1536, 1792, 6, 448):
            narrow = amax.astype(np.float32)
            yield f"the largest magnitude / {divisor}", (narrow / np.float32(divisor)).astype(np.float64)
            yield f"{divisor} / the largest magnitude", (np.float32(divisor) / narrow).astype(np.float64)


def given_scales(candidate: RecipeCandidate, stored: float) -> list[RecipeCandidate]:
    """Return candidates that use the stored scale of the tensor instead of deriving one.

    There is one candidate for each form in which the scale may be stored, such as the reciprocal.
    """
    if candidate.recipe.format.tensor is None or candidate.recipe.format.by_row or not 0 < stored < np.inf:
        return []
    forms = [stored, single(1 / stored)]
    if any(str(line) == "tensor = tensor_amax" for line in candidate.recipe.rule.steps()):
        forms += [single(stored * 2688), single(2688 / stored)]
    words = "the tensor's scale as stored"
    return [candidate.replace(given=each, changes=(*candidate.changes, words)) for each in forms if 0 < each < np.inf]


def unlikeness(trial: Trial, part: Part, survey: Survey) -> float | None:
    """Return how much the stored codes of a part differ from the original: the median relative error of its blocks.

    The codes of each block are scaled so that the largest number of the block agrees with the original's largest
    number. The error is below 0.4 for most data if element format and layout are right. The result is ∞ for codes that
    the format does not have. It is None for formats with minima, and if no block has finite, nonzero numbers.
    """
    arrangement, fmt = trial.candidate.arrangement, trial.candidate.recipe.format
    stored = trial.layout.read(part.first, part.codes.size)
    if int(stored.max(initial=0)) >= 1 << fmt.element.width:
        return np.inf
    if fmt.minimum:
        return None
    x = decode_array(part.codes, survey.format, np.float64, threads=1)
    coded = values_of(fmt.element)[stored].reshape(part.codes.shape)
    tiling = Tiling(part.codes.shape, fmt, arrangement.axis)
    numbers, elements = tiling.cut(x), tiling.cut(coded)
    with np.errstate(all="ignore"):
        factor = np.abs(numbers).max(axis=1) / np.abs(elements).max(axis=1)
        # A scale may be negative, as in q4_0.
        errors = [np.abs(elements * by - numbers).sum(axis=1) for by in (factor[:, None], -factor[:, None])]
        error = np.minimum(*errors) / np.abs(numbers).sum(axis=1)
    known = error[np.isfinite(error)]
    return float(np.median(known)) if len(known) else None


@lru_cache(maxsize=64)
def values_of(element: Format | Integers) -> Array:
    """Return the values of all codes of an element format, in the order of the codes."""
    codes = np.arange(1 << element.width)
    if isinstance(element, Integers):
        return np.array([element.integer(code) for code in codes.tolist()], np.float64)
    return decode_array(codes.astype(np.uint8), element, np.float64, threads=1)
