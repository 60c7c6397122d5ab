"""`quantize`, `encode` and `decode`: arrays into a format and back."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.reading import checked_codes, container
from floatlab.arrays.results import dtype_for, float_for, rules_of, written
from floatlab.arrays.sources import format_of, source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.formats.blocks import BlockFormat, is_block_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers.context import DEFAULT, AnyContext

_OF_BLOCKS = ("axis", "scale", "tensor_scale", "block")
_KNOWN = ["rounding", "overflow", "out", "context", "return_flags", "lane", "threads", "dtype", *_OF_BLOCKS]


def _room_of_blocks(
    format: Any, of_blocks: dict[str, Any], out: Any, return_flags: bool | str, overflow: str, threads: int | None
) -> ModuleType | None:
    """Return the room that works on formats of blocks if this is one; raises for arguments of the other kind."""
    if not isinstance(format, BlockFormat) and not (isinstance(format, str) and is_block_format(format)):
        for name in of_blocks:
            if name not in _OF_BLOCKS:
                hint = ': a seed is part of a context, Context("SR", seed=1)' if name == "seed" else ""
                raise UnsupportedError(f"there is no argument {quoted(name)}{guess(name, _KNOWN)}{hint}")
            raise UnsupportedError(f"{name} goes with formats of blocks such as mxfp4, not with {quoted(str(format))}")
        return None
    for name in of_blocks:
        if name not in _OF_BLOCKS:
            raise UnsupportedError(f"there is no argument {quoted(name)}{guess(name, _KNOWN)} for formats of blocks")
    missing = {"out": out is not None, "return_flags": return_flags is not False, "threads": threads not in (None, 1)}
    for name, is_given in (missing | {"overflow": overflow not in ("native", "saturate")}).items():
        if is_given:
            raise UnsupportedError(f"{name} is not for formats of blocks, whose elements saturate in new arrays")
    from floatlab.arrays import blocks  # which is a floor up, on these very functions

    return blocks


@in_default_mode
def encode(
    x: Any,
    format: Format | str,
    rounding: AnyContext = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: AnyContext = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
    **of_blocks: Any,
) -> Any:
    """Return the codes of numbers rounded into a format: unsigned integers, the smallest that hold them.

    `x` is an array of any shape: what `numpy.asarray` takes, of floats of any dtype (float16, float32, float64, those
    of ml_dtypes) or integers, a `FloatArray`, a tensor of torch or jax; every element is rounded once, directly.
    `context` says all at once and stands above `rounding` and `overflow`; stochastic draws are numbered in C order.
    `return_flags=True` also returns the flags of each element as uint8 (the values of `Flags`), and "counts" how many
    elements raised each flag. `lane` is one of compiled, numpy and scalar, which agree; `threads` is one for small
    arrays, and all processors for large ones. Raises UnsupportedError for other arrays, an `out` that does not fit,
    and values that the context refuses; `out` is then as it was.

    A format of blocks (`mxfp4`, `nvfp4` …) gives (scales, codes), and takes `axis`, `scale` and what else
    `encode_blocks` takes.

    >>> encode([1.0, 448.0, 1000.0], "e4m3").tolist()
    [56, 126, 127]
    >>> from floatlab import Flags
    >>> encode([1.0, 448.0, 1000.0], "e4m3", return_flags="counts")[1][Flags.OVERFLOW]
    1
    """
    if blocks := _room_of_blocks(format, of_blocks, out, return_flags, overflow, threads):
        return blocks.encode_blocks(x, format, rounding=rounding, context=context, lane=lane, **of_blocks)
    fmt, source = parse_format(format), source_of(x)
    rules = rules_of(context, rounding, overflow)
    work = dispatch.rounder(source.format, fmt, rules, dispatch.parse_lane(lane))
    shape = source.codes.shape
    return written(work, [source.codes], shape, container(fmt), out, rules, return_flags, threads, True)


@in_default_mode
def decode(
    codes: Any,
    format: Format | str,
    dtype: Any = None,
    out: Array | None = None,
    *,
    lane: str | None = None,
    threads: int | None = None,
    **of_blocks: Any,
) -> Array:
    """Return the values of codes as floats: float32 where it holds all of the format, else float64.

    `codes` are integers of any shape; NaNs keep the payloads they have. Raises FormatError for a format that float64
    does not hold and UnsupportedError for codes that are too wide, or a `dtype` that does not hold the values.
    For a format of blocks, `codes` is what `encode` returned, and the arguments are those of `decode_blocks`; MX and
    nvfp4 become float64.

    >>> decode([56, 126, 127], "e4m3").tolist()
    [1.0, 448.0, nan]
    """
    if blocks := _room_of_blocks(format, of_blocks, out, False, "native", threads):
        found: Array = blocks.decode_blocks(codes, format, dtype=dtype, **of_blocks)
        return found
    fmt = parse_format(format)
    array, held = checked_codes(codes, fmt), container(fmt)
    try:
        kind = np.dtype(dtype) if dtype is not None else float_for(fmt)
    except TypeError:
        raise UnsupportedError(f"dtype {quoted(str(dtype))} is none of NumPy's") from None
    target = format_of(kind)
    if target is None or not holds(target, fmt):
        raise UnsupportedError(f"dtype {kind.name} does not hold all of {fmt.name}")
    read = dispatch.reader(fmt, target, dispatch.parse_lane(lane))

    def work(given: Array, first: int, values: Array, flags: Array | None) -> None:
        read(given.astype(held, copy=False), values)

    values: Array = written(work, [array], array.shape, kind, out, DEFAULT, False, threads)
    return values


@in_default_mode
def quantize(
    x: Any,
    format: Format | str,
    rounding: AnyContext = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: AnyContext = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
    **of_blocks: Any,
) -> Any:
    """Return the numbers of `x` rounded into a format, as floats of x's dtype, or of a wider one that holds them.

    Arguments and errors are `encode`'s; a format of blocks takes those of `quantize_blocks`.

    >>> quantize(np.array([0.1, 3.0, 500.0], np.float32), "e4m3").tolist()
    [0.1015625, 3.0, nan]
    >>> quantize(np.float16(65504), "bf16").item()
    65536.0
    """
    if blocks := _room_of_blocks(format, of_blocks, out, return_flags, overflow, threads):
        return blocks.quantize_blocks(x, format, rounding=rounding, context=context, lane=lane, **of_blocks)
    fmt, source = parse_format(format), source_of(x)
    rules = rules_of(context, rounding, overflow)
    kind = dtype_for(source.dtype, fmt)
    target = format_of(kind)
    assert target is not None
    work = dispatch.rounder(source.format, fmt, rules, dispatch.parse_lane(lane), target)
    return written(work, [source.codes], source.codes.shape, kind, out, rules, return_flags, threads, True)
