"""Separates the codes and the scales in ggml's blocks (GGUF)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from floatlab.arrays.codec import decode_array
from floatlab.arrays.sources import ArraySource
from floatlab.arrays.types import Array
from floatlab.auditing.ggml_blocks import halves, scales_and_minima
from floatlab.auditing.recipe_search.stored_codes import GROUPS_OF_K, WITH_MINIMA, CodeLayout, ScaleReading
from floatlab.auditing.weight_streams import octets
from floatlab.errors import UnsupportedError
from floatlab.files.gguf import block_of
from floatlab.record import Individual

_AT_ONCE = 1 << 16  # the number of blocks whose scales are read at once


class _Layout(Individual):
    """How the blocks of one of ggml's types are read: `element` and `kind` name the formats of elements and scales.

    `scales` and `codes` are functions of the bytes of blocks (blocks × bytes); both return a row for each block.
    """

    element: str
    kind: str
    scales: Callable[[Array], Array]
    codes: Callable[[Array], Array]
    values: int  # the number of scales (and minima) of a block


def _binary16(blocks: Array, stop: int) -> Array:
    return np.ascontiguousarray(blocks[:, :stop]).view("<f2").astype(np.float64)


def _of_k(blocks: Array) -> Array:
    return np.concatenate([_binary16(blocks, 4), *scales_and_minima(blocks[:, 4:16])], axis=1)


_LAYOUTS = {
    "Q8_0": _Layout("int8", "float16", lambda b: _binary16(b, 2), lambda b: b[:, 2:], 1),
    "Q4_0": _Layout("int4", "float16", lambda b: _binary16(b, 2), lambda b: halves(b[:, 2:]), 1),
    "Q4_1": _Layout("uint4", WITH_MINIMA, lambda b: _binary16(b, 4), lambda b: halves(b[:, 4:]), 2),
    "Q4_K": _Layout("uint4", GROUPS_OF_K, _of_k, lambda b: halves(b[:, 16:].reshape(-1, 4, 32)).reshape(-1, 256), 18),
    "MXFP4": _Layout(
        "e2m1", "e8m0fnu", lambda b: decode_array(b[:, :1], "e8m0", np.float64), lambda b: halves(b[:, 1:]), 1
    ),
    "NVFP4": _Layout(
        "e2m1", "e4m3fn", lambda b: decode_array(b[:, :4], "e4m3", np.float64),
        lambda b: halves(b[:, 4:].reshape(-1, 4, 8)).reshape(-1, 64), 4,
    ),
}  # fmt: skip


def ggml_parts(source: ArraySource, dtype: str, count: int) -> tuple[CodeLayout, ScaleReading]:
    """Return, for a tensor of ggml's type `dtype`, a `CodeLayout` for its codes and a `ScaleReading` with its scales.

    `source` has the bytes of the tensor, and `count` is the number of its elements. Raises UnsupportedError if no
    recipe is known for the type.
    """
    layout, block = _LAYOUTS.get(dtype), block_of(dtype)
    if layout is None or block is None:
        raise UnsupportedError(f"{source.name} is {dtype}; recipes are known of {', '.join(_LAYOUTS)}")
    elements, size = block

    def blocks(first: int, stop: int) -> Array:
        return octets(source, first * size, (stop - first) * size).reshape(-1, size)

    def read(first: int, wanted: int) -> Array:
        start, stop = first // elements, -(-(first + wanted) // elements)
        return layout.codes(blocks(start, stop)).reshape(-1)[first - start * elements :][:wanted]

    number = count // elements
    pieces = [layout.scales(blocks(at, min(at + _AT_ONCE, number))) for at in range(0, number, _AT_ONCE)]
    values = np.concatenate(pieces or [np.zeros((0, layout.values))])
    values = values if layout.kind in (WITH_MINIMA, GROUPS_OF_K) else values.reshape(-1)
    return CodeLayout(f"ggml's blocks of {dtype}", (layout.element,), read), ScaleReading(layout.kind, values)
