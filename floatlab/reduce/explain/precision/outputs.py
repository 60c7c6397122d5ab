"""Find out how a result was rounded after summation: to which format, in which direction, or to how many digits.

The functions describe a rounding by evidence: a tuple of pairs (name, text), such as ("digits", "6").
"""

from __future__ import annotations

from collections.abc import Iterator
from math import log

import numpy as np

from floatlab.arrays.conversion import quantize
from floatlab.arrays.sources import native_dtype
from floatlab.arrays.types import Array, DType
from floatlab.errors import listed
from floatlab.formats import Format, parse_format
from floatlab.reduce.explain.epilogue.given_bias import AROUND_BIAS
from floatlab.reduce.explain.faults.patterns import BITS_OF_SUMS, evidence_bits
from floatlab.reduce.explain.findings import Fault
from floatlab.reduce.explain.noise import Totals, half_ulp
from floatlab.reduce.explain.problem import ProductProblem, Side, View
from floatlab.reduce.explain.residuals import last_places, share_of
from floatlab.reduce.results.diagnosis_record import DiagnosedCause, Evidence

_SINGLE = parse_format("fp32")
_DIRECTIONS = ("RTZ", "RTN", "RTP", "RNA")
_AGAINST = 8.0  # bits of evidence against a direction, for each number that only rounding to nearest explains
_ONE_WAY = _DIRECTIONS[:3]  # these do not round to the nearest number
_TWICE = 1.26  # rounding twice causes errors of at most this many half ulps
_DIGITS = 15  # roundings to fewer than this many printed digits are recognised
_SOME = 1 << 12  # about this many numbers are examined first
_MOST = 1 << 16  # the printed digits of at most this many numbers are examined
_SURE = 20.0  # a rounding is reported if the probability of a coincidence is at most exp(−20)
_TRIVIAL = 0.7  # few decimals are no evidence if more than this share of other numbers have as few decimals
_MOSTLY = 0.5  # if a model changes the inputs, a final rounding must explain more than this share of the numbers
_STEPS = 1, -1, 2, -3  # a number's decimals are compared with those of its neighbours at these distances in ulps
_TOWARD = 0.9  # a rounding is toward zero if more than this share of the magnitudes did not grow
_DIFFERENT = 4  # rounding to a number of bits that no format has must explain at least this many distinct numbers
_FAR = 4.0  # a rounding to fewer bits is not recognised if the median error exceeds this many half ulps of these bits
_SPARE = 3  # a rounding to fewer bits is recognised if at least this many trailing bits are 0 in all numbers


def other_roundings(side: Side, view: View, product: Array | None = None) -> Iterator[tuple[Evidence, Array]]:
    """Yield possible final roundings of `product`, which is the exact product by default.

    Each item has the evidence of the rounding, and the mask of the elements that the rounding does not explain.
    """
    with np.errstate(all="ignore"):
        if product is None:
            product = view.totals.product if view.totals.missed is None else view.totals.product + view.totals.missed
        room = view.noise.limit(view.totals)
        ends = product - room, product + room
    for format in _formats(side):
        for direction in _DIRECTIONS:
            low, high = (np.asarray(quantize(end, format, rounding=direction), np.float64) for end in ends)
            yield (
                (("format", _name(format, side)), ("rounding", direction)),
                view.usable & ~((low <= view.values) & (view.values <= high)),
            )
        if format.precision < _SINGLE.precision:
            room_twice = room + _TWICE * half_ulp(view.values, format)
            twice = view.usable & ~(np.abs(view.totals.error(view.values, product)) <= room_twice)
            yield (("format", _name(format, side)), ("rounding", "twice")), twice
        if view.bias is not None:
            before = (np.asarray(quantize(end - view.bias, format), np.float64) + view.bias for end in ends)
            low, high = (np.asarray(quantize(end, format), np.float64) for end in before)
            missed = view.usable & ~((low <= view.values) & (view.values <= high))
            yield (("format", _name(format, side)), ("rounding", AROUND_BIAS)), missed
    for known, half in _printed(side):
        # A tie between two printed numbers may be rounded up or down. A printed number that is read is rounded to the
        # format of the result. Numbers in a narrow format are rounded before and after printing.
        most = room + half * (1 + 1e-6) + half_ulp(view.values, side.format) + 2 * view.half
        missed = view.usable & ~(np.abs(view.totals.error(view.values, product)) <= most)
        # An exact sum that has as few digits itself must be unchanged.
        changed = view.usable & ~missed & (room == 0) & (view.values != product)
        at = np.flatnonzero(changed)[:_MOST]
        kept = np.asarray(quantize(product.flat[at], side.rounded_to), np.float64) == product.flat[at]
        missed.flat[at[kept & _has_digits(product.flat[at], known, side.format)]] = True
        yield known, missed


def misses_of(known: Evidence, side: Side, view: View, product: Array) -> Array:
    """Return the mask of the elements that one final rounding of a product does not explain."""
    found = (wrong for each, wrong in other_roundings(side, view, product) if each == known)
    return next(found, view.usable)


def best_cast(side: Side, view: View) -> tuple[Evidence, Array]:
    """Return the final rounding that explains the most elements, and the mask of the elements that it does not explain.

    A rounding other than to nearest is returned only if it explains clearly more elements than rounding to nearest. If
    there is none, the final rounding is taken to be to nearest: the first value is an empty tuple, and the mask marks
    the elements that rounding to nearest does not explain.
    """
    known: Evidence = ()
    best = plain = view.fit().wrong
    # Clipping also replaces numbers that are too large by the largest number.
    saturated = plain & (np.abs(view.values) == float(side.rounded_to.largest))
    for evidence, wrong in other_roundings(side, view) if (best & ~saturated).any() else ():
        if (wrong & ~saturated).sum() < (best & ~saturated).sum():
            best, known = wrong, evidence
    # A narrow format that holds all numbers is no evidence of a rounding direction, so count in ulps of this format.
    step = side.coarsest if "rounding" in dict(known) else side.format
    few = "bits" in dict(known).get("format", "") and len(np.unique(view.values[plain & ~best])) < _DIFFERENT
    bits = evidence_bits(view, plain & ~best & ~saturated, step) + _bits_of_direction(view, known, plain, best)
    if known and (few or bits < BITS_OF_SUMS):
        return (), plain  # this little evidence may be a coincidence
    return known, best


def _bits_of_direction(view: View, known: Evidence, plain: Array, wrong: Array) -> float:
    """Return the evidence, in bits, for a rounding in one direction.

    The numbers that this rounding explains are the evidence.

    Rounding to nearest would round about half of the numbers in the opposite direction, so each explained number counts
    one bit. Equal numbers count once. Numbers that are exact, up to the rounding errors of their sums, do not count. A
    number that only rounding to nearest explains is evidence against the direction. The mask `plain` marks the elements
    that rounding to nearest does not explain. The mask `wrong` marks the elements that rounding in this direction does
    not explain.
    """
    if dict(known).get("rounding") not in _ONE_WAY:
        return 0
    inexact = np.abs(view.totals.error(view.values)) > view.noise.limit(view.totals)
    right = view.right(plain | wrong) & inexact
    return np.unique(view.values[right]).size - _AGAINST * int((wrong & ~plain).sum())


def casts_of(
    problem: ProductProblem, side: Side, view: View, product: Array | None, faults: tuple[Fault, ...]
) -> Iterator[Evidence]:
    """Yield the evidence of at most one final rounding: to a scaled format, to a narrower format, or to few digits."""
    usual, exact = side.format, view.totals.product if product is None else product
    exact = next((fault.product for fault in faults if fault.product is not None), exact)
    if stored := problem.scaled_output(side):
        yield stored[0]
        return
    if side.rounded_to == usual and usual.precision < problem.widest.precision:
        usual = _SINGLE
    if side.rounded_to.precision < usual.precision and isinstance(view.half, np.ndarray):
        wrong = View(view.totals, view.values, view.usable, view.noise, usual).fit(product).wrong
        for fault in faults:
            # A fault of all elements hides the errors of the rounding. The rounding is then reported if most exact
            # values are not numbers of the format.
            local = fault.wrong if fault.name in ("elements", "region") else None
            wrong = np.asarray(not holds_mostly(side, exact)) if local is None else wrong & ~local
        # If a model explains most numbers without this rounding, the other numbers are not enough evidence.
        if wrong.any() and (product is None or faults or share_of(wrong[view.usable]) > _MOSTLY):
            names = [each.name for each in side.held] or [side.rounded_to.name]
            yield (("format", listed(names, "or")),)
    elif not faults:
        digits = printed_digits(side, view.totals, product)
        if digits:
            yield digits


def holds_mostly(side: Side, exact: Array) -> bool:
    """Return whether the result's probable format, `side.rounded_to`, also holds most numbers of `exact`."""
    usable = side.finite & np.isfinite(exact) & (exact != 0)
    some = exact[usable][:: max(1, int(usable.sum()) // _SOME)]
    return not some.size or bool(share_of(np.asarray(quantize(some, side.rounded_to), np.float64) == some) > 0.5)


def printed_digits(side: Side, totals: Totals, product: Array | None = None) -> Evidence:
    """Return, as evidence, the number of bits, decimals or digits to which all values were rounded.

    The evidence is empty if the values were not rounded, or if the numbers of the product have equally few digits
    without rounding.
    """
    exact, partial = totals.product if product is None else product, np.sqrt(totals.squares)
    usable = side.finite & np.isfinite(exact) & (side.values != 0)  # a zero does not show how many digits are kept
    step = max(1, int(usable.sum()) // _SOME)
    values, exact, partial = (each[usable][::step] for each in (side.values, exact, partial))
    kind = native_dtype(side.format)
    if kind is None or kind.itemsize < 4 or not values.size:
        return ()
    with np.errstate(all="ignore"):
        usual = exact.astype(kind).astype(np.float64)
    is_changed = values != usual
    # Equal numbers count as one observation.
    changed, places = np.unique(values[is_changed], return_index=True)
    # Numbers also have few digits if terms cancel, so the cancelled bits are no evidence.
    cancelled = np.log2(np.maximum(partial[is_changed][places] / np.abs(changed), 1.0))
    for format in _formats(side):
        share = share_of(np.asarray(quantize(usual, format), np.float64) == usual)
        bits = np.minimum(side.format.precision, np.frexp(changed)[1] - side.format.qmin)
        spare = log(2) * np.maximum(bits - format.precision - cancelled, 0)
        if _name(format, side) != format.name:
            # Differences of larger numbers also end in zeros, but have larger errors than such a rounding causes.
            beyond = np.abs(changed - exact[is_changed][places]) / half_ulp(changed, format)
            if changed.size and np.median(beyond) > _FAR:
                continue
        if min(-changed.size * log(max(share, 1e-6)), float(spare.sum())) > _SURE:
            less = share_of(np.abs(values) <= np.abs(usual)) > _TOWARD
            return (("format", _name(format, side)), *((("rounding", "RTZ"),) * bool(less)))
    for known, _ in _printed(side) if changed.size else ():
        share = share_of(_has_digits(usual, known, side.format))
        # Large floating-point numbers always have few decimals, so the neighbours of each number are examined as well.
        near = np.array([_has_digits(_moved(changed, i, kind), known, side.format) for i in _STEPS])
        least = max(share, float(near.sum() + 1) / (near.size + 1), 1e-6)
        if -np.log(np.maximum(near.mean(axis=0), least)).sum() > _SURE:
            return known
    return ()


def _moved(values: Array, steps: int, kind: DType) -> Array:
    """Return the numbers that are `steps` ulps away from `values`, which have a native dtype."""
    with np.errstate(all="ignore"):
        moved: Array = (values.astype(kind) + steps * np.spacing(values.astype(kind))).astype(np.float64)
    return moved


def printed_from(side: Side, other: Side) -> Evidence:
    """If rounding `other` to some number of digits or decimals gives `side`, return this number as evidence.

    The evidence is empty if no such number exists, if the number may fit by chance, or if the formats differ.
    """
    if side.format != other.format or not (side.finite & other.finite).all():
        return ()
    differing = side.values != other.values
    values, wanted = (each.values[differing][:_SOME] for each in (other, side))
    different, first = np.unique(wanted, return_index=True)
    # If a number is off by k ulps, about 2·k + 1 numbers are as near. So the number counts log2(2·k + 1) bits.
    bits = np.log2(1 + np.abs(values[first] - different) / half_ulp(different, side.format)).sum()
    for known, _ in _printed(side, trivial=True) if differing.sum() > 1 else ():
        count, kind = int(known[0][1]), native_dtype(side.format)
        made = np.round(values, count) if known[0][0] == "decimals" else _with_digits(values, known[0][1])
        if bits > BITS_OF_SUMS and np.array_equal(made.astype(kind).astype(np.float64), wanted):
            return known
    return ()


def unlike_formats(problem: ProductProblem, sides: tuple[Side, Side]) -> DiagnosedCause | None:
    """Return the cause of a difference between results in two formats.

    If rounding the more precise result to the other format gives the other result, the cause is this final rounding.
    Otherwise, the cause is the accumulator format of one result. Return None if the formats of the results are equal,
    or if their values need the same precision.
    """
    wide, narrow = sorted(sides, key=lambda side: -side.rounded_to.precision)
    if wide.rounded_to.precision == narrow.rounded_to.precision or narrow.format == wide.format:
        return None
    if np.array_equal(quantize(wide.values, narrow.format), narrow.values, equal_nan=True):
        evidence = (("format", narrow.format.name),)
        return DiagnosedCause("output-rounded", "output", narrow.name, 1.0, (), evidence)
    inputs = max(source.format.precision for source in problem.sources)
    side = wide if wide.format.precision > inputs else narrow
    return DiagnosedCause("accumulator", "accumulator", side.name, 1.0, (), (("format", side.format.name),))


def _formats(side: Side) -> list[Format]:
    """Return a list with the format to which a result was probably rounded at the end, or an empty list.

    The first choice is a narrower usual format that holds all values. The second choice is the result's own format, if
    this is narrower than binary32. The third is a format with a shorter significand, if all values end in zero bits.
    """
    if side.rounded_to.precision < side.format.precision:
        return [side.rounded_to]
    kind = native_dtype(side.format)
    values = side.values[side.finite & (side.values != 0)]
    if kind is None or kind.itemsize < 4 or not values.size:
        return [side.format] if side.format.precision < _SINGLE.precision else []
    # Subnormal numbers have fewer bits without any rounding.
    spare = int(np.log2(last_places(values) / (2 * half_ulp(values, side.format))).min())
    left = side.format.precision - spare
    if spare < _SPARE or left < 2:
        return []
    return [parse_format(f"e{8 if side.format.precision == _SINGLE.precision else 11}m{left - 1}")]


def _name(format: Format, side: Side) -> str:
    return format.name if format in (side.rounded_to, side.format) else f"{format.precision} bits"


def _printed(side: Side, trivial: bool = False) -> Iterator[tuple[Evidence, Array]]:
    """Yield the smallest number of decimals, and the smallest number of digits, with which all values can be written.

    Unless `trivial` is true, a count of decimals or of digits is left out if most neighbours of the values in the
    format can also be written with this count. Such a count does not show that the values were rounded to decimals or
    to digits.

    With each count comes an array: half a unit of the last digit of each value, which is the largest rounding error.
    """
    kind, values = native_dtype(side.format), side.values[side.finite]
    if kind is None or not values.any():
        return
    some = values[:: max(1, values.size // _SOME)]
    for count in range(_DIGITS - 1):
        known: Evidence = (("decimals", str(count)),)
        if _has_digits(some, known, side.format).all():
            if not trivial and _are_usual(some, known, side.format, kind):
                break  # all numbers of this size have as few decimals
            if not trivial and _is_dyadic(some, count, side):
                break
            if float(np.abs(some).max()) >= 10.0 ** (1 - count) and _has_digits(values, known, side.format).all():
                yield known, np.full(side.values.shape, 0.5 * 10.0**-count)
            break
    for count in range(1, {8: _DIGITS, 4: 9, 2: 5}.get(kind.itemsize, 1)):
        known = (("digits", str(count)),)
        few = some[:: max(1, some.size // 16)]
        if all(_has_digits(part, known, side.format).all() for part in (few, some, values[:_MOST])):
            if not trivial and _are_usual(some if kind.itemsize == 2 else few, known, side.format, kind):
                return
            with np.errstate(all="ignore"):
                # The number that represents a power of ten may be slightly below it.
                size = np.abs(side.values) * (1 + 2.0 ** (2 - side.format.precision))
                exponent = np.floor(np.log10(np.where(side.values == 0, 1.0, size)))
            yield known, np.where(side.values == 0, 0.0, 0.5 * 10.0 ** (exponent - count + 1))
            return


def _are_usual(values: Array, known: Evidence, format: Format, kind: DType) -> bool:
    """Return whether most neighbours of the values can be written with the same count of decimals or digits.

    Many numbers of a 16-bit format are still enough evidence if some of their neighbours cannot be written so. Numbers
    that end in a zero bit do not count, since they may have fewer digits for another reason.
    """
    if share_of(_has_digits(_moved(values, 1, kind), known, format)) <= _TRIVIAL:
        return False
    if format.precision >= _SINGLE.precision:
        return True
    odd = np.unique(values[values != 0])
    odd = odd[last_places(odd) <= 2 * half_ulp(odd, format)]
    # For each number, the share of longer neighbours is at most −ln of the probability that the number is as short.
    longer = [~_has_digits(_moved(odd, i, kind), known, format) for i in _STEPS]
    return float(np.mean(longer, axis=0).sum()) / log(2) <= BITS_OF_SUMS


def _is_dyadic(values: Array, decimals: int, side: Side) -> bool:
    """Return whether numbers have few decimals only because they are multiples of a power of two.

    A multiple of 2^−n has at most n decimals. Large numbers of a narrow format are integers.
    """
    if decimals:
        return bool(last_places(values).min(initial=np.inf) >= 2.0**-decimals)
    narrow = side.coarsest
    return narrow.precision < side.format.precision and float(np.abs(values).max()) > 2.0**narrow.precision


def _has_digits(values: Array, known: Evidence, format: Format) -> Array:
    """Return the mask of the values that stay the same when rounded to the decimals or digits that `known` gives."""
    ((what, text),), kind = known, native_dtype(format)
    with np.errstate(all="ignore"):
        if what == "decimals":
            # np.round computes in the dtype of the values, so both dtypes are tried.
            made = [np.round(values.astype(kind), int(text)), np.round(values, int(text)).astype(kind)]
        else:
            made = [_with_digits(values, text).astype(kind)]
    found: Array = np.any([each.astype(np.float64) == values for each in made], axis=0)
    return found


def _with_digits(values: Array, count: str) -> Array:
    return np.array([float(f"%.{count}g" % value) for value in values.ravel()]).reshape(values.shape)
