"""Checks a quantised checkpoint against its original.

Without an original, only NaNs, infinities, and bad or missing parts are found.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Unpack, overload

from floatlab.auditing.judging import BROKEN, SOUND, UNKNOWN, AuditedTensor, doubted, judged
from floatlab.auditing.originals.arranged import Counterpart
from floatlab.auditing.originals.consistency import contradictions
from floatlab.auditing.originals.counterparts import Originals, heads_of
from floatlab.auditing.originals.missing import lost_weights, missing_tensors
from floatlab.auditing.quantized import QuantizedCheckpoint, load_quantized
from floatlab.auditing.survival.arguments import RecipeOptions
from floatlab.auditing.survival.figures import RecipeAudit
from floatlab.auditing.survival.survey import audit_recipes
from floatlab.errors import FormatError, UnsupportedError
from floatlab.files.checkpoints import StoredTensor, matching, open_checkpoint
from floatlab.files.safe_open import shown
from floatlab.formats import parse_format
from floatlab.formats.recipes import Recipe
from floatlab.fpmode import in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Record

Place = str | os.PathLike[str] | Mapping[str, object]
Progress = Callable[[int], None]

_DROPPED = "the original has this bias, but the checkpoint does not"
_LOST = "the original has this weight, but the checkpoint does not, though it has other weights of its layer"
_ORDER = (BROKEN, UNKNOWN, SOUND)
_CODES = 8  # bits; signed floats of this width or less count as codes


class Audit(Record, Answering):
    """The audit of a quantised checkpoint: an `AuditedTensor` for each weight, the broken ones first.

    `original` is the name of the original checkpoint; it is empty if none was given. Of the tensors in the checkpoint,
    only quantised weights are audited. The others are counted by dtype. `unscaled` counts tensors of signed floats of 8
    bits or less: these are probably codes whose scales are missing. `unchecked` counts the rest. `missing` has the
    tensors of the original that the checkpoint lacks. `unchecked`, `missing` and `unscaled` are empty if weights were
    chosen by a glob (`only`). Without an original, `missing` is empty.

    Two kinds of tensors that the checkpoint lacks get an `AuditedTensor` with the verdict broken. The first kind is a
    weight of the original, if the checkpoint has other weights of the same layer. The second kind is a nonzero bias of
    the original, if the checkpoint has the quantised weight of the same layer.
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

    Without `to`, only quantised weights are checked. With an original, a weight is broken if its error is too large for
    any quantiser with the right scales, or if correcting a mistake removes most of the error. A mistake is reported
    only if the corrected weight fits the original. Without an original, a weight is broken if it has NaNs or
    infinities. In both cases, it is broken if parts are missing or do not fit together.

    Parameters
    ----------
    place
        The checkpoint, given as for `load_quantized`.
    against
        The checkpoint before it was quantised. Without it, no weight is called sound.
    only
        A glob that chooses weights (with `to`, tensors) by name.
    progress
        A function that is called once, with the total number of elements. It must return a second function, which is
        then called with the number of elements done since the previous call. With `to`, the first function gets the
        number of bytes and the number of tensors, and the second one counts bytes instead of elements.
    to
        Recipes, such as "mxfp4,nvfp4": each tensor is rounded by each of them, and the errors are measured.
    **options
        With `to`: `min_sqnr`, `activations`, `overflow`, `executor`, `resume` and `notice`, as in `audit_recipes`.

    Returns
    -------
    Audit or RecipeAudit
        With `to`, a `RecipeAudit`. Its `tensors` have the errors of each tensor with each recipe. Its `recommendation`
        has, for each tensor, the recipe with the fewest bits that the tensor survives.

    Raises
    ------
    FileFormatError
        If a file is not valid.
    UnsupportedError
        If a glob matches no quantised weight, if the checkpoint has no quantised weights, or if arguments exclude each
        other.

    Examples
    --------
    >>> import numpy as np
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
    # With an original, a matrix in fp8 can be checked even if it has no scales.
    with QuantizedCheckpoint(open_checkpoint(place), takes_unscaled=against is not None) as read:
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
            missing: tuple[str, ...] = ()
            for name in names:
                found.append(judged(name, read, originals, matches))
                done(sizes.get(name, 0))
            if originals is not None:
                doubts = contradictions(matches, originals.shapes)
                found = [doubted(each, doubts.get(each.name, "")) for each in found]
                biases = originals.dropped_biases(
                    [name for name in names if name in sizes], list(read.checkpoint.tensors)
                )
                found += [_absent(name, originals, _DROPPED) for name in biases]
            if original is not None and originals is not None and not only:
                are_renamed = any(each.original for each in found)
                judged_names = [each.name for each in found]
                missing = missing_tensors(read, original.names, judged_names, matches, are_renamed)
                lost = lost_weights(read, missing, originals.shapes)
                found += [_absent(name, originals, _LOST) for name in lost]
        finally:
            if original is not None:
                original.close()
    found.sort(key=lambda each: (_ORDER.index(each.verdict), -(each.fidelity.relative_error if each.fidelity else 0.0)))
    return Audit(
        source=read.name,
        original="" if original is None else original.name,
        tensors=tuple(found),
        unchecked=() if only else _counts(read, are_codes=False),
        unscaled=() if only else _counts(read, are_codes=True),
        missing=missing,
    )


def _absent(name: str, originals: Originals, reason: str) -> AuditedTensor:
    """Return the verdict on a tensor that only the original has."""
    return AuditedTensor(name, BROKEN, originals.shapes[name], "", None, None, (reason,))


def _counts(read: QuantizedCheckpoint, are_codes: bool) -> tuple[tuple[str, int], ...]:
    """Count tensors that are not quantised weights. Return pairs of a dtype and a number of tensors.

    If `are_codes` is true, only tensors of signed floats of 8 bits or less are counted: such tensors are probably codes
    without scales. If `are_codes` is false, only tensors of other types are counted.
    """
    chosen = (stored.dtype for stored in read.plain.values() if _has_codes(stored) is are_codes)
    return tuple(Counter(chosen).items())


def _has_codes(stored: StoredTensor) -> bool:
    try:
        format = parse_format(stored.kind)
    except FormatError:
        return False
    return format.signed and format.width <= _CODES
