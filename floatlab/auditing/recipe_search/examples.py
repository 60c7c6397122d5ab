"""Finds numbers to which two recipes give different codes, although both give equal codes to the searched tensor."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from floatlab.arrays.codec import round_array
from floatlab.arrays.types import Array
from floatlab.auditing.recipe_search.arrangements import Arrangement
from floatlab.auditing.recipe_search.derivations import first_difference, telling_record
from floatlab.auditing.recipe_search.encoding import (
    Encoded,
    Part,
    RecipeCandidate,
    Survey,
    encode_part,
    is_finite,
    magnitudes,
)
from floatlab.auditing.recipe_search.records import TellingElement
from floatlab.errors import FloatlabError
from floatlab.formats.format import Format

_ROWS, _COLUMNS = 128, 128
PROBES = _ROWS * _COLUMNS * 3


def example(one: RecipeCandidate, other: RecipeCandidate, own: Format) -> TellingElement | None:
    """Return the record of a number of `_probe` that two candidates quantise differently; None if there is none."""
    for kind in range(3):
        codes = _probe(kind, own)
        shape = codes.shape
        survey = Survey(own, shape, int(magnitudes(codes, own).max()), codes[0], True)
        survey = Survey(own, shape, survey.amax, codes[0], is_finite(survey.amax, own))
        part = Part(0, shape[0], codes, True)
        pair = [_along_rows(each) for each in (one, other)]
        found = [_encoded(each, survey, part) for each in pair]
        if found[0] is None or found[1] is None:
            continue
        at = first_difference(pair[0], found[0], found[1], shape, pair[0].arrangement == pair[1].arrangement)
        if at is not None:
            return telling_record(part, at, tuple(pair), survey, None, None)
    return None


def _along_rows(candidate: RecipeCandidate) -> RecipeCandidate:
    arrangement = Arrangement(candidate.arrangement.shape, 1)
    return candidate.replace(arrangement=arrangement, given=None)


def _encoded(candidate: RecipeCandidate, survey: Survey, part: Part) -> Encoded | None:
    try:
        with np.errstate(all="ignore"):
            return encode_part(candidate, survey, part)
    except FloatlabError:
        return None


@lru_cache(maxsize=16)
def _probe(kind: int, own: Format) -> Array:
    """Return numbers for comparing recipes, as codes of the format `own`.

    `kind` chooses the numbers: normally distributed (0), next to ties and powers of two (1), or very different (2).
    """
    rng = np.random.default_rng(kind)
    shape = (_ROWS, _COLUMNS)
    if kind == 0:
        x = rng.standard_normal(shape) * 0.02
    elif kind == 1:
        # Numbers with few digits, moved by up to two ulps of binary32: they are next to ties and powers of two.
        x = rng.integers(1, 64, shape) * 2.0 ** rng.integers(-9, 2, shape) * (1 + rng.integers(-2, 3, shape) * 2.0**-23)
        x *= rng.choice([-1.0, 1.0], shape)
    else:
        x = rng.standard_normal(shape) * 2.0 ** rng.integers(-140, 120, (_ROWS, 1))
        x[::16] = 0
    found: Array = round_array(x, own, as_codes=True)
    return found
