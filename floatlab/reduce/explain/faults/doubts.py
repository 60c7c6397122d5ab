"""Correct computations that may explain the errors of a result as well as a fault does.

A fault is claimed only if no such computation explains the errors.
"""

from __future__ import annotations

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.types import Array
from floatlab.formats import Format, parse_format
from floatlab.reduce.explain.faults.outliers import are_saturated
from floatlab.reduce.explain.faults.rearranged import POSSIBLE, REARRANGED
from floatlab.reduce.explain.faults.unrelated import keeps_one_number
from floatlab.reduce.explain.findings import SideExplanation
from floatlab.reduce.explain.noise import half_ulp, noise_of
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import find_places, last_places, share_of
from floatlab.reduce.explain.stages import INT4_HALF_STEPS, PLAIN, Model

IN_ANOTHER_WAY = "in another way"  # the end of the text that `rival_of` returns for results that were rounded otherwise
_LOCAL = {"elements", "region", "not-the-product"}
_PRECISION = {"inputs-rounded", "inputs-quantized", "inputs-split", "output-rounded"}
# Partial sums in a narrow format cause errors of up to this many half ulps of the largest partial sum.
_HALVES = 4.0
# With such sums, the probability that n elements are all within half an ulp of the product is about exp(−_WITHIN·n).
# The probability of m wrong elements is taken to be exp(−(_CLAIM + _EACH·m)). The likelier explanation is chosen.
_WITHIN, _CLAIM, _EACH = 0.36, 10.0, 6.0
_COARSER = 8.0  # the step of fixed-point numbers must be at least this many half ulps of the largest number
# `is_no_flushing` needs at least _COMPARED right elements that are similar to the wrong ones: their Σ|x·y| is at most
# _SIMILAR times the median of the wrong ones, and their error limits are below `least` / _FINE.
_SIMILAR, _FINE, _COMPARED = 2.0, 8.0, 8
# Flushing is excluded in two cases. Either the wrong elements form rectangles of at least _LINE elements, and there are
# at least as many similar elements. Or all wrong elements have errors above _TIMES·`least`, and there are _OTHERS times
# as many similar elements.
_LINE, _TIMES, _OTHERS = 4, 3.0, 8
_TERMS = 1 << 22  # terms are examined one by one if the wrong elements have at most this many in all
_CANCELLED = 3  # large terms may cancel, so that this many partial sums are close to zero
_STORED = 2.0**-23  # dividing by a scale and multiplying by it again changes a number by at most this share
_DECIMALS = 7  # numbers with fewer decimals than this may come from a printed text
# Other inputs may explain wrong elements whose errors are at most this many times a model's typical change.
_LIKE_INPUTS = 4.0
_SCALED = 32  # if the scales of an output are unknown, elements are wrong only if at least this many numbers are right
_FOUR_BITS, _MOSTLY = 2.0**-4, 0.9  # relative half ulp of 4 bits; the least share of numbers that have 4 bits
# Rounding to 2 bits changes a number by at most the share _TWO_BITS. Right elements are evidence if at least the share
# _LONGER of their products has more than _FEW_BITS bits.
_TWO_BITS, _FEW_BITS, _LONGER = 0.25, 4, 0.1
_RIGHT_ONES = 4  # fewer right elements than this may be right by chance
# Rounding to fewer bits is an explanation if at least the last _SPARE bits of the format are unused in all numbers. The
# errors may then be up to _STEPS units of the last used bit.
_SPARE, _STEPS = 3, 8.0
_SCATTERED = 16  # if the scales of an output are unknown, more scattered elements than this are not called wrong
_RESCALED = 1 / 32  # if inputs are quantised, a factor of 1 ± this may come from another scale of the inputs
_QUANTIZED = 0.25  # errors of quantised inputs are at most this multiple of √Σ(x·y)²
# The last bits of at least _ALIGNED wrong elements are evidence of aligned terms if the weight of the last bit is
# larger than in the exact product for more than the share _DROPPED of these elements.
_ALIGNED, _DROPPED = 8, 0.75


def rival_of(
    problem: ProductProblem, view: View, found: SideExplanation, is_alone: bool, odds: float
) -> tuple[str, str] | None:
    """Return two texts: a doubtful fault, and a correct computation that may explain the result as well as the fault.

    The first text names the fault, such as "wrong elements". The second text names the computation. Return None if no
    computation casts doubt on the fault, or if `found` claims no fault. `view` allows for the rounding errors of the
    usual accumulator. Two results of the product are compared; `is_alone` says whether they differ only in the wrong
    elements. `odds` is the result of `rearranged_odds`.
    """
    names = {each.name for each in found.causes}
    if found.status != "bug" or "nan" in names:
        return None
    wrong = view.fit().wrong
    if names <= _LOCAL:
        least = 2.0**found.side.format.emin
        if may_be_flushed(view, wrong, least, problem.x, problem.y) and not is_no_flushing(problem, view, wrong, least):
            return "wrong elements", "subnormal numbers that were flushed to zero"
        if words := digits_of(view, wrong):
            return "wrong elements", words
        if may_be_scaled_output(view, wrong) or keeps_one_number(view, wrong):
            return "wrong elements", "a result that was rounded to few digits with a scale"
        if odds > POSSIBLE:
            return "wrong elements", REARRANGED
        if keep_single_numbers(problem, view, wrong):
            return "wrong elements", "inputs that were quantised with one scale per row or column"
    is_cast = names & _LOCAL and names <= _LOCAL | {"output-rounded"}
    if is_cast and (bits := fewer_bits(view, wrong, found.side)):
        return "wrong elements", f"sums or results of {bits} bits"
    if is_cast and may_be_rounded_numbers(view, wrong):
        return "wrong elements", "inputs that were rounded to few digits"
    is_cast = is_cast and found.side.rounded_to != found.side.format
    if is_cast and found.wrong is not None and are_multiples(view, found.wrong):
        return "wrong elements", "a result that was rounded to few digits and then multiplied by a scale"
    product = None if found.model is PLAIN else problem.whole(found.model)
    is_local = names & _LOCAL and names <= _LOCAL | _PRECISION
    twice = any(("rounding", "twice") in each.evidence for each in found.causes)
    if is_local and (off := found.wrong) is not None:
        is_weak = are_saturated(view, off) or (off.sum() > _SCATTERED and find_places(off) is None)
        if has_output_scale(found) and (is_weak or _count_right(view, off) < _SCALED):
            return "wrong elements", "inputs that were rounded to few digits"
        if may_be_rounded_again(view, product, off, twice):
            name = found.side.rounded_to.name
            return "wrong elements", f"results or partial sums that were rounded to {name} {IN_ANOTHER_WAY}"
        if product is not None and not is_alone and may_be_other_inputs(view, found.model, product, off):
            return "wrong elements", "inputs that were rounded in another way"
    if names & {"bias", "not-the-product"} and may_be_fixed_point(view, product, found.side.format):
        return "a bias" if "bias" in names else "another product", "fixed-point numbers that were truncated"
    factors = [dict(each.evidence).get("factor", "") for each in found.causes if each.name == "scale"]
    near = [each for each in factors if each[:1].isdigit() and abs(float(each) - 1) < _RESCALED]
    if "inputs-quantized" in names and near:
        return f"a factor of {near[0]}", "inputs quantised with another scale"
    return None


def may_be_flushed(view: View, wrong: Array, least: float, x: Array, y: Array) -> bool:
    """Return whether the errors of the wrong elements are small enough to be caused by flushing to zero.

    Inputs, products and partial sums below `least` are assumed to be flushed.
    """
    error = (
        np.abs(view.totals.error(view.values))[wrong]
        - np.broadcast_to(view.noise.limit(view.totals), wrong.shape)[wrong]
    )
    if not wrong.any() or not ((error <= 2 * view.totals.terms * least) & (view.totals.size > 0)[wrong]).all():
        return False
    if error.size * view.totals.terms > _TERMS:
        return True
    rows, columns = np.nonzero(wrong)
    a, b = x[rows], y[:, columns].T
    signed, room = view.totals.error(view.values)[wrong], np.broadcast_to(view.noise.limit(view.totals), wrong.shape)
    for sign in (1, -1):  # if all terms have this sign, flushing some of them cannot cause an error of the same sign
        if ((sign * a * b >= 0).all(axis=1) & (sign * signed > room[wrong])).any():
            return False
    a, b = np.abs(a), np.abs(b)
    lost = ((a < least) | (b < least) | (a * b < least)) & (a * b > 0)
    # Each small term may be lost, and the partial sum after it. A few other partial sums may also be close to zero.
    most = (lost * (a * b + least)).sum(axis=1) + _CANCELLED * least
    return bool((error <= most).all())


def is_no_flushing(problem: ProductProblem, view: View, wrong: Array, least: float) -> bool:
    """Return whether right elements show that flushing numbers below `least` to zero is not the cause.

    Flushing would also change these elements, because their terms are equally small. The result can be true only if the
    wrong elements form a rectangle, or if the errors of all wrong elements are several times `least`.
    """
    error, room = np.abs(view.totals.error(view.values)), view.noise.limit(view.totals) + view.half
    similar = view.usable & ~wrong & (view.totals.size > 0) & (room < least / _FINE)
    similar &= view.totals.size <= _SIMILAR * float(np.median(view.totals.size[wrong]))
    x, y = (np.where(np.abs(each) < least, 0.0, each) for each in (problem.x, problem.y))
    from_inputs = np.abs(x @ y - view.values) <= room
    if similar.sum() < _COMPARED or share_of(from_inputs[wrong]) > 0.5:
        return False
    places = find_places(wrong)
    if places is not None and places.name == "region" and wrong.sum() >= _LINE:
        return bool(similar.sum() >= wrong.sum())
    return bool((error > _TIMES * least)[wrong].all() and similar.sum() >= _OTHERS * max(int(wrong.sum()), _LINE))


def drops_terms(problem: ProductProblem, model: Model) -> bool:
    """Return whether a model changes the inputs only by making whole terms zero, as if a loop left them out."""
    if model.changes is None or not model.name.startswith("inputs"):
        return False
    kept, same = np.ones(problem.factors[0].shape[1], np.bool_), []
    for side, axis, change in zip(problem.factors, (1, 0), model.changes, strict=True):
        with np.errstate(all="ignore"):
            made = np.asarray(change(side, side, axis))
        lost = (made == 0) & (side != 0)
        kept &= ~(lost.any(axis=1 - axis) & (lost | (side == 0)).all(axis=1 - axis))
        same.append((np.abs(made - side) <= _STORED * np.abs(side)).all(axis=1 - axis))
    # What happens to the other factor of a term that is zero makes no difference.
    return bool(kept.any() and not kept.all() and (same[0] & same[1])[kept].all())


def has_output_scale(found: SideExplanation) -> bool:
    """Return whether an explanation says that the result was rounded to a format with a scale."""
    return any(each.name == "output-rounded" and "scale per" in dict(each.evidence) for each in found.causes)


def may_be_scaled_output(view: View, wrong: Array) -> bool:
    """Return whether a result may be rounded to 4 bits with a scale.

    At most one nonzero number is then right: the largest one, which the scale usually maps to a number of the narrow
    format.
    """
    if not wrong.any() or _count_right(view, wrong) > 1:
        return False
    if not any(_have_four_bits(view, axis) for axis in (None, 0, 1)):
        return False
    error, exact = np.abs(view.totals.error(view.values))[wrong], np.abs(view.totals.product)
    room = np.maximum(_FOUR_BITS * exact[wrong], float(exact[view.usable].max(initial=0.0)) / INT4_HALF_STEPS)
    return bool((error <= room).all())


def _have_four_bits(view: View, axis: int | None) -> bool:
    """Return whether most numbers of a result are 4-bit numbers times a scale.

    There is one scale for each column (axis 0), for each row (axis 1), or for the whole result (axis None).

    The ratio of a number to the largest number with the same scale is then a ratio of two 4-bit integers times a power
    of two.
    """
    sizes = np.where(view.usable, np.abs(view.values), 0.0)
    with np.errstate(all="ignore"):
        ratio = np.frexp(sizes / sizes.max(axis=axis, keepdims=True))[0][sizes > 0]
    digits = np.arange(1.0, 16.0)
    known = np.unique(np.frexp(digits[:, None] / digits)[0])
    above = np.searchsorted(known, ratio).clip(1, len(known) - 1)
    near = np.minimum(np.abs(ratio - known[above - 1]), np.abs(ratio - known[above])) <= 2.0 ** (
        2 - view.format.precision
    )
    return share_of(near) > _MOSTLY


def _count_right(view: View, wrong: Array) -> int:
    """Return the number of distinct nonzero values among the right elements."""
    return np.unique(view.values[view.right(wrong)]).size


def may_be_rounded_numbers(view: View, wrong: Array) -> bool:
    """Return whether inputs that were rounded to few bits may explain the wrong elements.

    Each wrong element must be a sum with about one nonzero term. An example is an input whose rows have a single 1,
    which selects rows of the other input. Right elements are evidence against such inputs only if there are at least
    four, and if at least a tenth of their exact values have more than 4 bits. Values of few bits are right even with
    rounded inputs.
    """
    totals = view.totals
    right = view.right(wrong) & (totals.product != 0)
    if not wrong.any() or not totals.have_one_term[wrong].all():
        return False
    error, exact = np.abs(totals.error(view.values)), np.abs(totals.product)
    room = np.maximum(_TWO_BITS * exact, float(exact[view.usable].max(initial=0.0)) / INT4_HALF_STEPS)
    are_no_evidence = right.sum() < _RIGHT_ONES or share_of(_bits_of(totals.product[right]) > _FEW_BITS) < _LONGER
    return bool((error <= room)[wrong].all() and are_no_evidence)


def keep_single_numbers(problem: ProductProblem, view: View, wrong: Array) -> bool:
    """Return whether quantised inputs with one scale per row or column may be the cause of the wrong elements.

    Such a quantisation does not change a row of x (or a column of y) whose nonzero numbers all have the same magnitude.
    So every row of the result that has no wrong element must come from such a row of x, and most elements of the other
    rows must be wrong; or the same holds for columns. Also, the errors must be as small as those of quantised inputs.
    """
    with np.errstate(all="ignore"):
        far = np.abs(view.totals.error(view.values)) > _QUANTIZED * np.sqrt(view.totals.squares)
    if (far & wrong).any():
        return False
    for axis, lines in ((1, problem.x), (0, problem.y.T)):
        is_right = ~wrong.any(axis=axis)
        if not 0 < is_right.sum() < len(lines) or share_of(wrong.compress(~is_right, 1 - axis)) <= 0.5:
            continue
        if all(len(np.unique(np.abs(line[line != 0]))) <= 1 for line in lines[is_right]):
            return True
    return False


def fewer_bits(view: View, wrong: Array, side: Side) -> int:
    """Return the number of bits to which sums or results may have been rounded, if this explains the wrong elements.

    All numbers of the result then have at most this many bits. One of two other conditions must hold. The first
    condition is that most exact products of wrong elements have more bits. The second condition is that the last bits
    of most wrong elements have larger weights than the last bits of their exact products. Matrix units cause this,
    because they align all terms to the largest term and drop the lower bits. Return 0 if such a rounding does not
    explain the wrong elements.
    """
    values, exact, found = view.values[view.usable], view.totals.product[wrong], view.values[wrong]
    if not wrong.any() or not values.any():
        return 0
    bits = int(_bits_of(values).max())
    are_aligned = found.size >= _ALIGNED and bool(exact.all() and found.all())
    are_aligned = are_aligned and share_of(last_places(found) > last_places(exact)) > _DROPPED
    is_narrow = side.rounded_to.precision < side.format.precision
    most = side.rounded_to.precision - 1 if is_narrow else side.format.precision - _SPARE
    if bits > most or not (are_aligned or share_of(_bits_of(exact) > bits) >= 0.5):
        return 0
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(view.values), np.sqrt(view.totals.squares))[wrong]
        step = np.exp2(np.floor(np.log2(largest)) - bits + 1)
    steps = 2 * _STEPS if are_aligned else _STEPS  # each dropped part of a term adds to the error
    return bits if (np.abs(view.totals.error(view.values))[wrong] <= steps * step).all() else 0


def _bits_of(numbers: Array) -> Array:
    """Return the number of significant bits of each number other than 0."""
    numbers = numbers[(numbers != 0) & np.isfinite(numbers)]
    if not numbers.size:
        return np.zeros(1, np.int64)
    count: Array = np.frexp(numbers)[1] - np.frexp(last_places(numbers))[1] + 1
    return count


def may_be_other_inputs(view: View, model: Model, product: Array, wrong: Array) -> bool:
    """Return whether the wrong elements may come from inputs whose rounding differs slightly from that of a model.

    An example is quantisation with another scale. The errors against the product of the model must then be at most a
    few times as large as the typical change that the model causes. If the model rounds to one format, and whole rows or
    whole columns are wrong, an error may also be as large as 2^(1−p)·Σ|x·y|, where p is the precision of this format.
    Inputs rounded to the other neighbour cause such errors.
    """
    totals = view.totals
    with np.errstate(all="ignore"):
        scale = np.sqrt(totals.squares)
        change = (np.abs(product - totals.product) / scale)[view.usable & ~wrong & (totals.squares > 0)]
        room = _LIKE_INPUTS * np.sqrt((change * change).mean()) * scale if change.size else 0.0 * scale
        error = np.abs(totals.error(view.values, product))
    if model.is_one_rounding and any((wrong == wrong.all(axis=axis, keepdims=True)).all() for axis in (0, 1)):
        ulp = 2.0 ** (1 - parse_format(dict(model.evidence)["format"]).precision)
        room = np.maximum(room, ulp * totals.size)
    return bool((error <= room)[wrong].all())


def may_be_rounded_again(view: View, product: Array | None, wrong: Array, twice: bool = False) -> bool:
    """Return whether rounding to the narrow format of a result explains the wrong elements.

    The partial sums may also have been rounded to this format. Or the final rounding may differ from the usual one.
    `product` is the product of a model of the inputs, or None for the exact product. `twice` says that other elements
    were rounded twice, so the partial sums were probably rounded.
    """
    if not isinstance(view.half, np.ndarray):
        return False
    error = np.abs(view.totals.error(view.values, product))
    exact = noise_of(view.format).is_exact(view.totals, product)  # no partial sum is rounded in the narrow format
    with np.errstate(all="ignore"):
        largest = np.maximum(np.abs(view.values), np.sqrt(view.totals.squares))
        room = _HALVES * half_ulp(largest, view.format) + view.noise.limit(view.totals, product)
    seen = view.usable & ~wrong & ~exact
    claim = _CLAIM + _EACH * int(wrong.sum())
    return bool(((error <= room) & ~exact)[wrong].all()) and (twice or _WITHIN * int(seen.sum()) < claim)


def digits_of(view: View, wrong: Array) -> str:
    """If decimal digits that were rounded or cut off may explain the wrong numbers, describe this; otherwise return "".

    Either the numbers were rounded to few digits, or further digits were cut off. The binary64 number for 0.3, for
    example, is slightly smaller than 0.3, and its first decimal digit is 2. If the digits after the first one are cut
    off, the result 0.2 is therefore correct. The exact products of most wrong elements must have more digits than the
    result.
    """
    values, exact = view.values[view.usable], view.totals.product[wrong]
    error = np.abs(view.totals.error(view.values))[wrong]
    if not error.size or not values.any():
        return ""
    half = np.broadcast_to(view.half, wrong.shape)[wrong]
    is_exact = bool(view.noise.is_exact(view.totals)[wrong].any())
    for count in range(1, _DECIMALS):
        for are_decimals in (True, False):
            made, steps = (_rounded(each, count, are_decimals) for each in (values, view.values[wrong]))
            if not np.array_equal(quantize(made[0], view.format), values):
                continue
            if share_of(np.asarray(quantize(_rounded(exact, count, are_decimals)[0], view.format)) == exact) > 0.5:
                continue
            if (error <= (0.5 + 1e-6) * steps[1] + 2 * half).all():
                return "numbers that were rounded to few decimal digits"
            if not is_exact and (error <= (1 + 1e-6) * steps[1] + 2 * half).all():
                return "decimal digits that were cut off"
    return ""


def _rounded(numbers: Array, count: int, are_decimals: bool) -> tuple[Array, Array]:
    """Return numbers rounded to `count` decimals or significant digits, and the weight of the last digit of each."""
    with np.errstate(all="ignore"):
        places = np.floor(np.log10(np.where(numbers == 0, 1.0, np.abs(numbers))))
        last = np.full(numbers.shape, -float(count)) if are_decimals else places - count + 1
        return np.rint(numbers / 10.0**last) / 10.0**-last, 10.0**last


def may_be_fixed_point(view: View, product: Array | None, output: Format) -> bool:
    """Return whether a result may consist of truncated fixed-point numbers.

    All numbers of the result are then multiples of one step, which is larger than the ulps of the format `output`. Most
    elements of the product are not multiples of the step. An error is at most n + 1 steps in a sum of n terms.
    """
    values = view.values[view.usable]
    places = last_places(values)
    if not places.size:
        return False
    step = float(places.min())
    if step < _COARSER * half_ulp(np.abs(values).max(), output):
        return False
    exact = (view.totals.product if product is None else product)[view.usable]
    with np.errstate(all="ignore"):
        between = np.remainder(exact, step) != 0
    error = np.abs(view.totals.error(view.values, product))[view.usable]
    return bool(share_of(between) > 0.5 and (error <= (view.totals.terms + 1) * step).all())


def are_multiples(view: View, wrong: Array) -> bool:
    """Return whether the wrong elements may be exact numbers that were rounded to multiples of a step.

    The step is the largest power of two of which all numbers of the result are multiples. Rounding errors of sums are
    also allowed. An example is a result in a narrow format that is then multiplied by a power of two: its subnormal
    numbers become normal numbers, but still have few digits.
    """
    step = float(last_places(view.values[view.usable]).min(initial=np.inf))
    error = np.abs(view.totals.error(view.values)) - view.noise.limit(view.totals)
    return bool(wrong.any() and np.isfinite(step) and (error <= step / 2)[wrong].all())
