"""Whether a tensor survives a recipe, in plain words, and which recipe is recommended."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache

import numpy as np

from floatlab.arrays.round_trips import is_unscaled, round_trip, tally_of
from floatlab.auditing.survival.figures import (
    DAMAGED,
    OVERFLOWS,
    SURVIVES,
    RecipeFigures,
    Recommendation,
    TensorFigures,
    sqnr_of,
)
from floatlab.formats.recipes import Recipe

MARGIN = 3.0  # dB: the noise may be twice that of normally distributed numbers
_NOTABLE = 1e-3  # a share of numbers that is worth mentioning as a cause


@lru_cache(maxsize=256)
def expected_sqnr(recipe: Recipe) -> float:
    """Return the SQNR of a recipe for normally distributed numbers; without scales, for numbers of the best size.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> [round(expected_sqnr(parse_recipe(name)), 1) for name in ("e4m3", "mxfp4", "nvfp4")]
    [31.5, 18.8, 20.4]
    """
    # The generator of RandomState is the one whose numbers NumPy promises never to change.
    x = np.random.RandomState(1).standard_normal((128, 256)).astype(np.float32)
    sizes = [2.0**k for k in range(-4, 9, 2)] if is_unscaled(recipe) else [1.0]
    found = [tally_of(round_trip(x * np.float32(size), recipe), recipe) for size in sizes]
    return max((sqnr_of(each.error_squares, each.squares) or 0.0) for each in found if not each.lost or len(found) == 1)


def judged(found: RecipeFigures, nonzero: int, nonfinite: int, min_sqnr: float | None) -> RecipeFigures:
    """Return figures with their verdict: by the smallest SQNR that was asked for, or by what the recipe can reach.

    `nonzero` is the number of nonzero numbers, `nonfinite` that of NaNs and infinities in the source.
    """
    sqnr = found.decisive_sqnr
    needed = found.expected - MARGIN if min_sqnr is None else min_sqnr
    causes = _causes(found, nonzero)
    if found.lost:
        first = f"{_share(found.lost, found.elements)} become NaN or infinite"
        if nonfinite and found.scales is not None:
            first += " with the NaNs and infinities in their blocks"
        return found.replace(verdict=OVERFLOWS, reason="; ".join([first, *causes]))
    if sqnr is not None and sqnr < needed:
        what = "the output has" if found.output_sqnr is not None else "it has"
        usual = f"{needed:.4g} dB are asked for" if min_sqnr is not None else f"{found.expected:.1f} dB are usual"
        return found.replace(verdict=DAMAGED, reason="; ".join([f"{what} {sqnr:.1f} dB, {usual}", *causes]))
    return found.replace(verdict=SURVIVES, reason="; ".join(causes))


def _causes(found: RecipeFigures, nonzero: int) -> list[str]:
    shares = (
        (found.flushed, "become 0"),
        (found.subnormal, "become subnormal, with fewer digits"),
        (found.saturated, "are clipped to the largest number"),
    )
    return [f"{_share(count, nonzero)} {words}" for count, words in shares if nonzero and count > _NOTABLE * nonzero]


def _share(count: int, of: int) -> str:
    """Return a count as a percentage with two digits; a small count as it is.

    >>> _share(3, 1_000_000), _share(125_000, 1_000_000)
    ('3 numbers', '12 %')
    """
    if count < 1000 and count < of / 100:
        return f"{count:,} number{'' if count == 1 else 's'}"
    return f"{100 * count / of:.2g} %"


def choice_of(tensor: TensorFigures) -> str:
    """Return the cheapest recipe that a tensor survives, and of equally cheap ones that with less noise; or nothing."""
    fitting = [each for each in tensor.recipes if each.verdict == SURVIVES]
    if not fitting or not tensor.elements:
        return ""
    return min(fitting, key=lambda each: (each.bits, -(each.sqnr if each.sqnr is not None else 0.0))).recipe


def recommendation(
    tensors: list[TensorFigures], widths: list[int], min_sqnr: float | None, names: list[str]
) -> Recommendation:
    """Return the plan that the choices of tensors make; `widths` are the bits of their numbers as they are stored.

    `names` are the names of the tensors in the plan.
    """
    if min_sqnr is None:
        rule = f"a recipe must stay within {MARGIN:g} dB of its SQNR on normally distributed numbers, and lose none"
    else:
        rule = f"a recipe must reach {min_sqnr:g} dB, and lose no number"
    measured = [(each, width, name) for each, width, name in zip(tensors, widths, names, strict=True) if each.recipes]
    plan = tuple((name, each.choice) for each, _, name in measured)
    sizes, counts = Counter[str](), Counter[str]()
    bits = noise = signal = 0.0
    for each, width, _ in measured:
        sizes[each.choice] += each.elements
        counts[each.choice] += 1
        chosen = next((found for found in each.recipes if found.recipe == each.choice), None)
        bits += each.elements * (width if chosen is None else chosen.bits)
        signal += max(found.squares for found in each.recipes)
        noise += 0.0 if chosen is None else chosen.error_squares
    total = sum(sizes.values())
    base = max((name for name in sizes if name), key=lambda name: sizes[name], default="")
    mean = bits / total if total else None
    sqnr = sqnr_of(noise, signal) if total else None
    words = _words(base, counts, len(measured))
    if mean is not None and base:
        words += f": {mean:.3g} bits a number"
        if sqnr is not None and noise:
            words += f", SQNR {sqnr:.1f} dB"
    return Recommendation(words, rule, base, plan, mean, sqnr)


def _words(base: str, counts: Counter[str], total: int) -> str:
    if not total:
        return "no tensor was measured"
    if not base:
        return f"none of these recipes for any of {total:,} tensors: they should stay as they are"
    others = total - counts[base]
    if not others:
        return f"{base} for all {total:,} tensors" if total > 1 else f"{base} for the tensor"
    rest = [f"{name} for {count:,}" for name, count in counts.most_common() if name not in (base, "")]
    if counts[""]:
        rest.append(f"{counts['']:,} should stay as {'it is' if counts[''] == 1 else 'they are'}")
    return f"{base} for all but {others:,} of {total:,} tensors; of those, {', '.join(rest)}"
