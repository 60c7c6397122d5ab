"""Integers of 2, 4 or 8 bits in 32-bit words, with zero points: compressed-tensors, GPTQ, AWQ.

Sources: compressed-tensors (compressors/pack_quantized), AutoGPTQ and GPTQModel, AutoAWQ (WQLinear_GEMM).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import ArraySource, HeldSource
from floatlab.arrays.types import Array
from floatlab.auditing.conventions.scaled import activations
from floatlab.auditing.stored_parts import (
    FLOATS,
    StoredParts,
    Weight,
    check_shape,
    groups_of,
    opened,
    scale_reader,
    shape_error,
    zero_points,
)
from floatlab.auditing.weight_streams import Reader, check_row, numbers, packed, product, without_padding
from floatlab.errors import FileFormatError, UnsupportedError
from floatlab.files.checkpoints import StoredTensor

_WORD = 32
_WIDTHS = (4, 8, 2)
_MOST_WORDS = 1 << 27  # weights in transposed layouts are read whole, so they have at most this many words
_AWQ_ORDER = np.array([0, 2, 4, 6, 1, 3, 5, 7])  # the columns of a word's 8 nibbles, lowest nibble first


def unpacked(words: Array, bits: int) -> Array:
    """Unpack 32-bit words into their codes, as uint8. The last axis has the codes of each word, from its low bits on.

    >>> unpacked(np.int32([[0x76543210]]), 4).tolist()
    [[0, 1, 2, 3, 4, 5, 6, 7]]
    """
    octets = np.ascontiguousarray(words.astype("<u4")).view(np.uint8)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    codes = octets[..., None] >> shifts & np.uint8((1 << bits) - 1)
    return codes.reshape(*words.shape[:-1], words.shape[-1] * (_WORD // bits))


def whole(source: ArraySource) -> Array:
    """Return all numbers of an array, as an array of the same shape."""
    return native(source.whole())


def packed_words(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise `weight_packed` of compressed-tensors with integers.

    Without zero points, the middle code stands for 0. The middle code is 8 for codes of 4 bits.
    """
    weight = parts.tensors[f"{stem}.weight_packed"]
    if weight.kind != "int32":
        return None
    scale = parts.need(f"{stem}.weight_scale", weight.name, *FLOATS)
    said = parts.need(f"{stem}.weight_shape", weight.name, "int64", "int32")
    order = parts.get(f"{stem}.weight_g_idx")
    shape, bits = _shape_and_bits(parts, weight, said)
    size = groups_of(parts, scale, shape, weight.name)
    zeros = zero_points(parts, stem, weight.name, (bits, size, shape[1]))
    each = _WORD // bits
    if zeros is not None:
        check_shape(zeros, (-(-shape[0] // each), shape[1] // size), weight.name)
    group_of = None if order is None else _column_groups(order, (shape[1], size), weight.name)
    offset, values = 1 << bits - 1, np.arange(1 << bits, dtype=np.float64)

    def make(codes: ArraySource, scales: ArraySource, *zero: ArraySource) -> Reader:
        read = without_padding(packed(codes, values, bits), shape[1], weight.shape[1] * each)
        if not zero:
            centred = packed(codes, values - offset, bits)
            read = without_padding(centred, shape[1], weight.shape[1] * each)
            return product(read, _of_groups(scales, shape, size, group_of))
        stored = unpacked(whole(zero[0]).T, bits).T[: shape[0]].astype(np.float64)
        points = _of_groups(HeldSource(stored), shape, size, group_of)
        scale_of = _of_groups(scales, shape, size, group_of)
        return lambda first, count: (read(first, count) - points(first, count)) * scale_of(first, count)

    name, stored = f"{stem}.weight", (weight, scale) if zeros is None else (weight, scale, zeros)
    extra = (said.name, *([] if order is None else [order.name]), *activations(parts, stem))
    point = f"{offset}" if zeros is None else "weight_zero_point"
    return Weight(
        name=name, shape=shape, convention=f"compressed-tensors INT{bits}",
        formula=f"(u{bits} − {point}) × weight_scale", evidence=parts.settings.evidence("compressed-tensors"),
        codes=weight.name, parts=(*(each.name for each in stored), *extra),
        open=partial(opened, name, shape, stored, make),
    )  # fmt: skip


def _column_groups(order: StoredTensor, sizes: tuple[int, int], owner: str) -> Array | None:
    """Return the group of each column, read from `weight_g_idx`. Return None if the groups are contiguous.

    For contiguous groups, compressed-tensors writes −1 for all columns. `sizes` has the number of columns of the weight
    and the number of columns of a group.
    """
    length, size = sizes
    check_shape(order, (length,), owner)
    check_row(length)
    found = _order(order, length, length // size, owner, least=-1)
    if (found < 0).all():
        return None
    if (found < 0).any():
        raise FileFormatError(f"{order.name} names no group for some columns of {owner}")
    return found


def _of_groups(source: ArraySource, shape: tuple[int, int], size: int, group_of: Array | None) -> Reader:
    """Return a function (first, count) that reads, for each element, the value of its group of columns."""
    if group_of is None:
        return scale_reader(source, shape, (1, size))
    read, groups = numbers(source), shape[1] // size

    def rows(start: int, end: int) -> Array:
        return read(start * groups, (end - start) * groups).reshape(-1, groups)[:, group_of]

    return _by_rows(rows, shape[1], shape[0])


def _shape_and_bits(parts: StoredParts, weight: StoredTensor, said: StoredTensor) -> tuple[tuple[int, int], int]:
    """Return the shape that `weight_shape` holds, and the bits of a code.

    The bits are the first usual width that fits the number of words in a row. If the configuration names widths, only
    these widths are tried. Raises FileFormatError if no width fits.
    """
    check_shape(said, (2,), weight.name)
    with said.open() as source:
        rows, columns = (int(n) for n in numbers(source)(0, 2))
    if len(weight.shape) != 2 or rows != weight.shape[0] or columns < 1:
        raise FileFormatError(f"{said.name} says {rows:,}×{columns:,}, which does not fit {weight.name}")
    widths = [bits for bits in _WIDTHS if -(-columns * bits // _WORD) == weight.shape[1]]
    widths = [bits for bits in widths if not parts.settings.bits or bits in parts.settings.bits]
    if not widths:
        raise FileFormatError(
            f"{weight.name} has {weight.shape[1]:,} words a row, but {said.name} says {columns:,} elements"
        )
    return (rows, columns), widths[0]


def transposed(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise `qweight` of GPTQ and AWQ, which store weights transposed: rows are inputs, columns are outputs.

    In GPTQ, a 32-bit word has the codes of several inputs. In AWQ, a word has the codes of several outputs.
    """
    weight = parts.tensors[f"{stem}.qweight"]
    if weight.kind != "int32" or len(weight.shape) != 2:
        raise UnsupportedError(
            f"{weight.name} is {weight.dtype} with {len(weight.shape)} axes; GPTQ and AWQ have I32 with two"
        )
    scale = parts.need(f"{stem}.scales", weight.name, *FLOATS)
    zeros = parts.need(f"{stem}.qzeros", weight.name, "int32")
    if len(scale.shape) != 2:
        raise shape_error(scale, "rows of groups × outputs", weight.name)
    if weight.shape[0] * weight.shape[1] > _MOST_WORDS:
        raise UnsupportedError(f"{weight.name} has over {_MOST_WORDS:,} words, which are not read in this layout")
    if scale.shape[1] == weight.shape[1]:
        return _gptq(parts, stem, weight, scale, zeros)
    return _awq(parts, stem, weight, scale, zeros)


def _bits(parts: StoredParts, weight: StoredTensor) -> int:
    bits = min(parts.settings.bits, default=4)
    if bits not in _WIDTHS:
        raise UnsupportedError(f"{weight.name} has codes of {bits} bits; 2, 4 and 8 are read")
    return bits


def _gptq(parts: StoredParts, stem: str, weight: StoredTensor, scale: StoredTensor, zeros: StoredTensor) -> Weight:
    bits = _bits(parts, weight)
    inputs, outputs = weight.shape[0] * (_WORD // bits), weight.shape[1]
    groups = scale.shape[0]
    _check_groups(parts, scale, zeros, (inputs, outputs), bits, weight.name)
    order = parts.get(f"{stem}.g_idx")
    if order is not None:
        check_shape(order, (inputs,), weight.name)
    version = parts.settings.option("checkpoint_format") or "gptq"
    if not parts.settings.method:
        raise UnsupportedError(
            f"{weight.name} is GPTQ's, whose versions 1 and 2 store zero points differently: the config.json beside "
            "the file is needed, which says the version"
        )
    if version not in ("gptq", "gptq_v2"):
        raise UnsupportedError(f"checkpoint_format {str(version)[:40]!r} is not read; gptq and gptq_v2 are")
    added = 1 if version == "gptq" else 0
    group_of = _order(order, inputs, groups, weight.name)
    mask = (1 << bits) - 1

    def make(words: ArraySource, scales: ArraySource, points: ArraySource) -> Reader:
        held, each, offsets = whole(words), whole(scales).astype(np.float64), unpacked(whole(points), bits)

        def rows(start: int, end: int) -> Array:
            codes = unpacked(held[:, start:end].T, bits).astype(np.float64)
            zero = ((offsets[:, start:end] + np.uint8(added)) & np.uint8(mask)).T.astype(np.float64)
            return (codes - zero[:, group_of]) * each[:, start:end].T[:, group_of]

        return _by_rows(rows, inputs, outputs)

    shift = "(qzeros + 1)" if added else "qzeros"
    return _transposed_weight(
        parts, stem, (weight, scale, zeros), (outputs, inputs), f"GPTQ INT{bits}", f"(u{bits} − {shift}) × scales",
        make, ("gptq",), () if order is None else (order.name,),
    )  # fmt: skip


def _awq(parts: StoredParts, stem: str, weight: StoredTensor, scale: StoredTensor, zeros: StoredTensor) -> Weight:
    bits = _bits(parts, weight)
    version = parts.settings.option("version")
    if bits != 4 or (version is not None and str(version).lower() != "gemm"):
        raise UnsupportedError(f"{weight.name} is AWQ in another layout than GEMM with 4 bits, which is not read")
    inputs, outputs = weight.shape[0], weight.shape[1] * 8
    if scale.shape[1] != outputs:
        raise shape_error(scale, f"{weight.shape[1]:,} (GPTQ) or {outputs:,} (AWQ) columns", weight.name)
    _check_groups(parts, scale, zeros, (inputs, outputs), bits, weight.name)
    group_of = np.arange(inputs) // (inputs // scale.shape[0])
    nibble = np.argsort(_AWQ_ORDER)

    def in_order(words: Array) -> Array:
        codes = unpacked(words, 4)
        return codes.reshape(-1, 8)[:, nibble].reshape(codes.shape)

    def make(words: ArraySource, scales: ArraySource, points: ArraySource) -> Reader:
        held, each, offsets = whole(words), whole(scales).astype(np.float64), in_order(whole(points))

        def rows(start: int, end: int) -> Array:
            first, last = start // 8, -(-end // 8)
            codes = in_order(held[:, first:last])[:, start - first * 8 : end - first * 8].T.astype(np.float64)
            zero = offsets[:, start:end].T.astype(np.float64)
            return (codes - zero[:, group_of]) * each[:, start:end].T[:, group_of]

        return _by_rows(rows, inputs, outputs)

    return _transposed_weight(
        parts, stem, (weight, scale, zeros), (outputs, inputs), "AWQ INT4 (GEMM)", "(u4 − qzeros) × scales", make,
        ("awq",),
    )  # fmt: skip


def _check_groups(
    parts: StoredParts, scale: StoredTensor, zeros: StoredTensor, sides: tuple[int, int], bits: int, owner: str
) -> None:
    (inputs, outputs), groups = sides, scale.shape[0]
    if not groups or inputs % groups:
        raise shape_error(scale, f"a number of groups that divides {inputs:,}", owner)
    size = inputs // groups
    if groups > 1 and parts.settings.groups and size not in parts.settings.groups:
        said = " or ".join(map(str, sorted(parts.settings.groups)))
        raise shape_error(scale, f"groups of {said} ({parts.settings.source}), not {size}", owner)
    check_shape(zeros, (groups, -(-outputs * bits // _WORD)), owner)


def _order(order: StoredTensor | None, inputs: int, groups: int, owner: str, least: int = 0) -> Array:
    """Return the index of each input's group. Raises FileFormatError if an index is not in `least` … `groups` − 1."""
    if order is None:
        return np.arange(inputs) // (inputs // groups)
    with order.open() as source:
        found = whole(source).astype(np.int64)
    if found.size and not (found.min() >= least and found.max() < groups):
        raise FileFormatError(f"{order.name} names groups outside 0 to {groups - 1} for {owner}")
    return found


def _by_rows(rows: Callable[[int, int], Array], length: int, height: int) -> Reader:
    """Return a function (first, count) that reads a matrix of which only whole rows can be computed.

    `rows(start, end)` computes rows. `length` is the number of columns, and `height` is the number of rows.
    """
    check_row(length)

    def read(first: int, count: int) -> Array:
        start, end = first // length, min(-(-(first + count) // length), height)
        return np.ascontiguousarray(rows(start, end)).reshape(-1)[first - start * length :][:count]

    return read


def _transposed_weight(
    parts: StoredParts, stem: str, stored: tuple[StoredTensor, ...], shape: tuple[int, int], convention: str,
    formula: str, make: Callable[..., Reader], methods: tuple[str, ...], extra: tuple[str, ...] = (),
) -> Weight:  # fmt: skip
    name = f"{stem}.weight"
    return Weight(
        name=name, shape=shape, convention=convention, formula=formula, evidence=parts.settings.evidence(*methods),
        codes=stored[0].name, parts=(*(each.name for each in stored), *extra),
        open=partial(opened, name, shape, stored, make),
    )  # fmt: skip
