"""Possible repairs of a weight that has errors: each changes one stored part and reads the weight again.

`causes` measures the repaired weights. It reports a cause only if the errors of a repaired weight are no larger than
those of a correct weight.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from floatlab.arrays.codec import decode_array, native
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource, HeldSource, Source
from floatlab.arrays.types import Array
from floatlab.auditing.quantized import QuantizedCheckpoint, recognised
from floatlab.auditing.stored_parts import FLOATS, StoredParts, Weight, is_scale, stored_bits
from floatlab.auditing.weight_streams import unswizzled
from floatlab.errors import FloatlabError, counted
from floatlab.files.checkpoints import StoredTensor
from floatlab.files.gguf import block_of
from floatlab.record import Individual

_MOST_OTHERS = 32  # the scales of this many other weights are tried, those with the most similar names first
_TABLES = {"nf4": "nf4", "fp4": "bnb_fp4"}  # the formats of bitsandbytes whose tables are stored
_OTHER_ORDER = "the nibbles are in the other order"
_SHIFTS = (-1, 1, *(sign * by for by in range(2, 9) for sign in (-1, 1)))  # errors of exponent biases that are tried
_ROLLS = tuple(sign * by for by in (1, 2, 4, 8, 16) for sign in (-1, 1))
_ZEROS = ("qzeros", "zero_point")
_INTEGERS = ("int8", "uint8", "int32")
# Reorderings of the eight codes in a word: from the usual order to AWQ's, and from AWQ's to the usual one.
_WORD_ORDERS = (
    ("the codes of a word are in the usual order instead of AWQ's", (0, 2, 4, 6, 1, 3, 5, 7)),
    ("the codes of a word are in AWQ's order", (0, 4, 1, 5, 2, 6, 3, 7)),
)
# Types of ggml whose codes are nibbles, each with the byte of a block at which the codes begin. The codes fill the rest
# of the block.
_NIBBLES = {"Q4_0": 2, "Q4_1": 4, "Q4_K": 16, "IQ4_NL": 2, "IQ4_XS": 8, "MXFP4": 1, "NVFP4": 4}


class Repair(Individual):
    """A possible repair: `words` describes the mistake that it corrects, and `weight` is the repaired weight.

    `parts` are the stored tensors after the repair. `is_exchange` is True if the repair takes the scales of another
    weight.
    """

    words: str
    weight: Weight
    parts: StoredParts
    is_exchange: bool = False


def repairs(checkpoint: QuantizedCheckpoint, weight: Weight, zero_step: int = 0) -> Iterator[Repair]:
    """Yield the possible repairs of a weight, each with one change; the simple ones come first.

    Three repairs increase the zero points: by 1, by −1, and by `zero_step`.
    """
    tensors = checkpoint.checkpoint.tensors
    scales = [tensors[name] for name in weight.parts if is_scale(name)]
    for scale in scales:
        if scale.kind in FLOATS:
            yield from _changed(checkpoint, weight, scale, f"{scale.name} is the reciprocal", _reciprocal)
        if scale.kind in ("uint8", "e8m0fnu"):
            for shift in _SHIFTS:
                words = f"{scale.name} has a bias of {127 - shift} instead of 127"
                yield from _changed(checkpoint, weight, scale, words, partial(_shifted, shift))
            words = f"{scale.name} has the reciprocal powers of two"
            yield from _changed(checkpoint, weight, scale, words, _opposite)
    codes = tensors[weight.codes]
    block = block_of(codes.dtype)
    if not codes.kind and block is not None and codes.dtype in _NIBBLES:
        change = partial(_swapped_in_blocks, block[1], _NIBBLES[codes.dtype])
        yield from _changed(checkpoint, weight, codes, _OTHER_ORDER, change)
    if codes.kind in ("int32", "uint32"):
        yield from _changed(checkpoint, weight, codes, _OTHER_ORDER, _swapped_words)
    if codes.kind == "int32" and stored_bits(weight, codes) == 4:
        for words, order in _WORD_ORDERS:
            yield from _changed(checkpoint, weight, codes, words, partial(_reordered, order))
    if codes.kind == "uint8" and weight.shape != codes.shape:
        yield from _changed(checkpoint, weight, codes, _OTHER_ORDER, _swapped)
        for by in _ROLLS:
            words = f"the codes are shifted by {2 * abs(by)}, which is {counted(abs(by), 'byte')}"
            yield from _changed(checkpoint, weight, codes, words, partial(_rolled, by))
        for size in (32, 16):
            if codes.shape and codes.shape[-1] % (size // 2) == 0:
                words = f"the codes are packed in halves of blocks of {size}, as in GGUF"
                yield from _changed(checkpoint, weight, codes, words, partial(_from_halves, size // 2))
    for zeros in (tensors[name] for name in weight.parts if name.endswith(_ZEROS)):
        for step in dict.fromkeys((1, -1, zero_step)) if zeros.kind in _INTEGERS else ():
            words = f"in {zeros.name}, zero points are too {'small' if step > 0 else 'large'} by {abs(step)}"
            change = partial(_stepped, step, _bits_of_zeros(weight, codes, zeros))
            yield from _changed(checkpoint, weight, zeros, words, change) if step else ()
        yield from _exchanged(checkpoint, weight, zeros)
    for table in (tensors[name] for name in weight.parts if name.endswith("quant_map")):
        kind = next((kind for kind in _TABLES if any(name.endswith(f"__{kind}") for name in weight.parts)), "")
        if kind and table.shape == (16,):
            right = decode_array(np.arange(16, dtype=np.uint8), _TABLES[kind]).astype(np.float32)
            words = f"{table.name} is not the table of {kind.upper()}"
            yield from _changed(checkpoint, weight, table, words, partial(_replaced, right))
    for scale in scales:
        if len(scale.shape) > 1 and min(scale.shape) > 1:
            change = partial(_straightened, scale.shape)
            yield from _changed(checkpoint, weight, scale, f"{scale.name} is swizzled (128×4)", change)
            yield from _changed(checkpoint, weight, scale, f"{scale.name} is transposed", _turned)
        for axis in {0, len(scale.shape) - 1} if scale.shape else ():
            noun = "row" if axis == 0 else "column"
            for by in (-1, 1) if scale.shape[axis] > 2 else ():
                change = partial(np.roll, shift=by, axis=axis)
                yield from _changed(checkpoint, weight, scale, f"{scale.name} is shifted by one {noun}", change)
        yield from _exchanged(checkpoint, weight, scale)
    for offsets in (tensors[name] for name in weight.parts if name.endswith(".biases")):
        yield from _changed(checkpoint, weight, offsets, f"{offsets.name} has the opposite sign", _negated)
        yield from _exchanged(checkpoint, weight, offsets)


def _exchanged(checkpoint: QuantizedCheckpoint, weight: Weight, stored: StoredTensor) -> Iterator[Repair]:
    """Yield the repairs in which a weight gets the scales or the zero points of another weight."""
    for other in _similar(checkpoint, weight, stored):
        words = f"{stored.name} and {other.name} are exchanged"
        for repair in _with(checkpoint, weight, stored.replace(open=other.open), words):
            yield repair.replace(is_exchange=True)


def similar_weights(checkpoint: QuantizedCheckpoint, weight: Weight) -> list[Weight]:
    """Return at most 32 other weights of the same shape and convention, those with the most similar names first."""
    found = [
        each
        for each in checkpoint.weights.values()
        if each.name != weight.name and (each.shape, each.convention) == (weight.shape, weight.convention)
    ]
    found.sort(key=lambda each: -_alike(each.name, weight.name))
    return found[:_MOST_OTHERS]


def _similar(checkpoint: QuantizedCheckpoint, weight: Weight, scale: StoredTensor) -> list[StoredTensor]:
    """Return the scales of other weights that may be exchanged with `scale`, those with similar names first.

    They have the shape and the type of `scale`, and their names have the same last part.
    """
    end = scale.name.rpartition(".")[2]
    found = [
        each
        for each in checkpoint.checkpoint.tensors.values()
        if each.name != scale.name
        and (each.shape, each.kind) == (scale.shape, scale.kind)
        and each.name.rpartition(".")[2] == end
    ]
    found.sort(key=lambda each: -_alike(each.name, scale.name))
    return found[:_MOST_OTHERS]


def _alike(x: str, y: str) -> int:
    """Return the number of characters at the beginning that two names have in common."""
    return next((i for i, (a, b) in enumerate(zip(x, y, strict=False)) if a != b), min(len(x), len(y)))


def _changed(
    checkpoint: QuantizedCheckpoint, weight: Weight, stored: StoredTensor, words: str, change: Callable[[Array], Array]
) -> Iterator[Repair]:
    if np.prod(stored.shape) > MOST_AT_ONCE:
        return

    def opened() -> ArraySource:
        with stored.open() as source:
            piece = source.whole()
        if change in (_reciprocal, _negated):
            return HeldSource(change(native(piece)), stored.name)
        changed = piece.replace(codes=change(piece.codes)) if isinstance(piece, Source) else change(piece)
        return HeldSource(changed, stored.name)

    yield from _with(checkpoint, weight, stored.replace(open=opened), words)


def _with(checkpoint: QuantizedCheckpoint, weight: Weight, stored: StoredTensor, words: str) -> Iterator[Repair]:
    """Replace the tensor that has the name of `stored`. Yield the repaired weight if its shape has not changed."""
    parts = checkpoint.parts.having(stored)
    try:
        found = recognised(parts, parts.tensors[weight.codes])
    except FloatlabError:
        return
    if found is not None and found.shape == weight.shape:
        yield Repair(words, found, parts)


def _replaced(by: Array, _: Array) -> Array:
    return by


def _reciprocal(values: Array) -> Array:
    with np.errstate(all="ignore"):
        found: Array = (1 / values.astype(np.float64)).astype(np.float32)
    return found


def _negated(values: Array) -> Array:
    found: Array = -values.astype(np.float32)
    return found


def _shifted(shift: int, codes: Array) -> Array:
    return np.clip(codes.astype(np.int16) + shift, 0, 254).astype(np.uint8)


def _opposite(codes: Array) -> Array:
    return np.clip(254 - codes.astype(np.int16), 0, 254).astype(np.uint8)


def _rolled(by: int, octets: Array) -> Array:
    return np.roll(octets.reshape(-1), by).reshape(octets.shape)


def _reordered(order: tuple[int, ...], words: Array) -> Array:
    """Reorder the nibbles (4 bits) of 32-bit words: nibble k of a result is nibble `order[k]` of the given word."""
    nibbles = words.view(np.uint32)[..., None] >> np.uint32(4) * np.array(order, np.uint32) & np.uint32(15)
    found: Array = np.bitwise_or.reduce(nibbles << np.uint32(4) * np.arange(8, dtype=np.uint32), axis=-1)
    return found.astype(np.uint32).view(np.int32)


def _swapped(octets: Array) -> Array:
    return octets >> 4 | octets << 4


def _swapped_in_blocks(size: int, first: int, octets: Array) -> Array:
    """Exchange the nibbles of each byte in ggml's blocks of `size` bytes.

    The first `first` bytes of each block stay unchanged.
    """
    blocks = octets.reshape(-1, size).copy()
    blocks[:, first:] = _swapped(blocks[:, first:])
    found: Array = blocks.reshape(octets.shape)
    return found


def _swapped_words(words: Array) -> Array:
    octets = _swapped(np.ascontiguousarray(words.astype("<i4")).view(np.uint8))
    return octets.view("<i4").reshape(words.shape)


def _from_halves(size: int, octets: Array) -> Array:
    """Repack codes of 4 bits so that a byte holds two neighbouring elements.

    In `octets`, a block has `size` bytes. The low 4 bits of these bytes are the codes of the first half of the block,
    and the high 4 bits are the codes of the second half.
    """
    blocks = octets.reshape(-1, size)
    codes = np.concatenate((blocks & 15, blocks >> 4), axis=1)
    found: Array = (codes[:, ::2] | codes[:, 1::2] << 4).reshape(octets.shape)
    return found


def _bits_of_zeros(weight: Weight, codes: StoredTensor, zeros: StoredTensor) -> int:
    """Return the number of bits of one zero point; a 32-bit word holds several zero points."""
    bits = stored_bits(weight, codes)
    return next((width for width in (2, 4, 8) if abs(bits - width) < width / 4), 8) if zeros.kind == "int32" else 8


def _stepped(step: int, bits: int, stored: Array) -> Array:
    """Add `step`, modulo 2^`bits`, to zero points of 2, 4 or 8 bits that are packed into integers."""
    octets, mask = np.ascontiguousarray(stored).view(np.uint8).astype(np.int64), (1 << bits) - 1
    found = np.zeros_like(octets)
    for place in range(0, 8, bits):
        found |= ((octets >> place & mask) + step & mask) << place
    return found.astype(np.uint8).view(stored.dtype).reshape(stored.shape)


def _turned(scales: Array) -> Array:
    """Return `scales` in the right order: they were stored in the order of the transposed matrix.

    `scales` has the shape rows × columns, but its numbers are stored as columns × rows. The result has the shape of
    `scales`.
    """
    *outer, rows, columns = scales.shape
    found: Array = np.ascontiguousarray(np.swapaxes(scales.reshape(*outer, columns, rows), -1, -2))
    return found


def _straightened(shape: tuple[int, ...], codes: Array) -> Array:
    """Return scales of the 128×4 layout as rows × columns. Return `codes` if their number does not fit this layout."""
    rows, columns = int(np.prod(shape[:-1])), shape[-1]
    try:
        found = unswizzled(HeldSource(np.ascontiguousarray(codes)), (rows, columns)).whole()
    except FloatlabError:
        return codes
    return np.asarray(found.codes if isinstance(found, Source) else found).reshape(shape)
