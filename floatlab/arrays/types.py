"""Types that array code shares: arrays, functions that work on pieces of them, and the keywords of calls."""

from collections.abc import Callable
from typing import Any, TypedDict

import numpy as np

from floatlab.numbers.rounding import AnyContext

Array = np.ndarray[Any, np.dtype[Any]]
DType = np.dtype[Any]
Rounder = Callable[[Array, int, Array, Array | None], None]  # words, index of the first, codes out, flags out
Reader = Callable[[Array, Array], None]  # codes, words out
Work = Callable[..., None]  # codes of each operand, index of the first, result out, flags out or None


class CallOptions(TypedDict, total=False):
    """Keywords that every call which rounds takes; `arrays.encode` says what they mean."""

    context: AnyContext
    return_flags: bool | str
    lane: str | None
    threads: int | None


class BlockOptions(TypedDict, total=False):
    """Keywords that calls on formats of blocks take; `arrays.encode_blocks` says what they mean."""

    scale: str | None
    tensor_scale: object
    block: int | None


class BlockRounding(BlockOptions, total=False):
    """Keywords of `arrays.encode_blocks` and `arrays.quantize_blocks` besides the axis."""

    rounding: AnyContext
    context: AnyContext
    lane: str | None


class AnyOptions(CallOptions, BlockOptions, total=False):
    """Keywords of calls that take any format."""

    axis: int
