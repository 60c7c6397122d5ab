"""Compares quantised scales, which are stored as codes, with the largest magnitudes of the blocks."""

from __future__ import annotations

from math import prod

import numpy as np

from floatlab.arrays.codec import decode_array
from floatlab.arrays.sources import MOST_AT_ONCE
from floatlab.auditing.recipe_search.matching import Evidence, codes_of

_TIE = 1e-5  # quotients this close to a tie may be rounded to either side


@np.errstate(all="ignore")
def nested_words(evidence: Evidence) -> list[str]:
    """Return a remark on quantised scales (bitsandbytes' double quantisation), if there are any.

    The scale of a block, its largest magnitude, is stored as a code for (scale − offset) / factor. Each group of blocks
    has its own factor. The remark says how many of these codes are the nearest ones.
    """
    nested, total = evidence.nested, prod(evidence.shape)
    if nested is None or total > MOST_AT_ONCE or total % len(nested.codes):
        return []
    codes = codes_of(evidence.original, 0, total)
    x = np.abs(decode_array(codes, evidence.survey.format, np.float64)).reshape(len(nested.codes), -1)
    exact = (x.max(axis=1).astype(np.float32) - np.float32(nested.offset)).astype(np.float64)
    inner = np.repeat(nested.absmax.astype(np.float64), nested.size)[: len(exact)]
    wanted = exact / inner
    order = np.sort(nested.values.astype(np.float64))
    at = np.clip(np.searchsorted(order, wanted), 1, len(order) - 1)
    least = np.minimum(np.abs(order[at] - wanted), np.abs(order[at - 1] - wanted))
    right = int(np.count_nonzero(np.abs(nested.values[nested.codes] - wanted) <= least * (1 + _TIE) + _TIE / 100))
    share = "all" if right == len(exact) else f"{right:,} of"
    return [f"absmax is stored in codes of 8 bits: {share} {len(exact):,} are the nearest ones, with the stored offset"]
