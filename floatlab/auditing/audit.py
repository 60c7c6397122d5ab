"""Checks a quantised checkpoint against its original; without an original, reports what its bytes prove."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import inf, prod
from typing import Unpack, overload

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource, HeldSource
from floatlab.auditing.causes import causes_of, measured, repaired, unexplained
from floatlab.auditing.fidelity import Fidelity
from floatlab.auditing.originals.arranged import Counterpart
from floatlab.auditing.originals.consistency import contradictions, numbered
from floatlab.auditing.originals.counterparts import Originals, heads_of
from floatlab.auditing.quantized import QuantizedCheckpoint, load_quantized, recognised
from floatlab.auditing.relations import RESCALED
from floatlab.auditing.repairs import is_scale
from floatlab.auditing.stored_parts import Weight, bits_used
from floatlab.auditing.survival.arguments import RecipeOptions
from floatlab.auditing.survival.figures import RecipeAudit
from floatlab.auditing.survival.survey import audit_recipes
from floatlab.errors import FloatlabError, FormatError, UnsupportedError, counted, plural, quoted
from floatlab.files.checkpoints import StoredTensor, matching
from floatlab.files.safe_open import shown
from floatlab.formats import parse_format
from floatlab.formats.recipes import Recipe
from floatlab.fpmode import in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Record

Place = str | os.PathLike[str] | Mapping[str, object]
Progress = Callable[[int], None]

SOUND, BROKEN, UNKNOWN = "sound", "broken", "cannot tell"
_DROPPED = "the original has this bias, but the checkpoint does not"
_ORDER = (BROKEN, UNKNOWN, SOUND)
# Pairs of a number of bits and the usual relative error of codes with at least this many bits. If the error of a weight
# that fits is smaller, no cause is looked for.
_USUAL = ((7.0, 0.05), (3.0, 0.15))
_CODES = 8  # bits; floats of this width or less are codes
_OTHER = 0.75  # with a smaller cosine, numbers may be those of another tensor
_IMPLAUSIBLE = 1e4  # without an original, a weight with a larger magnitude is reported as unusual


class AuditedTensor(Record):
    """The verdict on a quantised weight, or on a bias that only the original has, and its reasons.

    `verdict` is sound, broken or cannot tell. `fidelity` has the errors relative to the original; it is None if the
    weight was not compared. `largest` is the largest finite magnitude of the weight's numbers; it is None if they were
    not read. `original` names the tensors with which the weight was compared, and says how they were found; it is empty
    for a tensor of the same name.
    """

    name: str
    verdict: str
    shape: tuple[int, ...]
    convention: str
    largest: float | None
    fidelity: Fidelity | None
    reasons: tuple[str, ...]
    original: str = ""


class Audit(Record, Answering):
    """The audit of a quantised checkpoint: an `AuditedTensor` for each quantised weight, the broken ones first.

    `original` is the name of the original checkpoint; it is empty if none was given. An audit does not look at tensors
    that are not quantised: `unchecked` counts them by dtype, except signed floats of 8 bits or less. `unscaled` counts
    the tensors of such floats, which are probably codes without scales. `missing` has the tensors of the original that
    the checkpoint lacks, as far as names can tell. These three are empty if weights were chosen by a glob.
    """

    _ASKS = ".is_sound"

    source: str
    original: str
    tensors: tuple[AuditedTensor, ...]
    unchecked: tuple[tuple[str, int], ...] = ()
    missing: tuple[str, ...] = ()
    unscaled: tuple[tuple[str, int], ...] = ()

    @property
    def is_sound(self) -> bool:
        """Whether all weights are sound."""
        return all(each.verdict == SOUND for each in self.tensors)

    @property
    def is_broken(self) -> bool:
        """Whether at least one weight is broken."""
        return any(each.verdict == BROKEN for each in self.tensors)

    def __repr__(self) -> str:
        """Return one line that counts the verdicts."""
        counts = {verdict: sum(each.verdict == verdict for each in self.tensors) for verdict in _ORDER}
        said = ", ".join(f"{verdict}: {count}" for verdict, count in counts.items() if count)
        return f"Audit({said or 'no quantised weights'})"


@overload
def audit(
    place: Place,
    against: Place | None = None,
    only: str | None = None,
    progress: Callable[[int], Progress] | None = None,
) -> Audit: ...


@overload
def audit(
    place: Place | Sequence[Place],
    *,
    to: str | Recipe | Sequence[str | Recipe],
    only: str | None = None,
    progress: Callable[[int, int], Progress] | None = None,
    **options: Unpack[RecipeOptions],
) -> RecipeAudit: ...


@in_default_mode
def audit(
    place: Place | Sequence[Place],
    against: Place | None = None,
    only: str | None = None,
    progress: Callable[..., Progress] | None = None,
    *,
    to: str | Recipe | Sequence[str | Recipe] | None = None,
    **options: Unpack[RecipeOptions],
) -> Audit | RecipeAudit:
    """Check a quantised checkpoint; or, with `to`, measure what recipes would do to a checkpoint.

    Without `to`, only quantised weights are looked at. With an original, a weight is broken if its error is larger than
    that of any quantiser with the right scales, or if correcting a mistake removes most of its error. Without an
    original, it is broken if it has NaNs or infinities. It is also broken if parts are missing or do not fit together.
    A mistake in a stored part is named only if the weight fits the original after it has been corrected.

    Parameters
    ----------
    place
        The checkpoint, given as for `load_quantized`.
    against
        The checkpoint before it was quantised. Without it, no weight is called sound.
    only
        A glob that chooses weights by name; with `to`, tensors.
    progress
        A function that is called once, with the number of all elements. It returns a function that is called with the
        number of elements done since its last call. With `to`, the first function is called with the number of bytes
        and the number of tensors, and the second one with the number of bytes read since its last call.
    to
        Recipes, such as "mxfp4,nvfp4": each tensor is rounded by each of them, and the errors are measured.
    **options
        With `to`: `min_sqnr`, `activations`, `overflow`, `executor` and `resume`, as in `audit_recipes`.

    Returns
    -------
    Audit or RecipeAudit
        With `to` a `RecipeAudit`: its `tensors` have the errors of each tensor in each recipe, and its
        `recommendation` has the recipe with the fewest bits that each tensor survives.

    Raises
    ------
    FileFormatError
        If a file is not valid.
    UnsupportedError
        If a glob matches no quantised weight, if the checkpoint has no quantised weights, or if arguments exclude each
        other.

    Examples
    --------
    >>> x = np.float32([[1, -2, 3, 4] * 8])
    >>> codes, scale = np.int8([[32, -64, 96, 127] * 8]), np.float32([1 / 32])
    >>> found = audit({"l.weight": codes, "l.weight_scale": 1 / scale}, {"l.weight": x})
    >>> found.tensors[0].verdict, found.tensors[0].reasons[-1]
    ('broken', 'l.weight_scale is the reciprocal; corrected, the relative error is 0.0057 instead of 1.02e+03')
    >>> print(audit({"l.weight": x}, to="mxfp4,e4m3/tensor").recommendation)
    mxfp4 for the tensor. On average 4.25 bits a number
    """
    if to is not None:
        if against is not None:
            raise UnsupportedError("to measures an unquantised checkpoint, against checks a quantised one: give one")
        return audit_recipes(place, to, only=only, progress=progress, **options)
    if options:
        raise UnsupportedError(f"{next(iter(options))} is for audits of recipes, which need to")
    if isinstance(place, Sequence) and not isinstance(place, str):
        raise UnsupportedError("one quantised checkpoint is checked at a time")
    with load_quantized(place) as read:
        original = None if against is None else load_quantized(against)
        try:
            known = [name for name in read.names if name in read.weights or name in read.unreadable]
            if not known:
                raise UnsupportedError(f"{shown(read.name)} has no quantised weights in a format that floatlab reads")
            names = matching(known, only, read.name)
            sizes = {name: prod(read.weights[name].shape) for name in names if name in read.weights}
            done = (lambda count: None) if progress is None else progress(sum(sizes.values()))
            originals = None if original is None else Originals(original, heads_of(read, original))
            found, matches = [], dict[str, Counterpart]()
            for name in names:
                found.append(_audited(name, read, originals, matches))
                done(sizes.get(name, 0))
            if originals is not None:
                doubts = contradictions(matches, originals.shapes)
                found = [_doubted(each, doubts.get(each.name, "")) for each in found]
                lost = originals.dropped_biases(
                    [name for name in names if name in sizes], list(read.checkpoint.tensors)
                )
                found += [
                    AuditedTensor(name, BROKEN, originals.shapes[name], "", None, None, (_DROPPED,)) for name in lost
                ]
        finally:
            if original is not None:
                original.close()
    found.sort(key=lambda each: (_ORDER.index(each.verdict), -(each.fidelity.left if each.fidelity else 0.0)))
    return Audit(
        source=read.name,
        original="" if original is None else original.name,
        tensors=tuple(found),
        unchecked=() if only else _counts(read, are_codes=False),
        unscaled=() if only else _counts(read, are_codes=True),
        missing=() if only or original is None else _missing(read, original, found, matches),
    )


def _counts(read: QuantizedCheckpoint, are_codes: bool) -> tuple[tuple[str, int], ...]:
    """Count tensors that are not quantised weights: return pairs of a dtype and a number of tensors.

    With `are_codes`, only tensors of signed floats of 8 bits or less are counted, since these are rarely used without
    scales. Otherwise, only the other tensors are counted.
    """
    chosen = (stored.dtype for stored in read.plain.values() if _has_codes(stored) is are_codes)
    return tuple(Counter(chosen).items())


def _has_codes(stored: StoredTensor) -> bool:
    try:
        format = parse_format(stored.kind)
    except FormatError:
        return False
    return format.signed and format.width <= _CODES


def _missing(
    read: QuantizedCheckpoint,
    original: QuantizedCheckpoint,
    found: list[AuditedTensor],
    matches: Mapping[str, Counterpart],
) -> tuple[str, ...]:
    """Return the tensors of the original that the checkpoint lacks, as far as names can tell.

    If weights have other names than their originals, a tensor counts only if no weight was made from it, but weights
    were made from the tensors of the same name in other layers. None are returned if some originals are not known.
    """
    if not any(each.original for each in found):
        there = {*read.names, *(each.name for each in found)}
        return tuple(name for name in original.names if name not in there)
    if read.unreadable or len(matches) < len(read.weights):
        return ()  # the originals of some weights are not known
    used = {name for each in matches.values() for name in each.names}
    kinds = {numbered(name)[0] for name in used}
    return tuple(name for name in original.names if name not in used and numbered(name)[0] in kinds)


def _doubted(found: AuditedTensor, doubt: str) -> AuditedTensor:
    """Add a doubt to a verdict: a weight that is not broken gets the verdict "cannot tell"; "" changes nothing."""
    if not doubt or found.verdict == BROKEN:
        return found
    return found.replace(verdict=UNKNOWN, reasons=(*found.reasons, doubt))


@np.errstate(all="ignore")  # numbers in files may be so large that their squares are infinite
def _audited(
    name: str, read: QuantizedCheckpoint, originals: Originals | None, matches: dict[str, Counterpart]
) -> AuditedTensor:
    """Return the verdict on a weight, and put its original into `matches`, if there is one."""
    weight = read.weights.get(name)
    if weight is None:
        verdict = UNKNOWN if name in read.unsupported else BROKEN
        return AuditedTensor(name, verdict, (), "", None, None, (read.unreadable[name],))
    judged = AuditedTensor(name, BROKEN, weight.shape, weight.convention, None, None, ())
    try:
        with weight.open() as source:
            largest, lost = _survey(source)
        damage = list(_vanished(read, weight))
        beside = None if originals is None else originals.counterpart(weight)
        if beside is not None:
            matches[name] = beside
        fidelity, reasons = _beside(read, weight, beside, originals)
    except FloatlabError as trouble:
        verdict = UNKNOWN if isinstance(trouble, UnsupportedError) else BROKEN
        return judged.replace(verdict=verdict, reasons=(str(trouble),))
    if lost:
        damage.insert(0, f"{lost:,} of {prod(weight.shape):,} numbers are NaN or infinite")
    if fidelity is None:
        verdict = BROKEN if lost else UNKNOWN
        if largest > _IMPLAUSIBLE:
            damage.append(f"its largest number is {largest:.3g}, unusual for a weight: are its scales right?")
    elif fidelity.fits:
        verdict = BROKEN if reasons and reasons != (RESCALED,) else SOUND if fidelity.is_close else UNKNOWN
        if not reasons and not fidelity.is_close:
            reasons = (unexplained(fidelity),)
    else:
        verdict = UNKNOWN if reasons == (RESCALED,) else BROKEN
        if not (damage or reasons):
            reasons = (unexplained(fidelity),)
    if fidelity is not None and fidelity.unknown:
        verdict = UNKNOWN if verdict == SOUND else verdict
        reasons = (*reasons, _not_finite(fidelity))
    found = judged.replace(verdict=verdict, largest=largest, fidelity=fidelity, reasons=(*damage, *reasons))
    return found if beside is None else _doubted(found.replace(original=beside.words), beside.doubt)


def _survey(source: ArraySource) -> tuple[float, int]:
    """Return the largest finite magnitude, and the number of NaNs and infinities."""
    largest, lost = 0.0, 0
    for piece in source.blocks():
        values = np.abs(native(piece))
        finite = np.isfinite(values)
        lost += int(np.count_nonzero(~finite))
        largest = max(largest, float(values[finite].max(initial=0)))
    return largest, lost


def _vanished(read: QuantizedCheckpoint, weight: Weight) -> tuple[str, ...]:
    """Return messages about arrays of scales with negative scales, and with scales of 0 for codes other than 0.

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
        if negative := int(np.count_nonzero(values < 0)):
            found.append(f"{counted(negative, 'scale')} in {part} {plural(negative, 'is', 'are')} negative")
        if not is_zero.any():
            continue
        # Each scale of 0 is replaced by 1, and every other scale by 0. Numbers of the weight that are then not 0
        # are the codes that a scale of 0 has removed.
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


def _beside(
    read: QuantizedCheckpoint, weight: Weight, found: Counterpart | None, originals: Originals | None
) -> tuple[Fidelity | None, tuple[str, ...]]:
    """Return the errors relative to the original (None without one), and sentences about their cause.

    If the errors are small, a mistake in a stored part counts only if correcting it removes most of the error.
    """
    if originals is None:
        return None, ()
    if found is None:
        return None, (_not_found(weight, originals),)
    bits = bits_used(weight, read.checkpoint.tensors[weight.codes])
    if found.straight is not None:
        with found.straight() as x:
            fidelity = measured(read, weight, x, bits)
            if reasons := repaired(read, weight, x, fidelity, bits):
                return fidelity, reasons
    with found.open() as x:
        fidelity = measured(read, weight, x, bits)
        if fidelity.unknown == fidelity.elements > 0:
            return None, (_not_finite(fidelity),)
        if fidelity.fits and fidelity.left < next((left for least, left in _USUAL if bits >= least), inf):
            return fidelity, ()
        reasons = causes_of(read, weight, x, fidelity, bits)
        if not reasons and abs(fidelity.cosine) < _OTHER and (other := originals.resembling(weight)):
            reasons = (f"its numbers are those of {other} of the original: are weights or files exchanged?",)
        return fidelity, reasons


def _not_finite(found: Fidelity) -> str:
    count = f"{found.unknown:,} of {counted(found.elements, 'number')} of the original"
    return f"{count} {plural(found.unknown, 'is', 'are')} NaN or infinite, so they cannot be compared"


def _not_found(weight: Weight, originals: Originals) -> str:
    shape = originals.shapes.get(weight.name)
    if shape is None:
        return f"the original has no tensor {quoted(weight.name, 90)}, nor one that resembles it"
    shapes = " and ".join("×".join(map(str, each)) for each in (weight.shape, shape))
    return f"the shapes of the weight and of the original differ: {shapes}"
