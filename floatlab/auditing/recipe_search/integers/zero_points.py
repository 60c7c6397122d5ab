"""Finds the recipe of integers with zero points (compressed-tensors, GPTQ, AWQ).

A number is (code − zero point) × scale. Only rules without calibration are tried: the scale follows from the smallest
and the largest number of a group, or from its largest magnitude. Sources: compressed-tensors
(quantization/utils/helpers.py, calculate_qparams), GPTQModel (quantization/quantizer.py, find_params), AutoAWQ
(quantize/quantizer.py, pseudo_quantize_tensor).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from math import prod

import numpy as np

from floatlab.arrays.codec import native, round_array
from floatlab.arrays.recipes.formulas import round_to
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource, HeldSource
from floatlab.arrays.types import Array
from floatlab.auditing.quantized import QuantizedCheckpoint, recognised
from floatlab.auditing.recipe_search.records import MatchedRecipe, RecipeSearch
from floatlab.auditing.stored_parts import Weight
from floatlab.errors import FileFormatError, UnsupportedError, quoted
from floatlab.formats import Format, parse_format
from floatlab.record import Individual

_MOST = 1 << 22  # at most this many elements are compared, in whole rows
_SINGLE = parse_format("binary32")
_NEAR = 1e-5  # quotients this close to a tie may be rounded to either side
_QUOTIENTS = ("with the stored scale", "with the scale before it is rounded", "with the rounded scale of the rule")
_ON_CUDA = " on CUDA"  # on CUDA, PyTorch multiplies by the reciprocal of a constant divisor
_SOURCE = "compressed-tensors, GPTQModel, AutoAWQ: round to nearest, without calibration"


class _Groups(Individual):
    """Some rows of a weight: the code, scale and zero point of each element, and the index of each column's group.

    `top` is the largest code, and `kind` is the type of the stored scales.
    """

    codes: Array
    scale: Array
    zero: Array
    group_of: Array
    top: int
    kind: str

    @property
    def order(self) -> Array:
        """The columns, sorted by their groups."""
        return np.argsort(self.group_of, kind="stable")

    @property
    def starts(self) -> Array:
        """The index in `order` at which each group begins."""
        return np.flatnonzero(np.diff(self.group_of[self.order], prepend=-1))


class _Rule(Individual):
    """A rule for scales, computed in one working precision.

    `words` is the formula of the scales, and `zero_words` is that of the zero points. `scale` has the scale of each row
    and group. `zero_of` is a function that returns the zero points for an array of scales. `working` is the format to
    which each operation is rounded.
    """

    words: str
    scale: Array
    zero_of: Callable[[Array], Array]
    zero_words: str
    working: Format


def has_zero_points(weight: Weight) -> bool:
    """Return whether a weight has integers with zero points."""
    return any(part.endswith(("zero_point", "qzeros")) for part in weight.parts)


def search_with_zero_points(
    checkpoint: QuantizedCheckpoint,
    weight: Weight,
    original: ArraySource,
    names: tuple[str, str],
    progress: Callable[[int], Callable[[int], object]],
) -> RecipeSearch:
    """Return the rules that give the stored scales, zero points and codes.

    `names` has the names of the codes and of the original. `progress` is as in `find_recipe`; each rule counts for an
    equal share of the elements. Raises FileFormatError if the shapes differ, and
    UnsupportedError for weights that are too large.
    """
    if weight.shape != original.shape:
        said = " and ".join("×".join(map(str, shape)) for shape in (weight.shape, original.shape))
        raise FileFormatError(f"{quoted(weight.name, 90)} and the original have other shapes: {said}")
    rows = min(weight.shape[0], max(1, _MOST // weight.shape[1]))
    x = native(original.read(0, rows * weight.shape[1])).astype(np.float64).reshape(rows, -1)
    held = _groups(checkpoint, weight, rows)
    rules = [*_rules(x, held, original.format)]
    done = progress(x.size)
    matches = []
    for place, rule in enumerate(rules):
        matches.append(_matched(rule, x, held, weight))
        done(x.size * (place + 1) // len(rules) - x.size * place // len(rules))
    tried: dict[str, MatchedRecipe] = {}
    for each in sorted(matches, key=_quality, reverse=True):
        tried.setdefault(each.recipe, each)  # if a rule was tried in several precisions, keep the best
    found = [*tried.values()]
    exact = tuple(each for each in found if each.is_exact)
    exact = tuple(each for each in exact if not each.recipe.endswith(_ON_CUDA)) or exact
    return RecipeSearch(
        source=names[0], original=names[1], shape=weight.shape, format=original.format.name, tried=len(tried),
        recipes=exact, nearest=tuple(each for each in found if not each.is_exact)[:3], element=None, examples=(),
        remarks=tuple(_remarks(x, held, found[0])),
    )  # fmt: skip


def _quality(each: MatchedRecipe) -> tuple[float, float]:
    return each.codes / max(each.codes_tried, 1) + each.scales / max(each.scales_tried, 1), each.share


def _groups(checkpoint: QuantizedCheckpoint, weight: Weight, rows: int) -> _Groups:
    """Return the code, scale and zero point of each element in the first `rows` rows.

    To find scales and zero points, the weight is read twice more: as if all codes were 0, and as if all codes were the
    largest code.
    """
    tensors = checkpoint.checkpoint.tensors
    stored = tensors[weight.codes]
    if prod(stored.shape) > MOST_AT_ONCE:
        raise UnsupportedError(f"{quoted(stored.name, 90)} has over {MOST_AT_ONCE:,} words, which are not read here")
    width = re.search(r"INT(\d)", weight.convention)
    assert width is not None
    top = (1 << int(width[1])) - 1

    def read(word: int | None) -> Array:
        chosen: Weight | None = weight
        if word is not None:
            filled = partial(HeldSource, np.full(stored.shape, word, stored.kind), stored.name)
            chosen = recognised(checkpoint.parts.having(stored.replace(open=filled)), stored)
        assert chosen is not None
        with chosen.open() as source:
            return native(source.read(0, rows * weight.shape[1])).reshape(rows, -1)

    low, high = (read(-128), read(127)) if stored.kind == "int8" else (read(0), read(-1))
    with np.errstate(all="ignore"):
        scale = (high - low) / top
        zero, codes = np.rint(-low / scale), np.rint((read(None) - low) / scale)
    name = next(part for part in weight.parts if part.endswith(("weight_scale", "scales")))
    scale_shape = tensors[name].shape
    count = scale_shape[-1 if name.endswith("weight_scale") else 0] if len(scale_shape) == 2 else 1
    order = next((part for part in weight.parts if part.endswith(".g_idx")), None)
    group_of = np.arange(weight.shape[1]) // (weight.shape[1] // count)
    if order is not None:
        with tensors[order].open() as source:
            group_of = native(source.whole()).astype(np.int64)
    return _Groups(codes=codes, scale=scale, zero=zero, group_of=group_of, top=top, kind=tensors[name].kind)


def _of_groups(held: _Groups, x: Array, reduce: np.ufunc) -> Array:
    """Return the smallest or largest number of x (by `reduce`) in each row and group, in the order of the groups."""
    found: Array = reduce.reduceat(x[:, held.order], held.starts, axis=1)
    return found


def _rules(x: Array, held: _Groups, own: Format) -> Iterator[_Rule]:
    """Yield the rules of the libraries, computed in binary32 and, if the format `own` is narrower, also in `own`."""
    low, high = _of_groups(held, x, np.minimum), _of_groups(held, x, np.maximum)
    for working in dict.fromkeys((own if own.width < _SINGLE.width else _SINGLE, _SINGLE)):
        for on_cuda in (False, True):
            yield from _library_rules(low.astype(np.float32), high.astype(np.float32), held.top, working, on_cuda)


@np.errstate(all="ignore")
def _library_rules(low: Array, high: Array, top: int, working: Format, on_cuda: bool) -> Iterator[_Rule]:
    middle, lower, upper = top // 2 + 1, np.minimum(low, 0), np.maximum(high, 0)
    amax, is_empty = np.maximum(-low, high), (lower == 0) & (upper == 0)

    def rounded(values: Array) -> Array:
        return np.asarray(round_to(np.asarray(values, np.float32), working), np.float32)

    def zeros(least: Array, empty: int | None) -> Callable[[Array], Array]:
        """Return a function that computes zero points from scales, as round(−least / scale).

        For groups that have only zeros, the function gives `empty`, unless this is None.
        """

        def zero_of(scale: Array) -> Array:
            shifted = rounded(-middle - rounded(least / scale.astype(np.float32)))
            found = np.clip(np.rint(shifted) + middle, 0, top)
            return found if empty is None else np.where(is_empty, empty, found)

        return zero_of

    def always(scale: Array) -> Array:
        return np.full(scale.shape, float(middle))

    def over(span: Array, parts: float) -> Array:
        divisor = np.float32(parts)
        return rounded(rounded(span) * (np.float32(1) / divisor) if on_cuda else rounded(span) / divisor)

    eps = np.float32(2.0 ** (1 - working.precision))
    words, nearest, where = f"(max(high, 0) − min(low, 0)) / {top}", "round(−low / scale)", _ON_CUDA * on_cuda
    words += where
    # For a group of zeros, compressed-tensors replaces the scale 0 by the epsilon of its format. GPTQ takes −1 and 1
    # as the smallest and the largest number.
    scale = np.where(is_empty, eps, over(upper - lower, top))
    yield _Rule(words, scale, zeros(lower, middle), nearest, working)
    whole = np.where(is_empty, np.float32(2), upper - lower)
    yield _Rule(words, over(whole, top), zeros(np.where(is_empty, -1, lower), None), nearest, working)
    least = rounded(np.full(low.shape, 1e-5))  # AutoAWQ's smallest range
    span = np.maximum(rounded(high - low), least)
    yield _Rule(f"(high − low) / {top}{where}", over(span, top), zeros(low, None), nearest, working)
    both = np.where(is_empty, np.float32(2), np.where(lower < 0, 2 * amax, upper))
    yield _Rule(f"2 · amax / {top}{where}", over(both, top), always, str(middle), working)
    for parts in (top // 2, top // 2 + 1):
        half = over(amax, parts)
        yield _Rule(f"amax / {parts}{where}", np.where(half == 0, eps, half), always, str(middle), working)


def _matched(rule: _Rule, x: Array, held: _Groups, weight: Weight) -> MatchedRecipe:
    """Count the stored scales, zero points and codes that a rule reproduces.

    The codes are computed twice: with the stored scales, and with the scales of the rule. Of these two results, the one
    with more equal codes counts.
    """
    first = held.order[held.starts]
    scale, zero, top = held.scale[:, first], held.zero[:, first], held.top
    mine = np.asarray(rule.scale, np.float32)
    if held.kind != "float32":
        mine = np.asarray(round_array(mine, parse_format(held.kind)), np.float64)

    def rounded(values: Array) -> Array:
        return np.asarray(round_to(np.asarray(values, np.float32), rule.working), np.float64)

    with np.errstate(all="ignore"):
        points = [rule.zero_of(each) for each in (scale, rule.scale, mine)]
        right = max((np.count_nonzero(each == zero), -at) for at, each in enumerate(points))[1]
        column = np.unique(held.group_of, return_inverse=True)[1]
        codes = []
        for each in (held.scale.astype(np.float32), *(found[:, column] for found in (rule.scale, mine.astype("f4")))):
            scaled = rounded(x.astype(np.float32) / each)
            codes += [np.clip(np.rint(scaled) + held.zero, 0, top)]
            # compressed-tensors adds the zero point, as a signed number, before it rounds.
            signed = rounded(scaled + (held.zero - (top // 2 + 1)))
            codes += [np.clip(np.rint(signed) + (top // 2 + 1), 0, top)]
    best = max(range(len(codes)), key=lambda at: np.count_nonzero(codes[at] == held.codes))
    same = codes[best] == held.codes
    fits = (mine == scale) & (points[-right] == zero)
    wrong, off = np.flatnonzero(~same), np.flatnonzero(~fits)
    size = weight.shape[1] // scale.shape[1]
    return MatchedRecipe(
        recipe=f"uint{top.bit_length()}/{size} with zero points, scale {rule.words}", changes=(), source=_SOURCE,
        properties=(
            ("scale", f"{rule.words}, rounded to {parse_format(held.kind).name}"),
            ("zero point", rule.zero_words),
            ("elements", ("round(x / scale) + zero point", "round(x / scale + zero point)")[best % 2]),
            ("quotient", f"x / scale, {_QUOTIENTS[best // 2]}"),
            ("arithmetic", rule.working.name),
            ("blocks", f"groups of {size} inputs"),
        ),
        layout=(f"codes, scales and zero points: {weight.convention}",), codes=int(same.sum()), codes_tried=same.size,
        scales=int(fits.sum()), scales_tried=fits.size, tensor_scale="", is_exact=bool(same.all() and fits.all()),
        first_code=_place(wrong, same.shape), first_scale=_place(off, fits.shape),
    )  # fmt: skip


def _place(at: Array, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    return tuple(int(n) for n in np.unravel_index(int(at[0]), shape)) if len(at) else None


def _remarks(x: Array, held: _Groups, best: MatchedRecipe) -> list[str]:
    """Return remarks on the stored codes and scales.

    The remarks say whether each code is the nearest code for the stored scales, and whether a rule gives these scales.
    """
    found = []
    with np.errstate(all="ignore"):
        exact = np.clip(x / held.scale + held.zero, 0, held.top)
    near = int(np.count_nonzero(np.abs(held.codes - exact) <= 0.5 + _NEAR))
    if near < held.codes.size:
        share = f"{100 * near / held.codes.size:.3g} % of the codes"
        found.append(f"{share} are the nearest ones for the stored scales: the others make up for errors, as in GPTQ?")
    elif not best.is_exact:
        found.append("all codes are the nearest ones for the stored scales and zero points")
    if best.scales < best.scales_tried:
        found.append("scales and zero points come from another rule: a search for the least error, or other numbers?")
    return found
