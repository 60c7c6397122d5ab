"""The three lanes, which of them serves, and the walk over arrays in blocks that they share."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from floatlab.arrays import compiled, integers, one_by_one
from floatlab.arrays.reading import reading_for, words_that_hold
from floatlab.arrays.recipe import can_round, recipe_for
from floatlab.errors import MissingPartError, UnsupportedError, guess, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from floatlab.formats import Format
    from floatlab.numbers import Context

    Array = np.ndarray[Any, np.dtype[Any]]
    Rounder = Callable[[Array, int, Array, Array | None], None]  # words, the first one's place, codes, flags
    Reader = Callable[[Array, Array], None]  # codes, words

LANES = ("compiled", "numpy", "scalar")
BLOCK = 1 << 16  # elements that stay in the cache while they are worked on
_WORTH_THREADS = 1 << 21  # elements; below that a second thread costs about what it brings
_MOST_THREADS = 64


def parse_lane(name: str | None) -> str | None:
    """Check a lane's name; None stands for the fastest that serves. Raises UnsupportedError, or MissingPartError."""
    if name is None:
        return None
    if name not in LANES:
        raise UnsupportedError(f"lane is one of {' '.join(LANES)}, not {quoted(str(name))}{guess(str(name), [*LANES])}")
    if name == "compiled" and not compiled.is_built():
        raise MissingPartError("lane compiled was not built (no C compiler when floatlab was installed); numpy serves")
    return name


def _lane(name: str | None) -> Any:
    if name is None:
        return compiled if compiled.is_built() else integers
    return {"compiled": compiled, "numpy": integers}[name]


def rounding(
    source: Format, format: Format, context: Context, lane: str | None, count: int
) -> Callable[[Array, int, Array, Array | None], None]:
    """Return what rounds a block of one format's codes into another's: codes, the first one's place, codes, flags.

    Raises UnsupportedError where the lane that was asked for cannot.
    """
    word = next((word for word in words_that_hold(source) if can_round(word, format)), None)
    if lane == "scalar" or (word is None and lane is None):
        return lambda given, first, codes, flags: one_by_one.round_codes(
            given, source, format, context, first, codes, flags
        )
    if word is None:
        raise UnsupportedError(f"lane {lane} cannot round {source.name} into {format.name}; lane scalar can")
    rounder: Rounder = _lane(lane).rounder(recipe_for(format, context, word), count)
    if source == word:
        return rounder
    read = reading(source, word, lane)

    def read_and_round(given: Array, first: int, codes: Array, flags: Array | None) -> None:
        words = np.empty(len(given), word_type(word))
        read(_flushed(given, source) if context.flush_inputs else given, words)
        rounder(words, first, codes, flags)

    return read_and_round


def _flushed(codes: Array, format: Format) -> Array:
    """Return codes with zeros in place of subnormal numbers, which may be normal ones once they are words."""
    kind = codes.dtype.type
    sign = kind(format.compose(format.signed, 0))
    small = (codes & kind((1 << format.magnitude_bits) - 1)) < kind(format.smallest_normal_magnitude)
    return np.where(small, codes & sign, codes)


def reading(format: Format, word: Format, lane: str | None) -> Reader:
    """Return what reads a block of a format's codes as words that hold it: codes, words."""
    how = reading_for(format, word)
    if lane == "scalar" or not (how.by_fields or how.table is not None):
        one: Reader = one_by_one.reader(how)
        return one
    read: Reader = _lane(lane).reader(how)
    return read


def word_type(word: Format) -> Any:
    """Return the dtype of words as integers."""
    return np.uint32 if word.width == 32 else np.uint64


def threads_for(count: int, threads: int | None) -> int:
    """Return how many threads work on so many elements; raises UnsupportedError for what is no number of threads."""
    if threads is None:
        return min(os.cpu_count() or 1, 8) if count >= _WORTH_THREADS else 1
    if not isinstance(threads, int) or isinstance(threads, bool) or not 1 <= threads <= _MOST_THREADS:
        raise UnsupportedError(f"threads is a number from 1 to {_MOST_THREADS}, not {quoted(str(threads))}")
    return threads


def sweep(
    work: Callable[..., None], reads: Sequence[Array], writes: Sequence[Array], threads: int | None = None
) -> None:
    """Call `work(first, *blocks)` on blocks of arrays, in C order: contiguous pieces of what is read and written.

    Arrays may have any strides and byte order, and what is read is broadcast; `first` is the place of a block's first
    element. With threads, each has its own share. Where the memory overlaps otherwise than element by element, what
    is read must have been copied before.
    """
    shape = writes[0].shape
    count = writes[0].size
    if not count:
        return
    flags: Any = ["external_loop", "buffered", "ranged", "delay_bufalloc"]
    of_one: Any = ["contig", "aligned", "nbo"]

    def share(low: int, high: int) -> None:
        with np.nditer(
            [*reads, *writes],
            flags,
            [*(["readonly", *of_one] for _ in reads), *(["writeonly", "no_broadcast", *of_one] for _ in writes)],
            [each.dtype.newbyteorder("=") for each in (*reads, *writes)],
            order="C",
            casting="equiv",
            itershape=shape,
            buffersize=BLOCK,
        ) as walk:
            walk.reset()
            walk.iterrange = (low, high)  # type: ignore[misc]  # its stub says that it is read-only
            for blocks in walk:
                work(low, *blocks)
                low += len(blocks[0])

    parts = threads_for(count, threads)
    size = -(-count // (parts * BLOCK)) * BLOCK
    shares = [(low, min(low + size, count)) for low in range(0, count, size)]
    if len(shares) == 1:
        share(*shares[0])
        return
    with ThreadPoolExecutor(len(shares)) as pool:
        for done in [pool.submit(share, *each) for each in shares]:
            done.result()
