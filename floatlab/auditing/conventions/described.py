"""Weights that the file itself describes, in JSON: torchao (metadata of the header) and bitsandbytes (quant_state).

Sources: torchao (prototype/safetensors, prototype/mx_formats), bitsandbytes (functional.py, QuantState).
"""

from __future__ import annotations

from functools import partial
from math import prod

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.sources import MOST_AT_ONCE, ArraySource, HeldSource
from floatlab.arrays.types import Array
from floatlab.auditing.conventions.scaled import mx_weight, powers_of_two
from floatlab.auditing.ggml_blocks import E2M1
from floatlab.auditing.stored_parts import (
    FLOATS,
    FP8,
    Shape,
    StoredParts,
    Weight,
    block_of_scales,
    check_shape,
    grouped_shape,
    opened,
    scale_reader,
    shape_error,
)
from floatlab.auditing.weight_streams import (
    Reader,
    divided,
    numbers,
    octets,
    one_number,
    packed,
    product,
    spread,
    times,
    unswizzled,
)
from floatlab.errors import FileFormatError, UnsupportedError, quoted
from floatlab.files.checkpoints import StoredTensor
from floatlab.files.json_files import parse_object
from floatlab.record import Individual

_STATE = "quant_state.bitsandbytes__"
_MOST_STATE = 1 << 16  # the longest description in bytes
_PACKED_FP4 = "float4_e2m1fn_x2"
_SIGNED = np.array([*range(8), *range(-8, 0)], np.float64)  # codes of 4 bits in two's complement


def torchao(parts: StoredParts, name: str) -> Weight | None:
    """Recognise a torchao weight: for a module M, its codes are `M._weight_qdata` and its scales `M._weight_scale`."""
    stem, _, attribute = name.rpartition("._")
    owner = f"{stem}.{attribute.removesuffix('_qdata')}"
    prefix = name.removesuffix("qdata")
    text = parts.checkpoint.metadata.get(owner)
    if not isinstance(text, str):
        raise FileFormatError(f"{name} is torchao's, but the header of its file does not describe {quoted(owner, 80)}")
    said = parse_object(text.encode(), f"the description of {quoted(owner, 80)} ")
    kind, data = said.get("_type"), said.get("_data")
    if not isinstance(data, dict):
        raise FileFormatError(f"the description of {quoted(owner, 80)} has no _data")
    weight, scale = parts.tensors[name], parts.need(f"{prefix}scale", name)
    evidence = "the metadata in the header of the file"
    swizzled = bool(data.get("is_swizzled_scales"))
    if kind == "Float8Tensor":
        parts.need(name, owner, *FP8)
        parts.need(scale.name, owner, *FLOATS)
        return _float8(parts, owner, weight, scale, evidence)
    if kind == "Int8Tensor":
        parts.need(name, owner, "int8")
        parts.need(scale.name, owner, *FLOATS)
        return _int8(parts, owner, (weight, scale), parts.get(f"{prefix}zero_point"), evidence)
    if kind == "Int4Tensor" and parts.get(f"{prefix}act_pre_scale") is None:
        zeros = parts.need(f"{prefix}zero_point", owner, *FLOATS)
        return _int4(parts, owner, (weight, scale, zeros), evidence)
    if kind == "NVFP4Tensor":
        second = parts.get(f"{prefix}per_tensor_scale")
        return _torchao_nvfp4(parts, owner, (weight, scale, second), swizzled, evidence)
    if kind == "MXTensor":
        return _torchao_mx(parts, owner, weight, scale, data, swizzled, evidence)
    raise UnsupportedError(f"{quoted(owner, 80)} is torchao's {quoted(str(kind))}, which is not read")


def _float8(parts: StoredParts, owner: str, weight: StoredTensor, scale: StoredTensor, evidence: str) -> Weight:
    block = block_of_scales(parts, scale, weight.shape, owner)

    def make(codes: ArraySource, scales: ArraySource) -> Reader:
        return product(numbers(codes), scale_reader(scales, weight.shape, block))

    return Weight(
        name=owner, shape=weight.shape, convention="torchao Float8Tensor", formula="e4m3 × scale", evidence=evidence,
        codes=weight.name, parts=(weight.name, scale.name),
        open=partial(opened, owner, weight.shape, (weight, scale), make),
    )  # fmt: skip


def _int8(
    parts: StoredParts, owner: str, stored: tuple[StoredTensor, StoredTensor], zeros: StoredTensor | None, evidence: str
) -> Weight:
    weight, scale = stored
    if zeros is not None:
        raise UnsupportedError(f"{quoted(owner, 80)} is torchao's Int8Tensor with zero points, which are not read")
    block = block_of_scales(parts, scale, weight.shape, owner)

    def make(codes: ArraySource, scales: ArraySource) -> Reader:
        return product(numbers(codes), scale_reader(scales, weight.shape, block))

    return Weight(
        name=owner, shape=weight.shape, convention="torchao Int8Tensor", formula="int8 × scale", evidence=evidence,
        codes=weight.name, parts=(weight.name, scale.name), open=partial(opened, owner, weight.shape, stored, make),
    )  # fmt: skip


def _int4(
    parts: StoredParts, owner: str, stored: tuple[StoredTensor, StoredTensor, StoredTensor], evidence: str
) -> Weight:
    """Return a weight of integers from −8 to 7; scales and offsets are stored as groups × rows.

    The offset `zero_point` of a group is the number that the code 0 stands for (fbgemm, int4_row_quantize_zp).
    """
    weight, scale, zeros = stored
    parts.need(weight.name, owner, "uint8", "int8")
    parts.need(scale.name, owner, *FLOATS)
    shape = (*weight.shape[:-1], 2 * weight.shape[-1])
    groups = scale.shape[-2] if len(scale.shape) == len(shape) > 1 else 0
    if not groups or shape[-1] % groups or scale.shape != (*shape[:-2], groups, shape[-2]):
        raise shape_error(scale, "groups × rows of scales", owner)
    check_shape(zeros, scale.shape, owner)
    if prod(scale.shape) > MOST_AT_ONCE:
        raise UnsupportedError(f"{scale.name} has {prod(scale.shape):,} scales; at most {MOST_AT_ONCE:,} are read")
    size = shape[-1] // groups

    def by_rows(source: ArraySource) -> Reader:
        turned = np.swapaxes(native(source.whole()).reshape(scale.shape), -1, -2).astype(np.float64)
        return spread(numbers(HeldSource(np.ascontiguousarray(turned), source.name)), shape, (1, size))

    def make(codes: ArraySource, scales: ArraySource, offsets: ArraySource) -> Reader:
        read, scale_of, offset_of = packed(codes, _SIGNED), by_rows(scales), by_rows(offsets)
        return lambda first, count: read(first, count) * scale_of(first, count) + offset_of(first, count)

    return Weight(
        name=owner, shape=shape, convention="torchao Int4Tensor", formula="int4 × scale + zero_point",
        evidence=evidence, codes=weight.name, parts=tuple(each.name for each in stored),
        open=partial(opened, owner, shape, stored, make),
    )  # fmt: skip


def _rows_and_columns(shape: Shape) -> tuple[int, int]:
    return prod(shape[:-1]), shape[-1]


def _torchao_nvfp4(
    parts: StoredParts, owner: str, stored: tuple[StoredTensor, StoredTensor, StoredTensor | None], swizzled: bool,
    evidence: str,
) -> Weight:  # fmt: skip
    weight, scale, second = stored
    parts.need(weight.name, owner, "uint8")
    parts.need(scale.name, owner, "e4m3fn")
    shape = (*weight.shape[:-1], 2 * weight.shape[-1])
    grid = grouped_shape(shape, 16)
    if not swizzled:
        check_shape(scale, grid, owner)

    def make(codes: ArraySource, scales: ArraySource, *whole: ArraySource) -> Reader:
        placed = unswizzled(scales, _rows_and_columns(grid)) if swizzled else scales
        read = product(packed(codes, E2M1), spread(numbers(placed), shape, (1, 16)))
        return times(read, one_number(whole[0])) if whole else read

    present = (weight, scale) if second is None else (weight, scale, second)
    formula = "e2m1 × scale" + (" × per_tensor_scale" if second is not None else "")
    return Weight(
        name=owner, shape=shape, convention="torchao NVFP4Tensor", formula=formula, evidence=evidence,
        codes=weight.name, parts=tuple(each.name for each in present),
        open=partial(opened, owner, shape, present, make),
    )  # fmt: skip


def _torchao_mx(
    parts: StoredParts, owner: str, weight: StoredTensor, scale: StoredTensor, data: dict[str, object], swizzled: bool,
    evidence: str,
) -> Weight:  # fmt: skip
    element = data.get("elem_dtype")
    kind = element.get("_data") if isinstance(element, dict) else element
    if data.get("block_size") != 32:
        raise UnsupportedError(f"{quoted(owner, 80)} has blocks of {quoted(str(data.get('block_size')))}, not 32")
    parts.need(scale.name, owner, "uint8", "e8m0fnu")
    is_fp4 = kind == _PACKED_FP4
    if is_fp4:
        parts.need(weight.name, owner, "uint8")
    elif weight.kind not in FP8:
        raise UnsupportedError(f"{quoted(owner, 80)} has elements of {quoted(str(kind))}, which are not read")
    shape = (*weight.shape[:-1], 2 * weight.shape[-1]) if is_fp4 else weight.shape
    name = "e2m1" if is_fp4 else weight.kind
    if not swizzled:
        return mx_weight(
            parts, owner, (weight, scale), shape, "torchao MXTensor", f"{name} × 2^(scale − 127)", evidence,
            (lambda codes: packed(codes, E2M1)) if is_fp4 else numbers,
        )  # fmt: skip
    grid = grouped_shape(shape, 32)

    def make(codes: ArraySource, scales: ArraySource) -> Reader:
        placed = unswizzled(scales, _rows_and_columns(grid))
        elements = packed(codes, E2M1) if is_fp4 else numbers(codes)
        return product(elements, spread(powers_of_two(placed), shape, (1, 32)))

    return Weight(
        name=owner, shape=shape, convention="torchao MXTensor", formula=f"{name} × 2^(scale − 127), scales swizzled",
        evidence=evidence, codes=weight.name, parts=(weight.name, scale.name),
        open=partial(opened, owner, shape, (weight, scale), make),
    )  # fmt: skip


def bitsandbytes(parts: StoredParts, stem: str) -> Weight | None:
    """Recognise bitsandbytes: `weight` beside `weight.absmax` and `weight.quant_state.…`, or beside `SCB`."""
    name = f"{stem}.weight"
    absmax, rows = parts.get(f"{name}.absmax"), parts.get(f"{stem}.SCB")
    if rows is not None:
        return _eight_bits(parts, stem, rows)
    if absmax is None:
        return None
    weight = parts.need(name, absmax.name, "uint8")
    states = parts.present(f"{name}.{_STATE}nf4", f"{name}.{_STATE}fp4")
    if len(states) != 1:
        raise FileFormatError(f"{name} has no {quoted(f'{name}.{_STATE}nf4', 90)} beside it, which describes it")
    said = _state(parts.need(states[0], name, "uint8"))
    shape, size = _sizes(said, weight)
    count, table = prod(shape), parts.need(f"{name}.quant_map", name, "float32")
    check_shape(table, (16,), name)
    blocks = -(-count // size)
    check_shape(absmax, (blocks,), name)
    nested = _nested(parts, name, said, absmax, blocks) if absmax.kind == "uint8" else ()
    parts.need(absmax.name, name, "uint8", "float32")
    offset, inner = _number(said, "nested_offset", states[0]), _nested_size(said, name)

    def make(codes: ArraySource, largest: ArraySource, values: ArraySource, *double: ArraySource) -> Reader:
        read = packed(codes, numbers(values)(0, 16), high_first=True)
        scales = numbers(_absmax((largest, *double), inner, offset) if double else largest)
        return product(read, spread(scales, (count,), (1, size)))

    kind = states[0].rpartition("__")[2]
    return Weight(
        name=name, shape=shape, convention=f"bitsandbytes {kind.upper()}" + (", double" if nested else ""),
        formula=f"quant_map[code] × absmax of {size}", evidence="the quant_state beside the weight", codes=name,
        parts=(name, absmax.name, table.name, states[0], *(each.name for each in nested)),
        open=partial(opened, name, shape, (weight, absmax, table, *nested), make),
    )  # fmt: skip


def _eight_bits(parts: StoredParts, stem: str, rows: StoredTensor) -> Weight:
    """Return a weight of LLM.int8(). `SCB` has the largest magnitude of each row, for which the code is 127."""
    weight = parts.need(f"{stem}.weight", rows.name, "int8")
    parts.need(rows.name, weight.name, *FLOATS)
    check_shape(rows, weight.shape[:1], weight.name)
    if len(weight.shape) != 2:
        raise FileFormatError(f"{weight.name} has {len(weight.shape)} axes, but SCB is for weights with two")

    def make(codes: ArraySource, largest: ArraySource) -> Reader:
        return divided(product(numbers(codes), spread(numbers(largest), weight.shape, (1, weight.shape[1]))), 127.0)

    return Weight(
        name=weight.name, shape=weight.shape, convention="bitsandbytes INT8", formula="int8 × SCB ÷ 127",
        evidence=parts.settings.evidence("bitsandbytes"), codes=weight.name,
        parts=(weight.name, rows.name, *parts.present(f"{stem}.weight_format")),
        open=partial(opened, weight.name, weight.shape, (weight, rows), make),
    )  # fmt: skip


def _state(stored: StoredTensor) -> dict[str, object]:
    """Return the description of a weight; `stored` is a tensor of bytes that holds it as JSON."""
    with stored.open() as source:
        if source.size > _MOST_STATE:
            raise FileFormatError(f"{stored.name} has {source.size:,} bytes; at most {_MOST_STATE:,} are read")
        return parse_object(octets(source, 0, source.size).tobytes(), f"{stored.name} ")


def _sizes(said: dict[str, object], weight: StoredTensor) -> tuple[Shape, int]:
    shape, size = said.get("shape"), said.get("blocksize")
    if not isinstance(shape, list) or not all(type(n) is int and 0 <= n < 1 << 40 for n in shape) or len(shape) > 8:
        raise FileFormatError(f"the quant_state of {weight.name} has no valid shape")
    if type(size) is not int or not 1 <= size <= 1 << 20:
        raise FileFormatError(f"the quant_state of {weight.name} has no valid blocksize")
    if -(-prod(shape) // 2) != prod(weight.shape):
        raise FileFormatError(
            f"{weight.name} has {prod(weight.shape):,} bytes, but its quant_state says {prod(shape):,} codes"
        )
    return tuple(shape), size


def _number(said: dict[str, object], name: str, owner: str) -> float:
    found = said.get(name, 0.0)
    if not isinstance(found, int | float) or abs(found) > 1e38:
        raise FileFormatError(f"{owner} has {name} = {quoted(str(found))}, which is no number")
    return float(found)


def _nested_size(said: dict[str, object], name: str) -> int:
    size = said.get("nested_blocksize", 256)
    if type(size) is not int or not 1 <= size <= 1 << 20:
        raise FileFormatError(f"the quant_state of {name} has no valid nested_blocksize")
    return size


def _nested(
    parts: StoredParts, name: str, said: dict[str, object], absmax: StoredTensor, blocks: int
) -> tuple[StoredTensor, StoredTensor]:
    """Return the two further tensors of a weight whose scales are stored as codes (double quantisation).

    The first tensor has a factor for each group of these codes. The second is a table with the value of each code.
    """
    scales = parts.need(f"{name}.nested_absmax", name, "float32")
    table = parts.need(f"{name}.nested_quant_map", name, "float32")
    if blocks > MOST_AT_ONCE:
        raise UnsupportedError(f"{absmax.name} has {blocks:,} quantised scales; at most {MOST_AT_ONCE:,} are read")
    check_shape(scales, (-(-blocks // _nested_size(said, name)),), absmax.name)
    check_shape(table, (256,), absmax.name)
    return scales, table


class NestedScales(Individual):
    """Scales that are stored as codes, as in bitsandbytes: the scale of a block is values[code] · s + offset.

    `absmax` has the numbers s. Each of them belongs to `size` consecutive codes.
    """

    codes: Array
    values: Array
    absmax: Array
    size: int
    offset: float


def nested_scales(parts: StoredParts, weight: Weight) -> NestedScales:
    """Return the scales of a bitsandbytes weight with double quantisation: the scales are stored as codes, too."""
    name = weight.name
    said = _state(parts.need(next(part for part in weight.parts if _STATE in part), name))
    with parts.need(f"{name}.absmax", name).open() as source:
        codes = octets(source, 0, source.size)
    with parts.need(f"{name}.nested_quant_map", name).open() as source:
        values = numbers(source)(0, source.size)
    with parts.need(f"{name}.nested_absmax", name).open() as source:
        absmax = numbers(source)(0, source.size)
    return NestedScales(
        codes=codes, values=values, absmax=absmax, size=_nested_size(said, name),
        offset=_number(said, "nested_offset", name),
    )  # fmt: skip


def _absmax(stored: tuple[ArraySource, ...], size: int, offset: float) -> HeldSource:
    """Decode scales that are stored as codes. All operations are in binary32, as in bitsandbytes."""
    codes, scales, table = stored
    values = numbers(table)(0, 256).astype(np.float32)[octets(codes, 0, codes.size)]
    factors = spread(numbers(scales), (codes.size,), (1, size))(0, codes.size).astype(np.float32)
    return HeldSource(values * factors + np.float32(offset), codes.name)
