"""Says in words how stored codes differ from those of the nearest recipe."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.types import Array
from floatlab.auditing.recipe_search.matching import Agreement, Evidence, Trial, canonical, comparable_parts, values_of
from floatlab.auditing.recipe_search.trials import encoded_by

_STRANGE = 0.5  # a smaller share of codes may agree by chance
_FEW = 1 / 1000  # if a smaller share of the codes differs, they may be damaged


def difference_words(trial: Trial, tally: Agreement, evidence: Evidence) -> list[str]:
    """Return remarks on the codes and scales that differ from those of a recipe."""
    lost, wrong_scales = tally.codes_tried - tally.codes, tally.scales_tried - tally.scales
    found = []
    if tally.rank[1] < _STRANGE:
        return ["no recipe gives half of the codes: another original, element format or layout?"]
    if not lost and wrong_scales:
        found.append("all codes agree, so the scales were stored differently, or changed afterwards")
    elif lost and not wrong_scales and tally.scales_tried:
        found.append("all scales agree, so the rounding of the elements or their quotient differs")
    if not lost:
        return found
    steps = _steps(trial, evidence)
    far = int(np.count_nonzero(steps > 1))
    if lost < _FEW * tally.codes_tried and far and not wrong_scales:
        return [f"{far:,} of {len(steps):,} codes that differ are more than one step away, which no rounding explains"]
    if len(steps) and not far:
        found.append("each code that differs is one step away: a matter of rounding")
    return found


def _steps(trial: Trial, evidence: Evidence) -> Array:
    """Return how many numbers of the element format lie between the stored codes and those of the recipe."""
    element = trial.candidate.recipe.format.element
    table, values = canonical(element), values_of(element)
    order = np.unique(values[~np.isnan(values)])
    found = []
    for part in comparable_parts(trial.candidate, evidence):
        encoded = encoded_by(trial.candidate, evidence, part)
        if encoded is None:
            break
        stored = np.minimum(trial.layout.read(part.first, part.codes.size), len(table) - 1)
        mine = encoded.codes.reshape(-1)
        at = np.flatnonzero(table[stored] != table[mine])
        places = [np.searchsorted(order, values[codes[at]]) for codes in (stored, mine)]
        found.append(np.abs(places[0] - places[1]))
    return np.concatenate(found or [np.zeros(0, np.intp)])
