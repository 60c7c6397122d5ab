"""Code that the functions on arrays share: keywords, operands, dtypes, rounding and decoding, results and flags."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, TypedDict

import numpy as np

from floatlab.arith.operands import exact_integer, holds
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.parameters import DOUBLE, checked_codes, container, words_containing
from floatlab.arrays.sources import Piece, Source, format_of, is_floating, is_typed, source_of
from floatlab.arrays.types import Array, DType, Work
from floatlab.errors import FormatError, UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Direction, Flags
from floatlab.numbers.projection import given_by_table
from floatlab.numbers.rounding import DEFAULT, Absent, AnyContext, as_context
from floatlab.numbers.scalars import whole_number

_FLAGS = tuple(Flags)
# Row n has a 1 for each flag in the set of flags with the integer n, and a 0 for the others.
_SETS = np.array([[flags & flag.value != 0 for flag in _FLAGS] for flags in range(32)], np.int64)
_FEW = 1 << 13  # below this many elements, `bincount` is faster than one pass per flag
_PIECE = 1 << 16  # elements per pass, so few that they stay in the cache


class CallOptions(TypedDict, total=False):
    """Keywords of calls that round into a format; `arrays.encode` explains them."""

    context: AnyContext
    return_flags: bool | str
    lane: str | None
    threads: int | None


class BlockOptions(TypedDict, total=False):
    """Keywords of calls on block formats; `arrays.encode_blocks` explains them."""

    scale: str | None
    tensor_scale: object
    block: int | None


class BlockRounding(BlockOptions, total=False):
    """Keywords of `arrays.encode_blocks` and `arrays.quantize_blocks` besides the axis."""

    rounding: AnyContext
    context: AnyContext
    lane: str | None


class AnyOptions(CallOptions, BlockOptions, total=False):
    """Keywords of calls that take formats and block formats."""

    axis: int
    dialect: str | None


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
    dialect: str | None = None,
    as_codes: bool = False,
) -> Any:
    """Round the numbers of an array once into a format, and return values or codes.

    `conversion.encode` explains the arguments.
    """
    fmt, source = parse_format(format), source_of(x)
    rules = rules_of(context, rounding, overflow)
    if dialect is not None:
        rules = _in_dialect(dialect, fmt, rules)
    kind = container(fmt) if as_codes else dtype_for(source.dtype, fmt)
    target = None if as_codes else format_of(kind)
    work = dispatch.rounder(source.format, fmt, rules, dispatch.parse_lane(lane), target)
    return written(work, [source.codes], source.codes.shape, kind, out, rules, return_flags, threads, True)


def _in_dialect(name: str, format: Format, rules: Context) -> Context:
    """Return the context `rules` with the settings of the dialect `name`.

    These settings are the rules for overflow, for values that the format lacks, for NaNs and for negative numbers.
    Raises UnsupportedError if one of these settings in `rules` differs from the default.
    """
    from floatlab.numbers.dialects import parse_dialect

    for field in ("overflow", "absent", "nan", "negative"):
        if getattr(rules, field) != getattr(DEFAULT, field):
            raise UnsupportedError(f"{field} is fixed by the dialect {name}: leave out one of them")
    return parse_dialect(name).context(format, rules)


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
        raise UnsupportedError(f"dtype must be a dtype of NumPy, not {quoted(str(dtype))}") from None
    target = format_of(kind)
    if target is None or not (holds(target, fmt) or (_is_irrational(fmt) and target == DOUBLE)):
        raise UnsupportedError(f"dtype {kind.name} does not hold all of {fmt.name}")
    read = dispatch.reader(fmt, target, dispatch.parse_lane(lane))

    def work(piece: Array, first: int, values: Array, flags: Array | None) -> None:
        read(piece.astype(held, copy=False), values)

    return written(work, [array], array.shape, kind, out, DEFAULT, False, threads)


def native(piece: Piece) -> Array:
    """Return a piece as an array of numbers; a `Source` is decoded.

    >>> native(Source(np.uint8([0x38, 0x40]), Format("mine", 4, 4))).tolist()
    [1.0, 2.0]
    """
    return decode_array(piece.codes, piece.format) if isinstance(piece, Source) else piece


@lru_cache(maxsize=256)
def _context_in_words(rounding: Direction | str, overflow: str) -> Context:
    return Context(rounding, overflow=overflow)


def rules_of(context: AnyContext, rounding: AnyContext, overflow: str = "native") -> Context:
    """Return the Context of a call: `context`, or `rounding` if it is a Context, or else Context(rounding, overflow).

    Raises ContextError for an invalid context. Raises UnsupportedError for conflicting arguments, and for a context
    with precision control.
    """
    made = _rules_of(context, rounding, overflow)
    if made.precision != DEFAULT.precision:
        raise UnsupportedError(f"precision {made.precision}: precision control is for single numbers of x87")
    return made


def _rules_of(context: AnyContext, rounding: AnyContext, overflow: str) -> Context:
    if isinstance(rounding, Context):
        if context is not None:
            raise UnsupportedError("rounding is a Context, and context= is given too: give one of them")
        if overflow not in ("native", rounding.overflow.value):
            raise UnsupportedError(f"overflow is {overflow}, but the context has {rounding.overflow.value}: give one")
        return rounding
    if context is None:
        direction = "RNE" if rounding is None else rounding
        try:
            return _context_in_words(direction, overflow)
        except TypeError:  # not hashable, such as a list: Context raises the error
            return Context(direction, overflow=overflow)
    return as_context(context)


def _is_irrational(format: Format) -> bool:
    return given_by_table(format) and format.is_irrational


@lru_cache(maxsize=256)
def float_for(format: Format) -> DType:
    """Return float32 if it contains the format, else float64.

    For irrational formats (logarithmic takums), return float64, which can only approximate their numbers. For all other
    formats that float64 does not contain, raise FormatError.
    """
    for word in words_containing(format):
        return np.dtype(np.float32 if word.width == 32 else np.float64)
    if _is_irrational(format):  # results are the nearest numbers of float64
        return np.dtype(np.float64)
    raise FormatError(f"{format.name} has numbers that float64 does not hold; encode gives its codes")


@lru_cache(maxsize=256)
def dtype_for(given: DType | None, format: Format) -> DType:
    """Return the dtype of results if numbers of the dtype `given` are rounded into a format.

    The result is `given` if this dtype contains the format, or the format contains this dtype. Otherwise, the result is
    float32 or float64. `given` is None if the numbers have no floating dtype.

    >>> from floatlab.formats import parse_format
    >>> dtype_for(np.dtype(np.float16), parse_format("e4m3")), dtype_for(np.dtype(np.float16), parse_format("bf16"))
    (dtype('float16'), dtype('float32'))
    """
    own = format_of(given) if given is not None else None
    # If the format contains the dtype, rounding changes no number.
    if given is not None and own is not None and (holds(own, format) or holds(format, own)):
        return given.newbyteorder("=")
    return float_for(format)


def operand(x: object, name: str, format: Format) -> Source:
    """Return an operand in its own format; Python numbers and lists have no format, and are rounded into `format`."""
    source = source_of(x, name)
    return source if is_typed(x) else Source(round_array(source, format, as_codes=True), format)


def exact_operand(x: object, name: str, format: Format, context: Context) -> Source:
    """Return an operand unrounded: an array in its own format, Python floats in binary64, Python integers exactly.

    Exception: if `format` represents a Python number, or all numbers of a list, exactly, the operand is returned in
    `format`, because operations are then faster. This exception does not apply to floats if `context` flushes inputs.
    Raises UnsupportedError for a Python integer that `format` does not represent.
    """
    source = source_of(x, name)
    if is_typed(x):
        return source
    codes, raised = round_array(source, format, return_flags="counts", as_codes=True)
    changed = any(raised.values())
    if changed:
        for n in _integers(x):
            exact_integer(n, format)
    if changed or (context.flush_inputs and source.dtype is not None):  # inputs are flushed in their own format
        return source
    return Source(codes, format)


def _integers(x: object) -> set[int]:
    if isinstance(x, list | tuple):
        return set().union(*map(_integers, x))
    n = whole_number(x)
    return set() if n is None else {n}


def broadcast(names: Sequence[str], codes: Sequence[Array]) -> tuple[int, ...]:
    """Return the shape that operands broadcast to; raises UnsupportedError if they do not broadcast."""
    shapes = [each.shape for each in codes]
    first: tuple[int, ...] = shapes[0]
    if shapes.count(first) == len(shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        told = ", ".join(f"{name} {shape}" for name, shape in zip(names, shapes, strict=True))
        raise UnsupportedError(f"shapes do not broadcast: {told}") from None


def floating_dtype(x: object, source: Source) -> DType | None:
    """Return the dtype of an array with a floating dtype, or None for other operands, such as FloatArrays."""
    return source.dtype if type(x) is np.ndarray or is_floating(x) else None


@lru_cache(maxsize=256)
def shared_dtype(dtypes: tuple[DType | None, ...], format: Format) -> DType:
    """Return the common dtype of the floating operands if this dtype contains the format, else float32 or float64."""
    given = [each.newbyteorder("=") for each in dtypes if each is not None and format_of(each) is not None]
    if not given:
        return float_for(format)
    try:
        common = np.result_type(*given)
    except TypeError:  # two 8-bit floats of ml_dtypes
        return float_for(format)
    own = format_of(common)
    return common if own is not None and holds(own, format) else float_for(format)


def written(
    work: Work, reads: list[Array], shape: tuple[int, ...], dtype: DType, out: Array | None,
    context: Context, return_flags: bool | str, threads: int | None, in_place: bool = False,
) -> Any:  # fmt: skip
    """Run `work` on arrays; return the result (`out` if given) or, with `return_flags`, a pair of result and flags.

    If `return_flags` is True or "each", the flags are an array with the flags of every element. If `return_flags` is
    "counts", the flags are a dict with the number of elements that raised each flag. After an error, `out` is
    unchanged.

    If `out` shares memory with an operand, results are first written to a new array. The exception is `in_place`: the
    caller promises that `work` reads each chunk of an operand before it writes this chunk of the result. An `out` that
    has the same elements as an operand at the same addresses then needs no new array.
    """
    _check_out(out, shape, dtype)
    flags: Array | None = None
    counts: list[Array] | None = None
    if return_flags is not False:
        if not isinstance(return_flags, bool) and return_flags not in ("each", "counts"):
            hint = guess(str(return_flags), ["each", "counts"])
            known = 'False, True or "each", or "counts"'
            raise UnsupportedError(f"return_flags must be {known}, not {quoted(str(return_flags))}{hint}")
        if return_flags == "counts":
            counts = []
            work = _counting(work, counts)
        else:
            flags = np.empty(shape, np.uint8)
    result = out
    if (
        out is None
        or context.absent is Absent.ERROR
        or any(np.may_share_memory(each, out) and not (in_place and _is_the_same(each, out)) for each in reads)
    ):
        result = np.empty(shape, dtype)
    assert result is not None
    # View the result as integers, since NumPy's iterator does not support the dtypes of other libraries.
    bits = result.view(_bits_of(result.dtype))
    if 0 < bits.size <= dispatch.BLOCK and (lines := dispatch.flat_views([*reads, bits])):
        dispatch.threads_for(bits.size, threads)  # raises an error for an invalid `threads`
        work(*lines[:-1], 0, lines[-1], None if flags is None else flags.reshape(-1))
    else:
        dispatch.map_blocks(work, reads, bits, flags, threads)
    if out is not None and result is not out:
        out[...] = result
        result = out
    if counts is not None:
        totals = sum(counts, start=np.zeros(len(_FLAGS), np.int64))
        return result, dict(zip(_FLAGS, totals.tolist(), strict=True))
    return result if flags is None else (result, flags)


def _counting(work: Work, counts: list[Array]) -> Work:
    """Return `work`, extended to append to `counts` how many elements of each chunk raised each flag.

    Several threads may call the returned function, because appending to a list is atomic.
    """

    def counted(*arguments: Any) -> None:
        flags = np.empty(len(arguments[-2]), np.uint8)
        work(*arguments[:-1], flags)
        counts.append(_how_often(flags))

    return counted


def _how_often(flags: Array) -> Array:
    """Return the number of elements that raised each flag, in the order of `Flags`."""
    if len(flags) < _FEW:
        sets: Array = np.bincount(flags, minlength=32) @ _SETS
        return sets
    found = np.zeros(len(_FLAGS), np.int64)
    for start in range(0, len(flags), _PIECE):
        piece = flags[start : start + _PIECE]
        union = int(np.bitwise_or.reduce(piece))
        for i, flag in enumerate(_FLAGS):
            if union & flag.value:
                found[i] += np.count_nonzero(piece & np.uint8(flag.value))
    return found


def _check_out(out: object, shape: tuple[int, ...], dtype: DType) -> None:
    """Raise UnsupportedError for an `out` that does not fit, before anything is computed."""
    if out is None:
        return
    if not isinstance(out, np.ndarray):
        raise UnsupportedError(f"out must be a NumPy array, not {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise UnsupportedError(f"out must have shape {shape} and dtype {dtype}, not {out.shape} and {out.dtype}")
    if not out.flags.writeable:
        raise UnsupportedError("out is read-only")
    if any(stride == 0 and many > 1 for stride, many in zip(out.strides, out.shape, strict=True)):
        raise UnsupportedError("out has elements that share their memory (a stride of 0)")


def _is_the_same(x: Array, out: Array) -> bool:
    """Return whether each element of `out` has the same memory address as the element of `x` with the same index."""
    placed = x.ctypes.data == out.ctypes.data and x.strides == out.strides
    return placed and x.shape == out.shape and x.itemsize == out.itemsize


@lru_cache(maxsize=64)
def _bits_of(dtype: DType) -> DType:
    return np.dtype(f"u{dtype.itemsize}").newbyteorder(dtype.byteorder)
