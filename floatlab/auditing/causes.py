"""Looks for the cause of a weight's error: a repair that makes it fit, or a relation to its original."""

from __future__ import annotations

from math import inf, isinf

from floatlab.arrays.sources import ArraySource
from floatlab.auditing.fidelity import MOST_LEFT, Fidelity, measure
from floatlab.auditing.quantized import QuantizedCheckpoint
from floatlab.auditing.relations import SAMPLE, factor_off, relation
from floatlab.auditing.repairs import repairs
from floatlab.auditing.stored_parts import Weight, group_of
from floatlab.errors import counted, plural

_SMALL_SAMPLE = 1 << 16
_MOSTLY = 0.4  # if the error of a weight is small, a repair counts only if it leaves less than this share of the error
_UNRELATED = 0.1  # numbers with a smaller cosine are unrelated


def measured(
    read: QuantizedCheckpoint, weight: Weight, x: ArraySource, bits: float, most: int | None = None
) -> Fidelity:
    """Return the errors of a weight relative to its original `x`; `most` limits the number of elements.

    `bits` is the size of a code.
    """
    tensors = read.checkpoint.tensors
    is_nested = any("nested" in part for part in weight.parts)
    with weight.open() as q:
        return measure(
            q, x, most, bits, tensors[weight.codes].kind, group_of(weight, tensors), own_scales=not is_nested
        )


def causes_of(
    read: QuantizedCheckpoint, weight: Weight, x: ArraySource, fidelity: Fidelity, bits: float
) -> tuple[str, ...]:
    """Return one sentence about the cause of a weight's error, in a tuple; it is empty if no cause is found.

    `fidelity` has the errors relative to the original `x`; `bits` is the size of a code.
    """
    if causes := repaired(read, weight, x, fidelity, bits):
        return causes
    with weight.open() as q:
        group = group_of(weight, read.checkpoint.tensors)
        words = factor_off(q, x) if fidelity.fits else relation(q, x, group)
    return (words,) if words else ()


def repaired(
    read: QuantizedCheckpoint, weight: Weight, x: ArraySource, fidelity: Fidelity, bits: float
) -> tuple[str, ...]:
    """Return one sentence, in a tuple, about the mistake whose correction makes the weight fit best.

    The tuple is empty if no correction makes it fit. If the error is small, a mistake counts only if correcting it
    removes most of the error.
    """
    causes = []
    most, sample = (fidelity.left * _MOSTLY, _SMALL_SAMPLE) if fidelity.fits else (inf, SAMPLE)
    for repair in repairs(read, weight):
        repaired = measured(read, repair.weight, x, bits, sample)
        if repaired.fits and repaired.left < min(most, fidelity.left):
            causes.append((repaired.left, repair.words))
    if not causes:
        return ()
    left, words = min(causes)
    return (f"{words}; corrected, the relative error is {left:.2g} instead of {fidelity.left:.3g}",)


def unexplained(found: Fidelity) -> str:
    """Return a sentence about an error whose cause is not known."""
    if found.bad_blocks and found.left < 1:
        are = plural(found.bad_blocks, "is", "are")
        share = f"{found.bad_blocks:,} of {counted(found.blocks, 'block')} {are} far from the original"
        return f"{share} (relative error {found.left:.3g} overall); the cause is not known"
    if abs(found.cosine) < _UNRELATED and not isinf(found.left):
        return f"its numbers have nothing in common with the original's (cosine {found.cosine:.2g})"
    amount = "infinite" if isinf(found.left) else f"{found.left:.3g}"
    if found.left < MOST_LEFT:
        said = f"the relative error is {amount}, but rounding to nearest leaves at most {found.nearest:.2g}"
        return f"{said}: is this the original, or another version of it?"
    return f"the relative error is {amount}; the cause is not known"
