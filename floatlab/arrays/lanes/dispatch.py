"""The three lanes, which of them serves, and the walk over arrays in blocks that they share."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from floatlab.arrays.lanes import compiled, numpy_integers, scalar
from floatlab.arrays.lanes.reading import container, reading_for, words_that_hold
from floatlab.arrays.lanes.rounding_parameters import can_round, recipe_for
from floatlab.arrays.types import Array, Reader, Rounder, Work
from floatlab.errors import MissingPartError, UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import DefaultMode
from floatlab.numbers import Context

LANES = ("compiled", "numpy", "scalar")
BLOCK = 1 << 18  # elements that go through a lane at once; the compiled one has pieces of its own
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


@lru_cache(maxsize=256)
def rounder(
    source: Format, format: Format, context: Context, lane: str | None, target: Format | None = None
) -> Rounder:
    """Return what rounds a block of one format's codes into another's; with `target`, into the codes of values in it.

    The target has all the numbers that there will be. Raises UnsupportedError where the lane asked for cannot.
    """
    if target is not None and target != format:
        word = _word_for(source, format)
        if target == word and is_compiled(lane) and can_read(format, word) and word in words_that_hold(format):
            return _rounder(source, format, context, lane, word)
        return telling_values(_rounder(source, format, context, lane, None), format, target, lane)
    return _rounder(source, format, context, lane, None)


def _word_for(source: Format, format: Format) -> Format | None:
    return next((word for word in words_that_hold(source) if can_round(word, format)), None)


def is_compiled(lane: str | None) -> bool:
    """Say whether a lane, as parse_lane returned it, is the compiled one."""
    return lane == "compiled" or (lane is None and compiled.is_built())


def can_read(format: Format, word: Format) -> bool:
    """Say whether the fast lanes read a format as words."""
    how = reading_for(format, word)
    return how.by_fields or how.table is not None


def telling_values(work: Work, format: Format, target: Format | None, lane: str | None) -> Work:
    """Return work that writes values, in a target that has them all, in place of work that writes a format's codes."""
    if target is None or target == format:
        return work
    read, held = reader(format, target, lane), container(format)

    def through_codes(*given: Any) -> None:
        *blocks, first, values, flags = given
        codes = np.empty(len(values), held)
        work(*blocks, first, codes, flags)
        read(codes, values)

    return through_codes


def _rounder(source: Format, format: Format, context: Context, lane: str | None, target: Format | None) -> Rounder:
    word = _word_for(source, format)
    if lane == "scalar" or (word is None and lane is None):
        return lambda given, first, codes, flags: scalar.round_codes(
            given, source, format, context, first, codes, flags
        )
    if word is None:
        raise UnsupportedError(f"lane {lane} cannot round {source.name} into {format.name}; lane scalar can")
    flushes = context.flush_inputs and source != word
    # What is subnormal in the source is flushed as a word; a word may be subnormal where the source is not.
    recipe = recipe_for(format, context.replace(flush_inputs=False) if flushes else context, word)
    fast = is_compiled(lane) and can_read(source, word)
    if fast and not flushes:
        return compiled.rounder(recipe, source, target)
    of_words: Rounder = compiled.rounder(recipe, word, target) if fast else numpy_integers.rounder(recipe)
    if source == word:
        return of_words
    read = reader(source, word, lane)

    def read_and_round(given: Array, first: int, to: Array, flags: Array | None) -> None:
        words = np.empty(len(given), container(word))
        read(given, words)
        if flushes:
            words[_is_subnormal(given, source)] &= words.dtype.type(word.compose(True, 0))
        of_words(words, first, to, flags)

    return read_and_round


def _is_subnormal(codes: Array, format: Format) -> Array:
    kind = codes.dtype.type
    magnitude = codes & kind((1 << format.magnitude_bits) - 1)
    found: Array = (magnitude != 0) & (magnitude < kind(format.smallest_normal_magnitude))
    return found


@lru_cache(maxsize=256)
def reader(format: Format, target: Format, lane: str | None) -> Reader:
    """Return what reads a block of a format's codes as those of a target, which has all the numbers that there are."""
    if target not in words_that_hold(format):
        exactly = _rounder(format, target, Context(), lane if lane == "scalar" else None, None)
        return lambda codes, values: exactly(codes, 0, values, None)
    how = reading_for(format, target)
    read: Reader
    if lane == "scalar" or not can_read(format, target):
        read = scalar.reader(how)
    elif is_compiled(lane):
        read = compiled.reader(how)
    else:
        read = numpy_integers.reader(how)
    return read


def threads_for(count: int, threads: int | None) -> int:
    """Return how many threads work on so many elements; raises UnsupportedError for what is no number of threads."""
    if threads is None:
        return min(os.cpu_count() or 1, 8) if count >= _WORTH_THREADS else 1
    if not hasattr(threads, "__index__") or isinstance(threads, bool) or not 1 <= threads <= _MOST_THREADS:
        raise UnsupportedError(f"threads is a number from 1 to {_MOST_THREADS}, not {quoted(str(threads))}")
    return int(threads)


_PLAIN = 0x101  # NumPy's flags of what lies in C order, aligned


def as_lines(arrays: list[Array]) -> list[Array] | None:
    """Return arrays of one shape, as lanes take them, as arrays of one axis; None if they do not lie in memory so."""
    shape = arrays[-1].shape
    for each in arrays:
        if each.shape != shape or each.flags.num & _PLAIN != _PLAIN or not each.dtype.isnative:
            return None
    return arrays if len(shape) == 1 else [each.reshape(-1) for each in arrays]


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
    parts = threads_for(count, threads)
    lines = as_lines([*reads, *writes])
    if lines is not None and (parts == 1 or count <= BLOCK):
        with DefaultMode():
            for first in range(0, count, BLOCK):
                work(first, *[line[first : first + BLOCK] for line in lines])
        return
    stopped: list[bool] = []
    flags: Any = ["external_loop", "buffered", "ranged", "delay_bufalloc"]
    of_one: Any = ["contig", "aligned", "nbo"]

    def share(low: int, high: int) -> None:
        with (
            DefaultMode(),
            np.nditer(
                [*reads, *writes],
                flags,
                [*(["readonly", *of_one] for _ in reads), *(["writeonly", "no_broadcast", *of_one] for _ in writes)],
                [each.dtype.newbyteorder("=") for each in (*reads, *writes)],
                order="C",
                casting="equiv",
                itershape=shape,
                buffersize=BLOCK,
            ) as walk,
        ):
            # This makes the buffers, too. A reset before it would make them at the first element, which may be another
            # thread's, and write them back there.
            walk.iterrange = (low, high)  # type: ignore[misc]  # its stub says that it is read-only
            for blocks in walk:
                if stopped:
                    return
                work(low, *blocks)
                low += len(blocks[0])

    if parts == 1 or count <= BLOCK:
        share(0, count)
        return
    size = -(-count // (parts * BLOCK)) * BLOCK
    with ThreadPoolExecutor(parts) as pool:
        try:
            for done in [pool.submit(share, low, min(low + size, count)) for low in range(0, count, size)]:
                done.result()
        except BaseException:  # an interruption, or a refusal: the others stop at their next block
            stopped.append(True)
            raise
