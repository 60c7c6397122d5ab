"""Decides whether a tensor survives a recipe, says why in words, and recommends a recipe for each tensor."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np

from floatlab.arrays.round_trips.recipe_tally import tally_of
from floatlab.arrays.round_trips.round_trip import is_unscaled, round_trip
from floatlab.auditing.survival.figures import (
    DAMAGED,
    OVERFLOWS,
    SURVIVES,
    RecipeFigures,
    Recommendation,
    TensorFigures,
    sqnr_of,
)
from floatlab.errors import shown_name
from floatlab.formats.recipes import Recipe
from floatlab.record import Record

MARGIN = 3.0  # dB: the noise may be twice that of normally distributed numbers
_SAVING = 0.99  # a recommended recipe needs less than this share of the stored bits
# The share of numbers that become 0 may exceed that of normally distributed numbers by at most this. A good SQNR does
# not exclude such a loss, since small numbers hardly change it.
MOST_FLUSHED = 0.25
_NAMED = 3  # of five or more names, only three are listed, then "and N more"
_NOTABLE = 1e-3  # a share of numbers that is worth mentioning as a cause
_SINGULAR = {"become": "becomes", "are": "is"}


class Usual(Record):
    """The errors that a recipe causes in normally distributed numbers: SQNR in dB, and the share that becomes 0."""

    sqnr: float
    flushed: float


@lru_cache(maxsize=256)
def usual(recipe: Recipe) -> Usual:
    """Return the errors that a recipe causes in normally distributed numbers.

    For a recipe without scales, several standard deviations are tried, and the best SQNR counts. A standard deviation
    is skipped if numbers become NaN or infinite.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> [round(usual(parse_recipe(name)).sqnr, 1) for name in ("e4m3", "mxfp4", "nvfp4")]
    [31.5, 18.8, 20.4]
    """
    # NumPy promises that RandomState will always give the same numbers for a seed; its newer generators may change.
    x = np.random.RandomState(1).standard_normal((128, 256)).astype(np.float32)
    sizes = [2.0**k for k in range(-4, 9, 2)] if is_unscaled(recipe) else [1.0]
    tallies = [tally_of(round_trip(x * np.float32(size), recipe), recipe) for size in sizes]
    found = [
        Usual(sqnr_of(each.error_squares, each.squares) or 0.0, each.flushed / each.elements)
        for each in tallies
        if not each.lost
    ]
    return max(found, key=lambda each: each.sqnr, default=Usual(0.0, 0.0))


def judged(found: RecipeFigures, flushed: float, nonzero: int, nonfinite: int, min_sqnr: float | None) -> RecipeFigures:
    """Return the errors with a verdict and its reason.

    The tensor overflows if numbers become NaN or infinite. Otherwise, the `decisive_sqnr` is judged: the SQNR of the
    layer's output or, if this is not known, the SQNR of the tensor. The tensor is damaged if the decisive SQNR is
    unknown although some numbers are not 0. With `min_sqnr`, the tensor is also damaged if the decisive SQNR is below
    `min_sqnr`. Without `min_sqnr`, it is also damaged if the decisive SQNR is more than 3 dB below the `expected` SQNR,
    or if the share of nonzero numbers that become 0 exceeds `flushed` by more than 0.25.

    `flushed` is the share of normally distributed numbers that this recipe rounds to 0. `nonzero` and `nonfinite` count
    the nonzero numbers, and the NaNs and infinities, in the source.
    """
    sqnr = found.decisive_sqnr
    needed = found.expected - MARGIN if min_sqnr is None else min_sqnr
    causes = _causes(found, nonzero)
    if found.lost:
        first = _shared(found.lost, found.elements, "become NaN or infinite")
        if nonfinite and found.scales is not None:
            first += " with the NaNs and infinities in their blocks"
        return found.replace(verdict=OVERFLOWS, reason="; ".join([first, *causes]))
    if sqnr is None and nonzero:
        said = "no SQNR is known: sums of squares are not finite, or 0, in binary64"
        return found.replace(verdict=DAMAGED, reason="; ".join([said, *causes]))
    if sqnr is not None and sqnr < needed:
        what = "the output has" if found.output_sqnr is not None else "it has"
        asked = f"{needed:g} dB are asked for" if min_sqnr is not None else f"{found.expected:.1f} dB are usual"
        return found.replace(verdict=DAMAGED, reason="; ".join([f"{what} {_below(sqnr, needed)} dB, {asked}", *causes]))
    if min_sqnr is None and nonzero and found.flushed > (flushed + MOST_FLUSHED) * nonzero:
        few = "none" if not flushed else f"{100 * flushed:.2g} %"
        said = f"{_shared(found.flushed, nonzero, 'become 0')}, {few} are usual: a few large numbers set the scales"
        return found.replace(verdict=DAMAGED, reason="; ".join([said, *causes[1:]]))
    return found.replace(verdict=SURVIVES, reason="; ".join(causes))


def _below(sqnr: float, needed: float) -> str:
    """Return `sqnr` as text, with enough digits to show that it is below `needed`.

    >>> _below(18.46, 20), _below(19.98, 20), _below(19.99999, 20)
    ('18.5', '19.98', '19.99999')
    """
    return next((text for n in range(1, 17) if float(text := f"{sqnr:.{n}f}") < needed), str(sqnr))


def _causes(found: RecipeFigures, nonzero: int) -> list[str]:
    shares = (
        (found.flushed, "become 0"),
        (found.subnormal, "become subnormal, with fewer digits"),
        (found.saturated, "are clipped to the largest number"),
    )
    return [_shared(count, nonzero, words) for count, words in shares if nonzero and count > _NOTABLE * nonzero]


def _shared(count: int, of: int, words: str) -> str:
    """Return a sentence about a share of numbers.

    >>> _shared(1, 1000, "are clipped"), _shared(500, 1000, "become 0")
    ('1 number is clipped', '50 % become 0')
    """
    share = _share(count, of)
    first, _, rest = words.partition(" ")
    return f"{share} {_SINGULAR[first] if share == '1 number' else first} {rest}"


def _share(count: int, of: int) -> str:
    """Return `count` as a percentage of `of`, with two digits. Return a small count as a number.

    >>> _share(3, 1_000_000), _share(125_000, 1_000_000), _share(999, 1000), _share(7, 7)
    ('3 numbers', '12 %', 'over 99 %', 'all')
    """
    if count == of:
        return "all"
    if count < 1000 and count < of / 100:
        return f"{count:,} number{'' if count == 1 else 's'}"
    share = 100 * count / of
    return f"{share:.2g} %" if share < 99 else "over 99 %"


def choice_of(tensor: TensorFigures, width: float) -> str:
    """Return the recipe with the fewest bits among those that a tensor survives, or "" if there is none.

    A recipe is considered only if it needs over 1 % fewer bits than `width`, the number of stored bits per element. Of
    recipes with equally many bits, the one with the best SQNR is returned. If no number of the tensor is finite, "" is
    returned.
    """
    fitting = [each for each in tensor.recipes if each.verdict == SURVIVES and each.bits < _SAVING * width]
    if not fitting or tensor.nonfinite == tensor.elements:
        return ""
    return min(fitting, key=lambda each: (each.bits, -(each.sqnr if each.sqnr is not None else 0.0))).recipe


def recommendation(
    tensors: list[TensorFigures], widths: list[float], min_sqnr: float | None, names: list[str]
) -> Recommendation:
    """Return the recommendation for all tensors, made from the recipe that was chosen for each tensor.

    `widths` has, for each tensor, the number of stored bits per element. `names` has the names by which the plan
    calls the tensors.
    """
    if min_sqnr is None:
        rule = (
            f"A tensor survives a recipe if its SQNR is at most {MARGIN:g} dB below the usual SQNR, and if no number "
            "becomes NaN or infinite. Also, the share of numbers that become 0 must be at most "
            f"{100 * MOST_FLUSHED:g} percentage points above the usual share. The usual values are those of normally "
            "distributed numbers."
        )
    else:
        rule = (
            f"A tensor survives a recipe if its SQNR is at least {min_sqnr:g} dB, and if no number becomes NaN or "
            "infinite."
        )
    measured = [
        (each, width, name)
        for each, width, name in zip(tensors, widths, names, strict=True)
        if each.choice or (each.recipes and each.elements)
    ]
    plan = tuple((name, each.choice) for each, _, name in measured)
    sizes: Counter[str] = Counter()
    bits = noise = signal = 0.0
    for each, width, _ in measured:
        sizes[each.choice] += each.elements
        chosen = next((found for found in each.recipes if found.recipe == each.choice), None)
        bits += each.elements * (width if chosen is None else chosen.bits)
        signal += max(found.squares for found in each.recipes)
        noise += 0.0 if chosen is None else chosen.error_squares
    total = sum(sizes.values())
    base = max((name for name in sizes if name), key=lambda name: sizes[name], default="")
    mean = bits / total if total else None
    sqnr = sqnr_of(noise, signal) if total else None
    words = _words("" if sizes[""] > sum(sizes.values()) / 2 else base, plan)
    if mean is not None and base:
        words += f". On average {mean:.3g} bits a number"
        if sqnr is not None and noise:
            words += f", SQNR {sqnr:.1f} dB"
    return Recommendation(words, rule, base, plan, mean, sqnr)


def _words(most: str, plan: tuple[tuple[str, str], ...]) -> str:
    """Describe a plan: first the recipe `most`, then the tensors with other recipes.

    `most` is the recipe that the plan gives to the largest number of elements, or "" if over half of the elements stay
    as stored.

    >>> _words("nvfp4", (("a", "nvfp4"), ("b", "nvfp4"), ("c", "e4m3"), ("d", "")))
    'nvfp4 for all but 2 of 4 tensors; in e4m3: c; as stored: d'
    >>> _words("", (("a", ""), ("b", ""), ("c", "e4m3")))
    'as stored for all but 1 of 3 tensors; in e4m3: c'
    """
    total = len(plan)
    if not total:
        return "no recipe: no tensor has numbers"
    which = "the tensor" if total == 1 else "both tensors" if total == 2 else f"all {total:,} tensors"
    apart: dict[str, list[str]] = {}
    for name, recipe in plan:
        if recipe != most:
            apart.setdefault(recipe, []).append(name)
    others = sum(map(len, apart.values()))
    if not others:
        return f"{most} for {which}" if most else f"none of these recipes: {which} should stay as stored"
    parts = [
        f"{f'in {recipe}' if recipe else 'as stored'}: {_few(names)}"
        for recipe, names in sorted(apart.items(), key=lambda item: (not item[0], -len(item[1])))
    ]
    return f"{most or 'as stored'} for all but {others:,} of {total:,} tensors; {'; '.join(parts)}"


def _few(names: list[str]) -> str:
    """Return up to four names, or three names and how many more there are.

    >>> _few(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    few = names if len(names) <= _NAMED + 1 else names[:_NAMED]
    more = f" and {len(names) - len(few):,} more" * (len(names) > len(few))
    return f"{', '.join(shown_name(name) for name in few)}{more}"
