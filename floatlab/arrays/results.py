"""Results of calls: an array of the right dtype, in `out` if there is one, and flags if they were asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.reading import words_that_hold
from floatlab.arrays.sources import format_of
from floatlab.arrays.types import Array, DType
from floatlab.errors import FormatError, UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.numbers import Context, Direction, Flags
from floatlab.numbers.rounding import Absent, AnyContext, as_context

_FLAGS = tuple(Flags)
# How many elements raised each flag, for each set of flags.
_SETS = np.array([[flags & flag.value != 0 for flag in _FLAGS] for flags in range(32)], np.int64)
_FEW = 1 << 13  # elements; below that `bincount` is quicker than a pass for each flag
_PIECE = 1 << 16  # elements that stay in the cache


def _how_often(flags: Array) -> Array:
    """Return how many elements raised each flag, in the order of `Flags`."""
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


class Raised:
    """The flags of each element (True or "each"), or how many elements raised each ("counts")."""

    def __init__(self, how: bool | str, shape: tuple[int, ...]) -> None:
        """Allocate; raises UnsupportedError for an unknown value of `return_flags`."""
        if not isinstance(how, bool) and how not in ("each", "counts"):
            known = 'False, True or "each", or "counts"'
            raise UnsupportedError(
                f"return_flags is {known}, not {quoted(str(how))}{guess(str(how), ['each', 'counts'])}"
            )
        self.each = None if how == "counts" else np.empty(shape, np.uint8)
        self._counts: list[Array] = []

    def room(self, count: int) -> Array:
        """Return room for the flags of all elements."""
        return np.empty(count, np.uint8) if self.each is None else self.each.reshape(-1)

    def count(self, flags: Array | None) -> None:
        """Count the flags of a block, if that was asked for."""
        if self.each is None and flags is not None:
            # One append, so that threads do not meet.
            self._counts.append(_how_often(flags))

    @property
    def answer(self) -> Any:
        """The flags of each element as uint8 (the values of `Flags`), or how many raised each, by flag."""
        if self.each is not None:
            return self.each
        found = sum(self._counts, start=np.zeros(len(_FLAGS), np.int64))
        return dict(zip(_FLAGS, found.tolist(), strict=True))


def _check_out(out: object, shape: tuple[int, ...], dtype: DType) -> None:
    """Refuse an `out` that does not fit, before anything is computed; raises UnsupportedError."""
    if out is None:
        return
    if not isinstance(out, np.ndarray):
        raise UnsupportedError(f"out is a NumPy array, not {type(out).__name__}")
    if out.shape != shape or out.dtype != dtype:
        raise UnsupportedError(f"out has shape {out.shape} and dtype {out.dtype}; {shape} and {dtype} fit")
    if not out.flags.writeable:
        raise UnsupportedError("out is read-only")
    if any(stride == 0 and many > 1 for stride, many in zip(out.strides, out.shape, strict=True)):
        raise UnsupportedError("out has elements that share their memory (a stride of 0)")


def _is_the_same(x: Array, out: Array) -> bool:
    """Say whether each element of `out` lies where that of x does."""
    placed = x.ctypes.data == out.ctypes.data and x.strides == out.strides
    return placed and x.shape == out.shape and x.itemsize == out.itemsize


def _sweep(
    work: Callable[..., None], reads: list[Array], bits: Array, raised: Raised | None, threads: int | None
) -> None:
    """Do a call block by block, whatever its arrays are like."""
    each = None if raised is None else raised.each

    def told(first: int, *blocks: Array) -> None:
        if each is not None:
            work(*blocks[:-2], first, *blocks[-2:])
            return
        flags = None if raised is None else np.empty(len(blocks[-1]), np.uint8)
        work(*blocks[:-1], first, blocks[-1], flags)
        if raised is not None:
            raised.count(flags)

    dispatch.sweep(told, reads, [bits] if each is None else [bits, each], threads)


@lru_cache(maxsize=64)
def _bits_of(dtype: DType) -> DType:
    return np.dtype(f"u{dtype.itemsize}").newbyteorder(dtype.byteorder)


def written(
    work: Callable[..., None], reads: list[Array], shape: tuple[int, ...], dtype: DType, out: Array | None,
    context: Context, return_flags: bool | str, threads: int | None, in_place: bool = False,
) -> Any:  # fmt: skip
    """Return what `work` makes of arrays, in `out` where there is one, and with flags the two of them.

    `work(*blocks read, the first one's place, block written, flags or None)`. Nothing is written to `out` before the
    last refusal is past, nor over what is still to be read; `in_place` says that work reads no block again once it has
    written there, so that results may go where the operands are.
    """
    _check_out(out, shape, dtype)
    raised = None if return_flags is False else Raised(return_flags, shape)
    found = out
    if (
        out is None
        or context.absent is Absent.ERROR
        or any(np.may_share_memory(each, out) and not (in_place and _is_the_same(each, out)) for each in reads)
    ):
        found = np.empty(shape, dtype)
    assert found is not None
    # Integers, since an iterator knows nothing of the dtypes of other libraries.
    bits = found.view(_bits_of(found.dtype))
    if 0 < bits.size <= dispatch.BLOCK and (lines := dispatch.as_lines([*reads, bits])):
        dispatch.threads_for(bits.size, threads)  # or the refusal
        flags = None if raised is None else raised.room(bits.size)
        work(*lines[:-1], 0, lines[-1], flags)
        if raised is not None:
            raised.count(flags)
    else:
        _sweep(work, reads, bits, raised, threads)
    if out is not None and found is not out:
        out[...] = found
        found = out
    return found if raised is None else (found, raised.answer)


@lru_cache(maxsize=256)
def _context_in_words(rounding: Direction | str, overflow: str) -> Context:
    return Context(rounding, overflow=overflow)


def rules_of(context: AnyContext, rounding: AnyContext, overflow: str = "native") -> Context:
    """Return `context` where it is given, else the Context that stands in the place of `rounding`, else these words.

    Raises ContextError for what is no context, and UnsupportedError where two say different things.
    """
    if isinstance(rounding, Context):
        if context is not None:
            raise UnsupportedError("two contexts: one in the place of rounding, and context= besides; give one of them")
        if overflow not in ("native", rounding.overflow.value):
            raise UnsupportedError(f"overflow is {overflow}, and the context says {rounding.overflow.value}: give one")
        return rounding
    if context is None:
        direction = "RNE" if rounding is None else rounding
        try:
            return _context_in_words(direction, overflow)
        except TypeError:  # no word at all, such as a list: Context says so
            return Context(direction, overflow=overflow)
    return as_context(context)


@lru_cache(maxsize=256)
def float_for(format: Format) -> DType:
    """Return float32 where it holds all of a format, else float64; raises FormatError where that does not either."""
    for word in words_that_hold(format):
        return np.dtype(np.float32 if word.width == 32 else np.float64)
    raise FormatError(f"{format.name} has numbers that float64 does not hold; encode gives its codes")


@lru_cache(maxsize=256)
def dtype_for(given: DType | None, format: Format) -> DType:
    """Return the dtype of values rounded into a format: the one they had, or a wider one that holds them.

    >>> from floatlab.formats import parse_format
    >>> dtype_for(np.dtype(np.float16), parse_format("e4m3")), dtype_for(np.dtype(np.float16), parse_format("bf16"))
    (dtype('float16'), dtype('float32'))
    """
    own = format_of(given) if given is not None else None
    # What the dtype holds is kept in it; and a format that holds the dtype changes nothing but what it lacks.
    if given is not None and own is not None and (holds(own, format) or holds(format, own)):
        return given.newbyteorder("=")
    return float_for(format)
