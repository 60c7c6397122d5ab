"""What calls give: an array of the right dtype, in `out` where there is one, and the flags that were asked for."""

from __future__ import annotations

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.lanes import sweep
from floatlab.arrays.reading import words_that_hold
from floatlab.arrays.sources import format_of
from floatlab.errors import FormatError, UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.numbers import Context, Flags
from floatlab.numbers.context import Absent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]


class Raised:
    """Flags not at all (False), of each element (True or "each"), or how many elements raised each ("counts")."""

    def __init__(self, how: bool | str, shape: tuple[int, ...]) -> None:
        """Make room; raises UnsupportedError for what is no way of telling them."""
        if not isinstance(how, bool) and how not in ("each", "counts"):
            known = 'False, True or "each", or "counts"'
            raise UnsupportedError(
                f"return_flags is {known}, not {quoted(str(how))}{guess(str(how), ['each', 'counts'])}"
            )
        self.is_wanted = how is not False
        self.each = np.empty(shape, np.uint8) if how in (True, "each") else None
        self._counts: list[Array] = []

    def room(self, count: int) -> Array | None:
        """Return room for the flags of a block that are only counted."""
        return np.empty(count, np.uint8) if self.is_wanted else None

    def count(self, flags: Array | None) -> None:
        """Count the flags of a block, if that was asked for."""
        if self.each is None and flags is not None:
            # One append, so that threads do not meet.
            self._counts.append(np.bincount(flags, minlength=32))

    @property
    def answer(self) -> Any:
        """The flags of each element as uint8 (the values of `Flags`), or how many raised each, by flag."""
        if self.each is not None:
            return self.each
        # How many elements raised each of the 32 sets of flags; a flag is in half of them.
        found = np.sum([np.zeros(32, np.int64), *self._counts], axis=0).tolist()
        return {flag: sum(many for flags, many in enumerate(found) if flags & flag.value) for flag in Flags}


def _check_out(out: Any, shape: tuple[int, ...], dtype: np.dtype[Any]) -> None:
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


def written(
    work: Callable[..., None], reads: list[Array], shape: tuple[int, ...], dtype: np.dtype[Any], out: Array | None,
    context: Context, return_flags: bool | str, threads: int | None, in_place: bool = False,
) -> Any:  # fmt: skip
    """Return what `work` makes of arrays, in `out` where there is one, and with flags the two of them.

    `work(*blocks read, the first one's place, block written, flags or None)`. Nothing is written to `out` before the
    last refusal is past, nor over what is still to be read; `in_place` says that work reads no block again once it has
    written there, so that results may go where the operands are.
    """
    _check_out(out, shape, dtype)
    raised = Raised(return_flags, shape)
    aside = (
        out is None
        or context.absent is Absent.ERROR
        or any(np.may_share_memory(each, out) and not (in_place and _is_the_same(each, out)) for each in reads)
    )
    found = np.empty(shape, dtype) if aside or out is None else out
    # Integers, since an iterator knows nothing of the dtypes of other libraries.
    bits = found.view(np.dtype(f"u{found.itemsize}").newbyteorder(found.dtype.byteorder))

    def told(first: int, *blocks: Array) -> None:
        *given, made = blocks if raised.each is None else blocks[:-1]
        flags = blocks[-1] if raised.each is not None else raised.room(len(made))
        work(*given, first, made, flags)
        raised.count(flags)

    sweep(told, reads, [bits] if raised.each is None else [bits, raised.each], threads)
    if out is not None and found is not out:
        out[...] = found
        found = out
    return (found, raised.answer) if raised.is_wanted else found


def rules_of(context: Context | None, rounding: str, overflow: str = "native") -> Context:
    """Return the context that was given, or one of these words; raises UnsupportedError for what is no context."""
    if context is None:
        return Context(rounding, overflow=overflow)
    if not isinstance(context, Context):
        raise UnsupportedError(f"context is a floatlab.Context, not {type(context).__name__}")
    return context


def float_for(format: Format) -> np.dtype[Any]:
    """Return float32 where it holds all of a format, else float64; raises FormatError where that does not either."""
    for word in words_that_hold(format):
        return np.dtype(np.float32 if word.width == 32 else np.float64)
    raise FormatError(f"{format.name} has numbers that float64 does not hold; encode gives its codes")


def dtype_for(given: np.dtype[Any] | None, format: Format) -> np.dtype[Any]:
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
