"""The verdict on a quantised weight: whether it is sound, and if it is not, why."""

from __future__ import annotations

from functools import partial
from math import inf, prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource, HeldSource
from floatlab.auditing.causes import (
    ComparedWeight,
    cause_of,
    compared,
    has_rounded_scales,
    lines_cause,
    owner_of_codes,
    repaired,
    small_cause,
    unexplained,
)
from floatlab.auditing.conventions.scaled import UNSCALED
from floatlab.auditing.fidelity import Fidelity
from floatlab.auditing.originals.arranged import Counterpart
from floatlab.auditing.originals.counterparts import Originals
from floatlab.auditing.quantized import QuantizedCheckpoint, recognised
from floatlab.auditing.rerounding.agreement import CodeAgreement
from floatlab.auditing.stored_parts import Weight, is_scale
from floatlab.errors import FloatlabError, UnsupportedError, counted, plural, quoted
from floatlab.record import Individual, Record

SOUND, BROKEN, UNKNOWN = "sound", "broken", "cannot tell"
# Usual relative errors, as pairs: the least size of a code in bits, and the error. For smaller errors, only mistakes
# that `small_cause` finds are reported.
_USUAL = ((7.0, 0.05), (3.0, 0.15))
# Bad scales may lose most of a weight, even if the codes are right for these scales. Such a weight is not sound: its
# relative error and its share of zeros exceed the first two limits, or its share of clipped numbers exceeds the third.
_LOST, _MOST_FLUSHED, _MOST_CLIPPED = 0.9, 0.9, 0.3
_SEVERAL = 0.02  # zeros and clipped numbers explain an error only if their share is at least this
_OTHER = 0.75  # with a smaller cosine than this, numbers may be those of another tensor
_IMPLAUSIBLE = 1e4  # without an original, a weight with a larger magnitude than this is reported as unusual


class AuditedTensor(Record):
    """The verdict on a quantised weight, or on a tensor that only the original has, with the reasons.

    `verdict` is sound, broken or cannot tell. `fidelity` has the errors relative to the original, or None if the weight
    was not compared. `largest` is the largest finite magnitude of the weight's numbers, or None if they were not read.
    `original` names the tensors with which the weight was compared, and says how they were found. This text is empty if
    there is no original, or if the original has the name and the shape of the weight.
    """

    name: str
    verdict: str
    shape: tuple[int, ...]
    convention: str
    largest: float | None
    fidelity: Fidelity | None
    reasons: tuple[str, ...]
    original: str = ""


def doubted(found: AuditedTensor, doubt: str) -> AuditedTensor:
    """Add a doubt to a verdict; an empty doubt changes nothing.

    A weight that is not broken gets the verdict "cannot tell".
    """
    if not doubt or found.verdict == BROKEN:
        return found
    return found.replace(verdict=UNKNOWN, reasons=(*found.reasons, doubt))


@np.errstate(all="ignore")  # numbers in files may be so large that their squares are infinite
def judged(
    name: str, read: QuantizedCheckpoint, originals: Originals | None, matches: dict[str, Counterpart]
) -> AuditedTensor:
    """Return the verdict on a weight. If the weight has an original, put the original into `matches`."""
    weight = read.weights.get(name)
    if weight is None:
        verdict = UNKNOWN if name in read.unsupported else BROKEN
        return AuditedTensor(name, verdict, (), "", None, None, (read.unreadable[name],))
    found = AuditedTensor(name, BROKEN, weight.shape, weight.convention, None, None, ())
    try:
        with weight.open() as source:
            largest, lost = _survey(source)
        damage = list(_doubtful_scales(read, weight))
        beside = None if originals is None else originals.counterpart(weight)
        if beside is not None:
            matches[name] = beside
        opinion = None if originals is None else _compare_with_original(read, weight, beside, originals)
    except FloatlabError as trouble:
        verdict = UNKNOWN if isinstance(trouble, UnsupportedError) else BROKEN
        return found.replace(verdict=verdict, reasons=(str(trouble),))
    if lost and (opinion is None or opinion.fidelity is None or opinion.fidelity.nans):
        damage.insert(0, f"{lost:,} of {prod(weight.shape):,} numbers are NaN or infinite")
    if opinion is None or opinion.fidelity is None:
        opinion = opinion or _Opinion(UNKNOWN)
        opinion = opinion.replace(verdict=BROKEN if lost and not opinion.has_no_numbers else UNKNOWN)
        if largest > _IMPLAUSIBLE:
            damage.append(f"its largest number is {largest:.3g}, unusual for a weight: are its scales right?")
    elif opinion.fidelity.unknown:
        verdict = UNKNOWN if opinion.verdict == SOUND else opinion.verdict
        opinion = opinion.replace(verdict=verdict, reasons=(*opinion.reasons, _not_finite(opinion.fidelity)))
    reasons = opinion.reasons if opinion.is_explained or not damage else ()
    found = found.replace(
        verdict=opinion.verdict, largest=largest, fidelity=opinion.fidelity, reasons=(*damage, *reasons)
    )
    return found if beside is None else doubted(found.replace(original=beside.words), beside.doubt)


def _survey(source: ArraySource) -> tuple[float, int]:
    """Return the largest finite magnitude, and the number of NaNs and infinities."""
    largest, lost = 0.0, 0
    for piece in source.blocks():
        values = np.abs(native(piece))
        finite = np.isfinite(values)
        lost += int(np.count_nonzero(~finite))
        largest = max(largest, float(values[finite].max(initial=0)))
    return largest, lost


def _doubtful_scales(read: QuantizedCheckpoint, weight: Weight) -> tuple[str, ...]:
    """Return messages about negative scales, and about scales of 0 whose codes are not all 0.

    A scale of 0 does not prove an error: if the numbers of a block are tiny, its scale may underflow to 0.
    """
    found = []
    for part in weight.parts:
        stored = read.checkpoint.tensors[part]
        if not is_scale(part) or prod(stored.shape) > MOST_AT_ONCE or stored.kind in ("uint8", "e8m0fnu"):
            continue
        with stored.open() as scales:
            values = native(scales.whole())
        is_zero = values == 0
        has_offsets = any(each.endswith(".biases") for each in weight.parts)  # MLX has negative scales, too
        if not has_offsets and (negative := int(np.count_nonzero(values < 0))):
            found.append(f"{counted(negative, 'scale')} in {part} {plural(negative, 'is', 'are')} negative")
        if not is_zero.any():
            continue
        # Replace each scale of 0 by 1, and every other scale by 0. Then the weight has the codes of the blocks whose
        # scale was 0, and zeros elsewhere.
        marked = stored.replace(open=partial(HeldSource, is_zero.astype(np.float32), part))
        marks = recognised(read.parts.having(marked), read.checkpoint.tensors[weight.codes])
        if marks is not None:
            with marks.open() as source:
                vanished = sum(int(np.count_nonzero(native(piece))) for piece in source.blocks())
            if vanished:
                zeros = int(np.count_nonzero(is_zero))
                are, blocks = plural(zeros, "is", "are"), plural(zeros, "its block", "their blocks")
                codes = f"{counted(vanished, 'code')} of {blocks} {plural(vanished, 'is', 'are')} not"
                found.append(f"{counted(zeros, 'scale')} in {part} {are} 0, though {codes}")
    return tuple(found)


class _Opinion(Individual):
    """What the comparison with the original shows: a verdict, the errors (None if not measured), and the reasons.

    `is_explained` is False if the weight has an error whose cause is unknown. `has_no_numbers` is True if the original
    has only NaNs and infinities.
    """

    verdict: str
    fidelity: Fidelity | None = None
    reasons: tuple[str, ...] = ()
    is_explained: bool = True
    has_no_numbers: bool = False


def _compare_with_original(
    read: QuantizedCheckpoint, weight: Weight, found: Counterpart | None, originals: Originals
) -> _Opinion:
    """Return what the comparison of a weight with its original shows."""
    if found is None:
        return _Opinion(UNKNOWN, None, (_not_found(weight, originals),))
    if found.straight is not None:
        with found.straight() as x:
            beside = compared(read, weight, x)
            if cause := repaired(beside):
                return _Opinion(BROKEN, beside.fidelity, (cause.words,))
    with found.open() as x:
        beside = compared(read, weight, x)
        fidelity = beside.fidelity
        if fidelity.unknown == fidelity.elements > 0:
            return _Opinion(UNKNOWN, None, (_not_finite(fidelity),), has_no_numbers=True)
        opinion = _by_codes(beside) or _by_errors(beside)
        if fidelity.nans:
            opinion = opinion.replace(verdict=BROKEN)  # NaNs are a loss, even if all other numbers are right
        if weight.convention == UNSCALED and opinion.verdict != SOUND:
            words = f"{weight.name} has codes of fp8, but no scale is stored beside it"
            opinion = opinion.replace(reasons=(words, *opinion.reasons))
        if not opinion.is_explained and abs(fidelity.cosine) < _OTHER:
            words = ""
            if other := originals.resembling(weight):
                words = f"its numbers are those of {other} of the original: are weights or files exchanged?"
            elif other := owner_of_codes(beside, originals.counterpart):
                words = f"its codes are those of {other}: are codes or scales exchanged?"
            if words:
                return _Opinion(BROKEN, fidelity, (words,))
        return opinion


def _by_codes(found: ComparedWeight) -> _Opinion | None:
    """Return what the codes of a weight show, or None if the codes do not decide the verdict.

    A weight is broken if some of its rows or blocks do not fit the original, or if a mistake is found. Otherwise, it is
    sound if rounding the original with the stored scales gives its codes. If these scales clip many numbers, or turn
    nearly all of them into 0, the verdict is "cannot tell".
    """
    fidelity, agreed = found.fidelity, found.agreement
    if agreed is None or fidelity.nans or (fidelity.fits and has_rounded_scales(found.weight)):
        return None
    if (agreed.bad_rows or agreed.is_locally_wrong) and found.may_be_fed_back:
        return None
    if fidelity.fits and agreed.bad_rows:
        cause = repaired(found) or lines_cause(found)
        return _Opinion(BROKEN, fidelity, (cause.words if cause else _other_rows(found.weight, agreed),))
    if agreed.is_locally_wrong or agreed.has_odd_blocks:
        cause = cause_of(found)
        return _Opinion(BROKEN, fidelity, (cause.words if cause else _other_blocks(agreed),))
    if not agreed.belongs:
        return None
    if not agreed.is_nearest and (cause := small_cause(found)):
        return _Opinion(BROKEN, fidelity, (cause.words,))
    if agreed.clipped_blocks:
        are, blocks = plural(agreed.clipped_blocks, "is", "are"), counted(agreed.blocks, "block")
        words = f"most numbers of {agreed.clipped_blocks:,} of {blocks} {are} beyond the largest code"
        return _Opinion(UNKNOWN, fidelity, (f"{words}: are the scales right?",))
    if fidelity.fits and fidelity.is_close:
        return _fitting(found)
    flushed, clipped = agreed.share(agreed.flushed), agreed.share(agreed.clipped)
    parts = []
    if agreed.clipped:
        are = plural(agreed.clipped, "is", "are")
        parts.append(f"{counted(agreed.clipped, 'number')} ({_percent(clipped)}) {are} beyond the largest code")
    if agreed.flushed:
        parts.append(f"{counted(agreed.flushed, 'number')} ({_percent(flushed)}) became 0")
    said = "its codes are the original's, rounded with the stored scales"
    said = f"{said}; {' and '.join(parts)}" if parts else said
    if fidelity.fits and agreed.is_directed and not agreed.is_nearest:
        return _Opinion(SOUND, fidelity)
    if not agreed.is_directed and max(flushed, clipped) < _SEVERAL:
        return _Opinion(UNKNOWN, fidelity, (unexplained(fidelity),), is_explained=False)
    is_lost = fidelity.relative_error > _LOST and flushed > _MOST_FLUSHED
    if is_lost or (not fidelity.fits and clipped > _MOST_CLIPPED):
        return _Opinion(UNKNOWN, fidelity, (f"{said}: are the scales right?",))
    return _Opinion(SOUND, fidelity, (said,))


def _fitting(found: ComparedWeight) -> _Opinion:
    """Return the verdict on a weight with small errors: the weight is sound if a known rounding explains its codes."""
    if found.agreement is None or found.is_explained:
        return _Opinion(SOUND, found.fidelity)
    share = 1 - found.agreement.share(found.agreement.nearest)
    words = (
        f"{_percent(share)} of its codes are not the nearest ones to the original, and no known rounding explains them"
    )
    return _Opinion(UNKNOWN, found.fidelity, (f"{words}: is this the original, or another version of it?",))


def _by_errors(found: ComparedWeight) -> _Opinion:
    """Return what the errors of a weight show; called if the codes do not decide the verdict.

    If the errors are small, a mistake in a stored part is reported only if correcting it removes most of the error, or
    makes nearly every code the one nearest to its original number.
    """
    fidelity, agreed = found.fidelity, found.agreement
    if fidelity.fits and fidelity.relative_error < next((left for least, left in _USUAL if found.bits >= least), inf):
        cause = None if agreed is None else small_cause(found)
        return _fitting(found) if cause is None else _Opinion(BROKEN, fidelity, (cause.words,))
    cause = cause_of(found)
    if cause is not None:
        return _Opinion(BROKEN if cause.is_damage else UNKNOWN, fidelity, (cause.words,))
    if fidelity.fits and (fidelity.is_close or found.is_fed_back):
        return _fitting(found)
    if agreed is not None and found.is_fed_back and not agreed.heavy_blocks:
        return _fitting(found)
    if found.is_rotated:
        words = "its numbers are others, but its rows or columns have the norms of the original's, as after a rotation"
        return _Opinion(UNKNOWN, fidelity, (f"{words} (QuaRot, SpinQuant): is this its original?",))
    verdict = UNKNOWN if fidelity.fits or found.is_fed_back or found.may_be_fed_back else BROKEN
    return _Opinion(verdict, fidelity, (unexplained(fidelity),), is_explained=False)


def _other_rows(weight: Weight, agreed: CodeAgreement) -> str:
    """Name the rows that have other numbers than the original."""
    rows, total = agreed.bad_rows, prod(weight.shape[:-1])
    if len(rows) == 1:
        return f"row {rows[0]:,} of {total:,} holds other numbers than the original"
    return f"{len(rows):,} of {total:,} rows hold other numbers than the original, first row {rows[0]:,}"


def _other_blocks(agreed: CodeAgreement) -> str:
    wrong = agreed.other_blocks or agreed.odd_blocks
    count = f"{wrong:,} of {counted(agreed.blocks, 'block')}"
    if not agreed.other_blocks:
        return f"{count} {plural(wrong, 'is a multiple', 'are multiples')} of the original's, but all other codes fit"
    return f"{count} {plural(wrong, 'is', 'are')} far from the original, but all other codes fit"


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %" if share < 0.995 else f"{100 * share:.4g} %"


def _not_finite(found: Fidelity) -> str:
    count = f"{found.unknown:,} of {counted(found.elements, 'number')} of the original"
    return f"{count} {plural(found.unknown, 'is', 'are')} NaN or infinite, so they cannot be compared"


def _not_found(weight: Weight, originals: Originals) -> str:
    shape = originals.shapes.get(weight.name)
    if shape is None:
        return f"the original has no tensor {quoted(weight.name, 90)}, nor one that resembles it"
    shapes = " and ".join("×".join(map(str, each)) for each in (weight.shape, shape))
    return f"the shapes of the weight and of the original differ: {shapes}"
