"""Looks for the cause of a weight's error: a mistake whose repair removes the error, or a relation to its original."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite, isinf

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import ArraySource, HeldSource
from floatlab.auditing.fidelity import MOST_LEFT, Fidelity, measure
from floatlab.auditing.line_orders import SAMPLE
from floatlab.auditing.originals.arranged import Counterpart
from floatlab.auditing.quantized import QuantizedCheckpoint, recognised
from floatlab.auditing.relations import (
    RESCALED,
    both,
    exchanged_lines,
    factor_off,
    is_rotated,
    order_of_all,
    relation,
    times_off,
)
from floatlab.auditing.repairs import Repair, repairs, similar_weights
from floatlab.auditing.rerounding.agreement import CodeAgreement, agreement
from floatlab.auditing.rerounding.columns import column_factors, is_fed_back_by_columns, regrouped
from floatlab.auditing.rerounding.directions import has_unequal_codes, is_directed
from floatlab.auditing.rerounding.grids import grid_of
from floatlab.auditing.rerounding.refitting import is_refitted
from floatlab.auditing.stored_parts import Weight, bits_used, group_of, is_scale
from floatlab.errors import FloatlabError, counted, plural
from floatlab.record import Individual

_SMALL_SAMPLE = 1 << 16
_MOSTLY = 0.4  # if a weight has a small error, a repair must leave less than this share of the error
_UNRELATED = 0.1  # numbers with a smaller cosine than this are unrelated
_TURNED = 0.5  # after a rotation, the cosine of a weight and its original is smaller than this
# A repaired weight is right if it looks like the result of one of three kinds of quantisers:
# * rounding to nearest: at least the share _ROUNDED of the codes is nearest to the original;
# * error feedback: at least the share _FED_BACK is nearest to the original, and at most the share _FAR is far from it;
# * truncation: at most the share _NONE_FAR is far from the original.
_ROUNDED, _FED_BACK, _FAR, _NONE_FAR = 0.97, 0.7, 0.06, 0.002
_BETTER = 0.02
_MOST_FED_BACK, _FEW_BITS = 0.6, 3.0  # from 3 bits on, error feedback leaves at most this relative error
_COARSE = 0.1  # rounding a normal scale to 8 bits changes it by less than this share
_CERTAIN = 0.99  # if a repair makes this share of the codes nearest, no other repair is tried
_ABOUT = 50  # if the shares of nearest codes after two repairs differ by less than 1/50, the simpler one is chosen
_FINER = 0.008  # the relative distance between factors that are tried
_LEAST_FACTOR = 0.01  # factors that differ from 1 by less than this cannot be distinguished from rounding


class ComparedWeight(Individual):
    """A weight and its original `x`, with its errors (`fidelity`).

    `bits` is the size of a code. `agreement` compares the codes with the original; it is None if `grid_of` does not
    know the numbers that the codes stand for, or if the original has no finite number.
    """

    read: QuantizedCheckpoint
    weight: Weight
    x: ArraySource
    bits: float
    fidelity: Fidelity
    agreement: CodeAgreement | None

    @property
    def is_fed_back(self) -> bool:
        """Whether the codes and errors look like those of a quantiser that feeds errors back, such as GPTQ."""
        has_such_codes = self.agreement is not None and self.agreement.is_fed_back
        return has_such_codes and self.fidelity.relative_error < self.fidelity.most and not self.fidelity.nans

    @property
    def is_explained(self) -> bool:
        """Whether a known way of rounding the original gives the codes. True if `agreement` is None.

        The known ways are rounding to nearest, directed and stochastic rounding, GPTQ, and scales that were rounded or
        fitted after the codes had been computed.
        """
        agreed = self.agreement
        if agreed is None or (grid := grid_of(self.read.parts, self.weight)) is None:
            return True
        if agreed.is_directed:
            return True
        with self.weight.open() as q, np.errstate(all="ignore"):
            size, most = group_of(self.weight, self.read.checkpoint.tensors), self._rounding_of_scales()
            if not most and agreed.bad_blocks and agreed.is_nearest_elsewhere:
                return False  # fitted scales and fed back errors would also change the codes of other blocks
            return is_refitted(q, self.x, grid, size, most) or is_fed_back_by_columns(q, self.x, grid)

    def _rounding_of_scales(self) -> float:
        """Return the largest relative change of a scale by rounding to its stored type; 0 if the type has many bits."""
        tensors = self.read.checkpoint.tensors
        if has_rounded_scales(self.weight):
            return inf  # double quantisation rounds small scales coarsely
        is_ggml = not tensors[self.weight.codes].kind  # llama.cpp also changes scales by weighted least squares
        is_coarse = is_ggml or any(tensors[name].kind == "e4m3fn" for name in self.weight.parts if is_scale(name))
        return _COARSE if is_coarse else 0.0

    @property
    def is_rotated(self) -> bool:
        """Whether the original may have been multiplied by an orthogonal matrix before it was rounded."""
        if abs(self.fidelity.cosine) >= _TURNED or isinf(self.fidelity.relative_error):
            return False
        with self.weight.open() as q:
            return is_rotated(q, self.x)

    @property
    def may_be_fed_back(self) -> bool:
        """Whether error feedback, as in GPTQ, may explain errors that are larger than those of rounding."""
        if self.fidelity.nans:
            return False
        if self.agreement is None or (grid := grid_of(self.read.parts, self.weight)) is None:
            return False
        if self.agreement.may_be_pushed:
            return True
        if self.agreement.is_nearest_elsewhere:
            return False
        if self.fidelity.relative_error > _MOST_FED_BACK and self.bits >= _FEW_BITS:
            return False
        with self.weight.open() as q, np.errstate(all="ignore"):
            return is_fed_back_by_columns(q, self.x, grid)


def has_rounded_scales(weight: Weight) -> bool:
    """Return whether the scales were rounded after the codes had been computed with them, as in double quantisation."""
    return any(part.endswith(".nested_absmax") for part in weight.parts)


class WeightCause(Individual):
    """The cause of a weight's error, in `words`.

    `is_damage` is False if the weight may be right: it may have been made from another original.
    """

    words: str
    is_damage: bool = True


def compared(read: QuantizedCheckpoint, weight: Weight, x: ArraySource) -> ComparedWeight:
    """Measure the errors of a weight relative to its original `x`, and compare its codes with `x`."""
    bits = bits_used(weight, read.checkpoint.tensors[weight.codes])
    fidelity = _measured(read, weight, x, bits)
    grid = grid_of(read.parts, weight)
    found = None
    if grid is not None and fidelity.unknown < fidelity.elements:
        with weight.open() as q:
            found = agreement(q, x, grid)
    return ComparedWeight(read=read, weight=weight, x=x, bits=bits, fidelity=fidelity, agreement=found)


def _measured(
    read: QuantizedCheckpoint, weight: Weight, x: ArraySource, bits: float, most: int | None = None
) -> Fidelity:
    tensors = read.checkpoint.tensors
    is_nested = any("nested" in part for part in weight.parts)
    with weight.open() as q:
        return measure(
            q, x, most, bits, tensors[weight.codes].kind, group_of(weight, tensors), own_scales=not is_nested
        )


def cause_of(found: ComparedWeight) -> WeightCause | None:
    """Return the cause of a weight's error, or None if no cause is found."""
    if (cause := repaired(found)) or (cause := _other_groups(found)) or (cause := lines_cause(found)):
        return cause
    with found.weight.open() as q:
        if found.agreement is not None and (grid := grid_of(found.read.parts, found.weight)) is not None:
            factors = column_factors(q, found.x, grid)
            if factors is not None:
                return WeightCause(f"{factors.words}: is this its original?", is_damage=False)
            if abs(found.fidelity.cosine) < _TURNED and (words := order_of_all(q, found.x)):
                return WeightCause(words)
            if found.is_fed_back or found.may_be_fed_back:
                return _one_factor(found)
        group = group_of(found.weight, found.read.checkpoint.tensors)
        words = factor_off(q, found.x) if found.fidelity.fits else relation(q, found.x, group)
    return WeightCause(words, is_damage=words != RESCALED) if words else None


def _other_groups(found: ComparedWeight) -> WeightCause | None:
    """Return a cause if the codes were computed with other groups of columns than the stored ones; otherwise None."""
    order = next((name for name in found.weight.parts if name.endswith("g_idx")), None)
    if order is None or found.agreement is None:
        return None
    stored = found.read.checkpoint.tensors[order]
    repair = regrouped(found.read.parts, found.weight, stored, found.x)
    if repair is None:
        return None
    parts, weight = repair
    left = _measured(found.read, weight, found.x, found.bits, SAMPLE)
    grid = grid_of(parts, weight)
    if grid is None or not left.fits or left.relative_error >= found.fidelity.relative_error * _MOSTLY:
        return None
    words = f"{order} names other groups of columns than those that the codes were made with"
    return _corrected(found, words, left.relative_error)


def _corrected(found: ComparedWeight, words: str, error: float) -> WeightCause:
    """Return a cause whose words state a mistake and the relative error after its correction."""
    before = found.fidelity.relative_error
    return WeightCause(f"{words}; corrected, the relative error is {error:.2g} instead of {before:.3g}")


def owner_of_codes(found: ComparedWeight, originals: Callable[[Weight], Counterpart | None]) -> str:
    """Return the name of another weight to which the codes belong, or "".

    The codes, with the scales of the other weight, must give the original of that weight. `originals` returns the
    original of a weight.
    """
    own = found.read.checkpoint.tensors[found.weight.codes]
    for other in similar_weights(found.read, found.weight):
        codes = found.read.checkpoint.tensors[other.codes]
        parts = found.read.parts.having(codes.replace(open=own.open))
        try:
            weight = recognised(parts, parts.tensors[other.codes])
            original = originals(other)
            if weight is None or original is None:
                continue
            with original.open() as x:
                left = _measured(found.read, weight, x, found.bits, _SMALL_SAMPLE)
        except FloatlabError:
            continue
        if left.fits and left.is_close:
            return other.name
    return ""


def lines_cause(found: ComparedWeight) -> WeightCause | None:
    """Return a cause if a few rows or columns are exchanged with each other; otherwise None."""
    with found.weight.open() as q:
        words = exchanged_lines(q, found.x)
    return WeightCause(words) if words else None


def small_cause(found: ComparedWeight) -> WeightCause | None:
    """Return a mistake in the weight, or None if none is found.

    A mistake may change codes by only one step, so that the error is small. Such a mistake is returned only if its
    correction removes most of the error, or makes nearly every code the one nearest to its original number.
    """
    if found.agreement is None or found.agreement.share(found.agreement.nearest) >= _ROUNDED:
        return None
    return repaired(found) or _one_factor(found)


def _one_factor(found: ComparedWeight) -> WeightCause | None:
    """Return a cause if all numbers are too large or too small by one factor; otherwise None.

    If the decoded numbers are divided by the factor, nearly every code must be the one nearest to its original number.

    If directed rounding also explains the codes, the weight's error must be large, and the division must remove most of
    it.
    """
    grid = grid_of(found.read.parts, found.weight)
    if grid is None:
        return None
    with found.weight.open() as read:
        pair = both(read, found.x)
        if pair is None:
            return None
        q, x = pair
        directed = is_directed(q, x, grid)
        if found.fidelity.fits and directed:
            return None
        with np.errstate(all="ignore"):
            mean = float((q * x).sum() / np.square(x).sum())
            if not isfinite(mean) or abs(mean - 1) < _LEAST_FACTOR:
                return None
            # Clipped numbers shift the mean, so factors around it are tried.
            tried = [mean * (1 + step * _FINER) for step in (0, 1, -1, 2, -2, 3, -3, 4, -4)]
            found_with = [agreement(HeldSource(q), HeldSource(x * each), grid, _SMALL_SAMPLE) for each in tried]
            factor = tried[max(range(len(tried)), key=lambda at: found_with[at].nearest)]
            after = agreement(HeldSource(q), HeldSource(x * factor), grid)
            before, left = (float(np.linalg.norm(each - x) / np.linalg.norm(x)) for each in (q, q / factor))
    if after.share(after.nearest) < _ROUNDED or has_unequal_codes(q, x, grid):
        return None
    may_be_right = directed and found.agreement is not None and found.agreement.belongs
    if not left < before * (_MOSTLY if may_be_right else 1):  # NaN if all numbers are 0
        return None
    return WeightCause(f"its numbers are {times_off(factor)}; divided by that, the relative error is {left:.2g}")


def repaired(found: ComparedWeight) -> WeightCause | None:
    """Return the mistake whose correction makes the weight fit its original best; None if no correction makes it fit.

    If the error is small, the correction must also remove most of the error, or make nearly every code the one nearest
    to its original number.
    """
    causes: list[tuple[float, float, int, float, str]] = []
    sample = _SMALL_SAMPLE if found.fidelity.fits else SAMPLE
    for repair in repairs(found.read, found.weight, _zero_step(found)):
        left = _measured(found.read, repair.weight, found.x, found.bits, sample)
        if left.fits and left.relative_error < found.fidelity.relative_error:
            share = _nearest_after(found, repair, sample)
            most = found.fidelity.relative_error * _MOSTLY if found.fidelity.fits and share < _ROUNDED else inf
            if share and left.relative_error < most:
                rank = -round(share * _ABOUT), len(causes)
                causes.append((repair.is_exchange, *rank, left.relative_error, repair.words))
                if share >= _CERTAIN:
                    break  # later repairs are more complicated
    if not causes:
        return None
    is_exchange, _, _, error, words = min(causes, key=lambda each: (each[1], *each))
    if is_exchange and (factor := _one_factor(found)):
        return factor  # more plausible than the scales of another weight, which may fit by chance
    return _corrected(found, words, error)


def _zero_step(found: ComparedWeight) -> int:
    """Return by how much to increase the zero points: the median of error / scale.

    The result is 0 if there are no zero points, or if the median is unknown or implausibly large.
    """
    if not any(name.endswith(("qzeros", "zero_point")) for name in found.weight.parts):
        return 0
    grid = grid_of(found.read.parts, found.weight)
    if grid is None:
        return 0
    with found.weight.open() as read, grid.open() as opened, np.errstate(all="ignore"):
        count = min(read.size, _SMALL_SAMPLE)
        steps = (native(read.read(0, count)) - native(found.x.read(0, count))) / opened.scales(0, count)[0]
        steps = steps[np.isfinite(steps)]
    return round(float(np.median(steps))) if len(steps) and np.abs(np.median(steps)) < 1 << 8 else 0


def _nearest_after(found: ComparedWeight, repair: Repair, sample: int) -> float:
    """Return the share of codes that are nearest to the original after a repair, or 0 if the repair does not fit.

    The share is 1e-3 if `grid_of` does not know the numbers that the codes stand for.
    """
    grid = grid_of(repair.parts, repair.weight)
    if found.agreement is None or grid is None:
        return 1e-3
    with repair.weight.open() as q:
        after = agreement(q, found.x, grid, sample)
    near, far = after.share(after.nearest), after.share(after.far)
    if near <= found.agreement.share(found.agreement.nearest) + _BETTER:
        return 0.0
    is_fed_back = near >= _FED_BACK and far <= _FAR
    if not repair.is_exchange and abs(found.fidelity.cosine) < _TURNED:
        is_fed_back |= after.is_fed_back  # the repair made unrelated numbers similar, so fewer codes need to fit
    return near if near >= _ROUNDED or is_fed_back or (far <= _NONE_FAR and not repair.is_exchange) else 0.0


def unexplained(found: Fidelity) -> str:
    """Return a sentence about an error whose cause is not known."""
    if found.bad_blocks and found.relative_error < 1:
        are = plural(found.bad_blocks, "is", "are")
        share = f"{found.bad_blocks:,} of {counted(found.blocks, 'block')} {are} far from the original"
        return f"{share} (relative error {found.relative_error:.3g} overall); the cause is not known"
    if abs(found.cosine) < _UNRELATED and not isinf(found.relative_error):
        return f"its numbers have nothing in common with the original's (cosine {found.cosine:.2g})"
    amount = "infinite" if isinf(found.relative_error) else f"{found.relative_error:.3g}"
    if found.relative_error < MOST_LEFT:
        said = f"the relative error is {amount}, but rounding to nearest leaves at most {found.nearest:.2g}"
        return f"{said}: is this the original, or another version of it?"
    return f"the relative error is {amount}; the cause is not known"
