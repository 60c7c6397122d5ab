"""Arrays rounded into one format, and codes read back: what `conversion` does for formats that are not blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.reading import checked_codes, container
from floatlab.arrays.results import dtype_for, float_for, rules_of, written
from floatlab.arrays.sources import format_of, source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers.rounding import DEFAULT, AnyContext


def round_array(
    x: object,
    format: Format | str,
    rounding: AnyContext = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: AnyContext = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
    as_codes: bool = False,
) -> Any:
    """Return the numbers of an array rounded once into a format, as values or as codes; see `conversion.encode`."""
    fmt, source = parse_format(format), source_of(x)
    rules = rules_of(context, rounding, overflow)
    kind = container(fmt) if as_codes else dtype_for(source.dtype, fmt)
    target = None if as_codes else format_of(kind)
    work = dispatch.rounder(source.format, fmt, rules, dispatch.parse_lane(lane), target)
    return written(work, [source.codes], source.codes.shape, kind, out, rules, return_flags, threads, True)


def decode_array(
    codes: object,
    format: Format | str,
    dtype: object = None,
    out: Array | None = None,
    *,
    lane: str | None = None,
    threads: int | None = None,
) -> Array:
    """Return the values of an array of codes; see `conversion.decode`."""
    fmt = parse_format(format)
    array, held = checked_codes(codes, fmt), container(fmt)
    try:
        kind = np.dtype(dtype) if dtype is not None else float_for(fmt)  # type: ignore[call-overload]
    except TypeError:
        raise UnsupportedError(f"dtype {quoted(str(dtype))} is none of NumPy's") from None
    target = format_of(kind)
    if target is None or not holds(target, fmt):
        raise UnsupportedError(f"dtype {kind.name} does not hold all of {fmt.name}")
    read = dispatch.reader(fmt, target, dispatch.parse_lane(lane))

    def work(piece: Array, first: int, values: Array, flags: Array | None) -> None:
        read(piece.astype(held, copy=False), values)

    return written(work, [array], array.shape, kind, out, DEFAULT, False, threads)
