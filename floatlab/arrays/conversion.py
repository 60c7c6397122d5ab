"""`quantize`, `encode` and `decode`: arrays into a format and back."""

from __future__ import annotations

from contextlib import suppress

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.integers import encode_block, has_table, places_in_table, table_for
from floatlab.arrays.recipe import can_round, recipe_for
from floatlab.errors import FormatError, UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, convert

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]

BLOCK = 1 << 15  # elements that stay in the cache while they are worked on
LANES = ("numpy", "scalar")
_SOURCES = {"float16": "binary16", "float32": "binary32", "float64": "binary64", "bfloat16": "bfloat16"}


def _lane(name: str | None) -> str | None:
    if name is not None and name not in LANES:
        raise UnsupportedError(f"lane is one of {' '.join(LANES)}, not {quoted(str(name))}{guess(str(name), [*LANES])}")
    return name


def _array(x: Any) -> Array:
    """Return floats as binary32 or binary64, exactly; raises UnsupportedError for what is no array of floats."""
    array = np.asarray(x)
    name = array.dtype.name
    if name in ("float32", "float64"):
        return array
    if name in _SOURCES:
        return array.astype(np.float32)
    if array.dtype.kind in "iu":
        if array.size and max(int(array.max()), -int(array.min())) > 1 << 53:
            raise UnsupportedError(
                "x holds integers beyond 2^53, where float64 has not all of them: convert them first"
            )
        return array.astype(np.float64)
    raise UnsupportedError(f"x is an array of {name}; floats and integers are taken")


def _container(format: Format) -> Any:
    if format.width > 64:
        raise FormatError(f"{format.name} has codes of {format.width} bits; arrays hold at most 64")
    return next(kind for kind in (np.uint8, np.uint16, np.uint32, np.uint64) if format.width <= 8 * kind(0).itemsize)


def _check(out: Any, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse an `out` that does not fit, before anything is computed; raises UnsupportedError."""
    if out is None:
        return
    if not isinstance(out, np.ndarray):
        raise UnsupportedError(f"out is a NumPy array, not {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise UnsupportedError(f"out has shape {out.shape} and dtype {out.dtype}; {shape} and {np.dtype(dtype)} fit")
    if not out.flags.writeable:
        raise UnsupportedError("out is read-only")


def _given(found: Array, out: Array | None) -> Array:
    """Return what was found, in `out` where there is one."""
    if out is None:
        return found
    out[...] = found
    return out


def encode(
    x: Any,
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool = False,
    lane: str | None = None,
) -> Any:
    """Return the codes of numbers rounded into a format: unsigned integers, the smallest that hold them.

    `x` is anything that `numpy.asarray` takes, of float16, float32, float64, bfloat16 or integers, and
    any shape; every element is rounded once, directly. `context` says all at once and stands above
    `rounding` and `overflow`; stochastic draws are numbered in C order. With `return_flags`, also the
    flags of each element as uint8 (the values of `Flags`). Raises UnsupportedError for other arrays, an
    `out` that does not fit, and values that the context refuses; `out` is then as it was.

    >>> encode([1.0, 448.0, 1000.0], "e4m3").tolist()
    [56, 126, 127]
    """
    fmt = parse_format(format)
    rules = context or Context(rounding, overflow=overflow)
    array, dtype = _array(x), _container(fmt)
    _check(out, array.shape, dtype)
    found, flags = _encoded(array.reshape(-1), fmt, rules, _lane(lane), dtype, return_flags)
    codes = _given(found.reshape(array.shape), out)
    return (codes, flags.reshape(array.shape)) if return_flags else codes


def _encoded(
    flat: Array, format: Format, context: Context, lane: str | None, dtype: Any, wanted: bool
) -> tuple[Array, Array]:
    """Return the codes of a flat array, and flags if wanted; made aside, so that a refusal leaves `out` as it was."""
    codes, flags = np.empty(flat.shape, dtype), np.empty(flat.shape if wanted else 0, np.uint8)
    source = {"float32": "binary32", "float64": "binary64"}[flat.dtype.name]
    if lane != "scalar" and not can_round(parse_format(source), format):
        source = "binary64"
    scalar = lane == "scalar" or not can_round(parse_format(source), format)
    if scalar and lane == "numpy":
        raise UnsupportedError(f"lane numpy cannot round into {format.name}; lane scalar can")
    # Read as their own format, so that subnormal inputs are what they are where they are flushed.
    widened = source == "binary64" and flat.dtype.name == "float32"
    if widened and context.flush_inputs:
        scalar = True
    table = None
    if not scalar and flat.size > BLOCK and has_table(recipe := recipe_for(format, context, source)):
        with suppress(UnsupportedError):  # a value that the context refuses; it may not be among these
            table = table_for(recipe)
    for first in range(0, flat.size, BLOCK):
        block = np.ascontiguousarray(flat[first : first + BLOCK])
        if scalar:
            one_by_one(block, format, context, first, codes, flags if wanted else None)
            continue
        if widened:
            block = _widened(block)
        bits = block.view(np.uint64 if source == "binary64" else np.uint32)
        here = slice(first, first + len(block))
        if table is None:
            made, raised = encode_block(bits, recipe_for(format, context, source), first)
            codes[here] = made
            if wanted:
                flags[here] = raised
        else:
            at = places_in_table(bits)
            np.take(table[0], at, out=codes[here], mode="clip")
            if wanted:
                np.take(table[1], at, out=flags[here], mode="clip")
    return codes, flags


def _widened(block: Array) -> Array:
    """Return binary32 as binary64, signaling NaNs still signaling (a cast would quiet them)."""
    with np.errstate(invalid="ignore"):
        wide = block.astype(np.float64)
    bits = block.view(np.uint32)
    signaling = ((bits & 0x7FC00000) == 0x7F800000) & ((bits & 0x003FFFFF) != 0)
    if signaling.any():
        wide.view(np.uint64)[signaling] &= ~np.uint64(1 << 51)
    return wide


def one_by_one(block: Array, format: Format, context: Context, first: int, codes: Array, flags: Array | None) -> None:
    """Send every element through the scalar kernel, into `codes` and `flags` from `first` on: the scalar lane."""
    from floatlab.numbers.projection import round_exact

    source = parse_format("binary32" if block.dtype.name == "float32" else "binary64")
    bits = block.view(np.uint32 if source.width == 32 else np.uint64)
    for i, code in enumerate(bits.tolist(), first):
        datum = Datum(source, code)
        if datum.is_finite and not (context.flush_inputs and datum.is_subnormal):
            rounded = round_exact(datum.exact, format, context, index=i)
            codes[i], raised = rounded.code, rounded.flags
        else:
            found = convert(datum, format, context)
            codes[i], raised = found.result.code, found.flags
        if flags is not None:
            flags[i] = raised.value


def decode(codes: Any, format: Format | str, dtype: Any = None, out: Array | None = None) -> Array:
    """Return the values of codes as floats: float32 where it holds all of the format, else float64.

    `codes` are integers of any shape. Raises FormatError for a format that float64 does not hold and
    UnsupportedError for codes that are too wide, or a `dtype` that does not hold the values.

    >>> decode([56, 126, 127], "e4m3").tolist()
    [1.0, 448.0, nan]
    """
    fmt = parse_format(format)
    array = np.asarray(codes)
    if array.dtype.kind not in "iu" and array.size:
        raise UnsupportedError(f"codes is an array of {array.dtype.name}; codes are integers")
    kind = np.dtype(dtype) if dtype is not None else _narrowest(fmt)
    if kind.name not in _SOURCES or not holds(parse_format(_SOURCES[kind.name]), fmt):
        raise UnsupportedError(f"dtype {kind.name} does not hold all of {fmt.name}")
    whole = array.astype(np.uint64)
    if array.size and (array.min() < 0 or int(whole.max()) >> fmt.width):
        raise UnsupportedError(
            f"codes has codes that are not {fmt.width} bits: {fmt.name} goes to {(1 << fmt.width) - 1:#x}"
        )
    _check(out, array.shape, kind)
    return _given(_decoded(whole, fmt).astype(kind), out)


def _narrowest(format: Format) -> Any:
    for kind in (np.float32, np.float64):
        if holds(parse_format(_SOURCES[np.dtype(kind).name]), format):
            return np.dtype(kind)
    raise FormatError(f"{format.name} has numbers that float64 does not hold; encode gives its codes")


def _decoded(codes: Array, format: Format) -> Array:
    t = format.trailing_bits
    negative = (codes >> np.uint64(format.width - 1)) != 0 if format.signed else np.zeros(codes.shape, bool)
    magnitude = (codes & np.uint64((1 << format.magnitude_bits) - 1)).astype(np.int64)
    field = magnitude >> t
    c = (magnitude & ((1 << t) - 1)) | np.where((field != 0) | (not format.zero), 1 << t, 0)
    if not format.subnormals and format.zero:
        c = np.where(field == 0, 0, c)
    values = np.ldexp(c.astype(np.float64), np.maximum(field, int(format.zero)) - format.bias - t)
    values = np.where(magnitude > format.largest_magnitude, np.nan, values)
    values = np.where(magnitude == format.infinity_magnitude, np.inf, values)
    values = np.where(negative, -values, values)
    if format.nan_in_place_of_negative_zero:
        values = np.where(negative & (magnitude == 0), np.nan, values)
    return values


def quantize(
    x: Any,
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool = False,
    lane: str | None = None,
) -> Any:
    """Return the numbers of `x` rounded into a format, as floats of x's dtype, or of a wider one that holds them.

    Arguments and errors are `encode`'s; NaNs come back without payloads.

    >>> quantize(np.array([0.1, 3.0, 500.0], np.float32), "e4m3").tolist()
    [0.1015625, 3.0, nan]
    >>> quantize(np.float16(65504), "bf16").item()
    65536.0
    """
    fmt = parse_format(format)
    given = np.asarray(x)
    own = parse_format(_SOURCES[given.dtype.name]) if given.dtype.name in _SOURCES else None
    # What the dtype holds is kept in it; and a format that holds the dtype changes nothing but what it lacks.
    kind = given.dtype if own is not None and (holds(own, fmt) or holds(fmt, own)) else _narrowest(fmt)
    _check(out, given.shape, kind)
    found = encode(given, fmt, rounding, overflow, context=context, return_flags=return_flags, lane=lane)
    codes, flags = found if return_flags else (found, None)
    values = _given(_decoded(codes.astype(np.uint64), fmt).astype(kind), out)
    return (values, flags) if return_flags else values
