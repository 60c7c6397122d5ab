"""The trials of a search: all candidates that suit the stored shapes, and how many of the codes each one gives.

A trial is a candidate with a way to read the stored codes and scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

import numpy as np

from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.types import Array
from floatlab.auditing.recipe_search.arrangements import Arrangement, arrangements
from floatlab.auditing.recipe_search.candidates import MINIMA, candidates, formats_for
from floatlab.auditing.recipe_search.encoding import Encoded, Part, RecipeCandidate, Survey, encode_minima, encode_part
from floatlab.auditing.recipe_search.matching import (
    PLAIN,
    RECIPROCAL,
    Agreement,
    Evidence,
    Trial,
    compared,
    parts,
    pieces,
    tensor_form,
    unlikeness,
)
from floatlab.auditing.recipe_search.stored_codes import FLOATS, ScaleReading
from floatlab.errors import FloatlabError

_POWERS = ("e8m0fnu", "e4m3fn")
# `unlikeness` of codes: it is below _ALIKE in the right format, and above _UNLIKE in most wrong ones.
_ALIKE, _UNLIKE = 0.35, 0.75
_HOPELESS = 0.5  # the comparison of a slow recipe ends when it gives less than this share of the codes


def named_trials(evidence: Evidence) -> list[Trial]:
    """Return the trials of all recipes that suit the stored codes and scales, without variations of their rules."""
    found = []
    rows = evidence.tensor is not None and evidence.tensor.size > 1
    readings: list[ScaleReading | None] = [*evidence.readings]
    for reading in readings or [None]:
        kind = None if reading is None else reading.kind
        stored = None if reading is None else reading.values.shape
        last = len(evidence.shape) - 1
        powers = reading is None or _are_powers(reading.values)
        if kind in MINIMA:
            where = [Arrangement(MINIMA[kind][1], last)]
            where = [each for each in where if stored is not None and each.grid(evidence.shape) == stored[:1]]
        else:
            where = arrangements(evidence.shape, stored, kind in _POWERS)
        if kind is None:
            where.append(Arrangement("", last))
        forms = (PLAIN, RECIPROCAL) if kind in FLOATS else (PLAIN,)
        for arrangement in where:
            for layout in evidence.layouts:
                for element in layout.elements:
                    texts = formats_for(element, kind, arrangement, rows, powers)
                    for candidate in candidates(texts, arrangement, evidence.survey.format.name):
                        found += [Trial(candidate, layout, reading, form) for form in forms]
    return found


def _are_powers(scales: Array) -> bool:
    """Return whether all scales are powers of two, or 0.

    Scales that are NaN or infinite do not count: some rules give such scales to blocks with a NaN or an infinity.
    """
    return bool(np.isin(np.frexp(np.abs(scales[np.isfinite(scales)]))[0], (0, 0.5)).all())


def plausible(trials: list[Trial], evidence: Evidence) -> list[Trial]:
    """Return the trials whose element format and layout are plausible.

    The codes of a part of the tensor are compared with the original (`unlikeness`). A trial is left out only if its
    codes are far from the original, while another element format or layout gives codes that are near the original.
    """
    known: dict[tuple[object, ...], float | None] = {}
    keys = []
    for trial in trials:
        arrangement, fmt = trial.candidate.arrangement, trial.candidate.recipe.format
        key = trial.layout, arrangement, fmt.element, fmt.minimum
        if key not in known:
            part = next(parts(evidence, arrangement, sampled=True))
            known[key] = unlikeness(trial, part, evidence.survey)
        keys.append(key)
    if min((each for each in known.values() if each is not None), default=1.0) > _ALIKE:
        return trials
    return [trial for trial, key in zip(trials, keys, strict=True) if (known[key] or 0) < _UNLIKE]


def tallies(
    trials: Iterable[Trial], evidence: Evidence, sampled: bool, done: Callable[[int], object] = lambda count: None
) -> dict[Trial, Agreement]:
    """Count for each trial the codes and scales that agree, over the tensor or a sample.

    Trials whose recipe cannot quantise this tensor are left out.
    """
    groups: dict[Arrangement, dict[RecipeCandidate, list[Trial]]] = {}
    for trial in trials:
        groups.setdefault(trial.candidate.arrangement, {}).setdefault(trial.candidate, []).append(trial)
    found: dict[Trial, Agreement] = {}
    for arrangement, by_candidate in groups.items():
        slow = any(each.recipe.format.minimum for each in by_candidate)
        for part in pieces(evidence) if slow else parts(evidence, arrangement, sampled):
            for candidate, same in [*by_candidate.items()]:
                if slow and all(_is_hopeless(found.get(trial)) for trial in same):
                    continue
                encoded = encoded_by(candidate, evidence, part)
                if encoded is None:
                    del by_candidate[candidate]
                    for trial in same:
                        found.pop(trial, None)
                    continue
                for trial in same:
                    tally = found.get(trial, Agreement())
                    tally = _with_tensor(tally, trial, encoded, part, evidence)
                    found[trial] = compared(trial, encoded, part, evidence, tally)
            done(part.codes.size // len(groups))
    return found


def _is_hopeless(tally: Agreement | None) -> bool:
    return tally is not None and tally.codes < _HOPELESS * tally.codes_tried


def _with_tensor(tally: Agreement, trial: Trial, encoded: Encoded, part: Part, evidence: Evidence) -> Agreement:
    if evidence.tensor is None or not tally.tensor_fits or (tally.tensor and not trial.candidate.recipe.format.by_row):
        return tally
    words, fits = tensor_form(trial.candidate, encoded.tensor, evidence, part)
    return tally.replace(tensor=words, tensor_fits=fits)


def encoded_by(candidate: RecipeCandidate, evidence: Evidence, part: Part) -> Encoded | None:
    """Quantise a part by a candidate. Return None if the candidate cannot quantise this tensor."""
    fmt = candidate.recipe.format
    try:
        with np.errstate(all="ignore"):
            if fmt.minimum:
                return encode_minima(candidate, evidence.survey, part)
            if part.is_whole or fmt.tensor is None or fmt.by_row or candidate.given is not None:
                return encode_part(candidate, evidence.survey, part)
            tensor = _tensor_scale(candidate, evidence.survey)
            if not any(line.name == "tensor" for line in candidate.recipe.rule.steps()):
                return encode_part(candidate, evidence.survey, part)
            return None if tensor is None else encode_part(candidate, evidence.survey, part, tensor)
    except FloatlabError:
        return None


@lru_cache(maxsize=1024)
def _tensor_scale(candidate: RecipeCandidate, survey: Survey) -> float | None:
    """Return the scale of the whole tensor as a candidate derives it, or None if it is not finite and positive."""
    if candidate.recipe.rule.is_exact and not survey.is_finite:
        return None  # exact rules leave out blocks with infinities; the largest number in the other blocks is unknown
    columns = candidate.arrangement.size[1] or 1
    rows = candidate.arrangement.size[0] or 1
    block = np.zeros((rows, columns), container(survey.format))
    block[0, 0] = survey.amax
    here = candidate.replace(arrangement=candidate.arrangement.replace(axis=1))
    tensor = encode_part(here, survey, Part(0, rows, block, True)).tensor
    scale = None if tensor is None else float(tensor.reshape(-1)[0])
    return scale if scale is not None and 0 < scale < np.inf else None
