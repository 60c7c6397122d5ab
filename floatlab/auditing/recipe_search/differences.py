"""Describe how stored codes differ from the codes of the nearest recipe."""

from __future__ import annotations

import numpy as np

from floatlab.arrays.codec import decode_array
from floatlab.arrays.recipes.tiling import Tiling
from floatlab.arrays.types import Array
from floatlab.auditing.recipe_search.matching import (
    Agreement,
    Evidence,
    Trial,
    canonical,
    comparable_parts,
    stored_scales,
    values_of,
)
from floatlab.auditing.recipe_search.trials import encoded_by

_SAME = 1 + 1e-5  # numbers whose ratio is smaller than this count as equal
_TIE = 1e-5  # quotients this close to a tie may be rounded to either side
_ALMOST_ALL = 0.999
_STRANGE = 0.5  # a share of codes smaller than this may agree by chance
_FEW = 1 / 1000  # if a smaller share of the codes than this differs, they may be damaged


def difference_words(trial: Trial, tally: Agreement, evidence: Evidence) -> list[str]:
    """Return remarks on the stored codes and scales that a recipe does not reproduce."""
    lost, wrong_scales = tally.codes_tried - tally.codes, tally.scales_tried - tally.scales
    found = []
    near = _nearest_share(trial, evidence) if lost else 0.0
    if near <= _ALMOST_ALL and tally.rank[1] < _STRANGE:
        return ["no recipe gives half of the codes: another original, element format or layout?"]
    if not lost and wrong_scales:
        ratio = _scale_ratio(trial, evidence)
        found.append(
            f"all codes agree; the stored scales are {ratio}"
            if ratio
            else "all codes agree, so the scales were stored differently, or changed afterwards"
        )
    elif lost and not wrong_scales and tally.scales_tried:
        found.append("all scales agree, so the rounding of the elements or their quotient differs")
    if not lost:
        return [*found, *_tensor_words(trial, evidence)]
    if near > _ALMOST_ALL and wrong_scales:
        found.append(
            f"{_share_words(near)} of the codes are the nearest ones for the stored scales, which have another rule"
        )
    steps = _steps(trial, evidence)
    far = int(np.count_nonzero(steps > 1))
    if lost < _FEW * tally.codes_tried and far and not wrong_scales:
        return [f"{far:,} of {len(steps):,} codes that differ are more than one step away, which no rounding explains"]
    if len(steps) and not far:
        found.append("each code that differs is one step away: a matter of rounding")
    return found


def _share_words(share: float) -> str:
    return "all" if share == 1 else f"{min(100 * share, 99.99):.2f} %"


def _multiple(stored: Array, mine: Array) -> str:
    """Describe the factor by which stored scales differ from the recipe's scales `mine`.

    If there is no common factor, the reciprocals of `mine` are tried. If these also have no common factor, the text is
    empty.
    """
    with np.errstate(all="ignore"):
        pairs = (("{} times the recipe's", stored / mine), ("{} divided by the recipe's", stored * mine))
    for words, ratio in pairs:
        known = ratio[np.isfinite(ratio) & (mine != 0)]
        if len(known) and known.min() > 0 and known.max() < known.min() * _SAME:
            return words.format(f"{float(np.median(known)):.6g}")
    return ""


def _scale_ratio(trial: Trial, evidence: Evidence) -> str:
    """Describe the factor between the stored scales and a recipe's scales. Return "" if this factor varies.

    Only the first part of the tensor is compared.
    """
    if trial.reading is None or trial.candidate.recipe.format.minimum:
        return ""
    part = next(iter(comparable_parts(trial.candidate, evidence)))
    encoded = encoded_by(trial.candidate, evidence, part)
    if encoded is None:
        return ""
    stored = stored_scales(trial.reading, trial.candidate.arrangement, evidence.shape, part)
    mine = np.asarray(encoded.scales, np.float64).reshape(-1)
    found = _multiple(stored.reshape(-1), mine) if stored.size == mine.size else ""
    # A factor can be distinguished from a reciprocal only if the scales are not all equal.
    return found if found.endswith("times the recipe's") or len(np.unique(mine)) > 1 else ""


def scale_distance(trial: Trial, evidence: Evidence) -> float:
    """Return the median of |log2(stored scale / recipe's scale)|, or infinity if the scales cannot be compared.

    Only the scales of the first part of the tensor are compared.
    """
    if trial.reading is None or trial.candidate.recipe.format.minimum:
        return np.inf
    part = next(iter(comparable_parts(trial.candidate, evidence)))
    encoded = encoded_by(trial.candidate, evidence, part)
    if encoded is None:
        return np.inf
    stored = stored_scales(trial.reading, trial.candidate.arrangement, evidence.shape, part).reshape(-1)
    mine = np.asarray(encoded.scales, np.float64).reshape(-1)
    if stored.size != mine.size:
        return np.inf
    with np.errstate(all="ignore"):
        factors = np.abs(np.log2(np.abs(stored / mine)))
    known = factors[np.isfinite(factors)]
    return float(np.median(known)) if len(known) else np.inf


def _tensor_words(trial: Trial, evidence: Evidence) -> list[str]:
    """Return a remark that compares the stored tensor scale with the tensor scale that a recipe gives."""
    if evidence.tensor is None or evidence.tensor.size != 1:
        return []
    part = next(iter(comparable_parts(trial.candidate, evidence)))
    encoded = encoded_by(trial.candidate, evidence, part)
    if encoded is None or encoded.tensor is None:
        return []
    stored, mine = float(evidence.tensor.reshape(-1)[0]), float(encoded.tensor.reshape(-1)[0])
    if not stored or not mine or not np.isfinite(stored / mine):
        return []
    ratio, product = stored / mine, stored * mine
    said = f"{ratio:.6g} times the recipe's" if abs(np.log2(abs(ratio))) < abs(np.log2(abs(product))) else ""
    return [f"the stored scale of the tensor is {said or f'{product:.6g} divided by the recipe’s'}"]


@np.errstate(all="ignore")
def _nearest_share(trial: Trial, evidence: Evidence) -> float:
    """Return the share of stored codes that are nearest to the scaled numbers of the original.

    The scaled numbers are the numbers of the original, divided by the stored scales. Only the first part of the tensor
    is examined.
    """
    fmt, arrangement = trial.candidate.recipe.format, trial.candidate.arrangement
    if trial.reading is None or fmt.minimum or trial.form:
        return 0.0
    part = next(iter(comparable_parts(trial.candidate, evidence)))
    values = values_of(fmt.element)
    x = decode_array(part.codes, evidence.survey.format, np.float64, threads=1)
    codes = trial.layout.read(part.first, part.codes.size)
    tiling = Tiling(part.codes.shape, fmt, arrangement.axis)
    coded = tiling.cut(values[np.minimum(codes, len(values) - 1)].reshape(part.codes.shape))
    scale = stored_scales(trial.reading, arrangement, evidence.shape, part).reshape(-1, 1)
    if len(scale) != len(coded):
        return 0.0
    order = np.unique(values[np.isfinite(values)])
    whole = [1.0] if evidence.tensor is None or evidence.tensor.size != 1 else _both_ways(evidence.tensor)
    best = 0.0
    for factor in whole:
        exact = tiling.cut(x) / (scale * factor)
        for limited in (exact, np.clip(exact, -order[-1], order[-1])):  # some quantisers to int8 never use −128
            at = np.clip(np.searchsorted(order, limited), 1, len(order) - 1)
            least = np.minimum(np.abs(order[at] - limited), np.abs(order[at - 1] - limited))
            is_near = np.abs(coded - limited) <= least * _SAME + _TIE
            best = max(best, float(is_near.mean()))
    return best


def _both_ways(tensor: Array) -> list[float]:
    stored = float(tensor.reshape(-1)[0])
    return [each for each in (stored, 1 / stored if stored else 0.0) if 0 < abs(each) < np.inf]


def _steps(trial: Trial, evidence: Evidence) -> Array:
    """Return, for each stored code that differs from the recipe's, how far apart the two codes are.

    The distance is 1 for neighbouring numbers of the element format.
    """
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
