"""Chooses the lane that does a computation, and splits arrays into chunks for this lane.

A *lane* is one of the three implementations of an operation: compiled, NumPy and scalar. A *word* is the bit pattern of
a binary32 or binary64 number, read as an unsigned integer. A parameter named `word` is the format of the words:
binary32 or binary64.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any

import numpy as np

from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.parameters import (  # fmt: skip
    can_read,
    can_round,
    container,
    rounding_rule_for,
    word_of,
    words_containing,
)
from floatlab.arrays.types import Array, Reader, Rounder, Work
from floatlab.errors import MissingPartError, UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.fpmode import DefaultMode
from floatlab.numbers import Context, Datum, convert, round_exact

LANES = ("compiled", "numpy", "scalar")
BLOCK = 1 << 18  # the number of elements in a chunk, for one call of a lane; the compiled lane splits chunks further
_WORTH_THREADS = 1 << 21  # below this many elements, a second thread costs about as much as it saves
_MOST_THREADS = 64
_local = threading.local()  # `alone` is true inside `one_thread`


def parse_lane(name: str | None) -> str | None:
    """Check a lane's name and return it. None means the fastest lane that can do the computation.

    Raises UnsupportedError for an unknown lane, and MissingPartError if the compiled lane is requested but not built.
    """
    if name is None:
        return None
    if name not in LANES:
        raise UnsupportedError(
            f"lane must be one of {' '.join(LANES)}, not {quoted(str(name))}{guess(str(name), [*LANES])}"
        )
    if name == "compiled" and not compiled.is_built():
        raise MissingPartError("lane compiled was not built (no C compiler at installation): use lane numpy")
    return name


@lru_cache(maxsize=256)
def rounder(
    source: Format, format: Format, context: Context, lane: str | None, target: Format | None = None
) -> Rounder:
    """Return a function that rounds chunks of codes of the format `source` into `format`.

    The function writes the results as codes of `target` or, if `target` is None, of `format`. `target` must contain all
    results. Raises UnsupportedError if the requested lane cannot round these formats.
    """
    if (
        target is not None
        and not (source.is_table or format.is_table)
        and format != target == _word_for(source, format)
        and is_compiled(lane)
        and target in words_containing(format)
        and can_read(format, target)
    ):
        return _rounder(source, format, context, lane, target)
    return convert_results(_rounder(source, format, context, lane, None), format, target, lane)


def _word_for(source: Format, format: Format) -> Format | None:
    return next((word for word in words_containing(source) if can_round(word, format)), None)


def is_compiled(lane: str | None) -> bool:
    """Return whether `lane`, a result of `parse_lane`, selects the compiled lane; None selects it if it was built."""
    return lane == "compiled" or (lane is None and compiled.is_built())


def convert_results(work: Work, format: Format, target: Format | None, lane: str | None) -> Work:
    """Return a function that calls `work`, and then converts the resulting codes of `format` into codes of `target`.

    If `target` is None or equal to `format`, return `work` itself.
    """
    if target is None or target == format:
        return work
    read, held = reader(format, target, lane), container(format)

    def through_codes(*arguments: Any) -> None:
        *blocks, first, values, flags = arguments
        codes = np.empty(len(values), held)
        work(*blocks, first, codes, flags)
        read(codes, values)

    return through_codes


def _rounder(source: Format, format: Format, context: Context, lane: str | None, target: Format | None) -> Rounder:
    word = _word_for(source, format)
    if format.is_table and word is not None and lane != "scalar":
        if (found := _table_rounder(source, format, context, lane, word)) is not None:
            return found
        word = None  # the result depends on a random draw or on flushing, or it may be an error: no table can give it
    if source.is_table and context.flush_inputs:
        word = None
    if lane == "scalar" or (word is None and lane is None):
        return partial(_round_scalar, source, format, context)
    if word is None:
        raise UnsupportedError(f"lane {lane} cannot round {source.name} into {format.name}; lane scalar can")
    flushes = context.flush_inputs and source != word
    # Numbers that are subnormal in the source must be flushed. Their words are usually normal, so the rounding rule
    # would not flush them; `read_and_round` does it instead.
    rule = rounding_rule_for(format, context.replace(flush_inputs=False) if flushes else context, word)
    fast = is_compiled(lane) and can_read(source, word)
    if fast and not flushes:
        return compiled.rounder(rule, source, target)
    of_words: Rounder = compiled.rounder(rule, word, target) if fast else _numpy_lane().rounder(rule)
    if source == word:
        return of_words
    read = reader(source, word, lane)

    def read_and_round(codes: Array, first: int, to: Array, flags: Array | None) -> None:
        words = np.empty(len(codes), container(word))
        read(codes, words)
        if flushes:
            magnitude = codes & codes.dtype.type((1 << source.magnitude_bits) - 1)
            subnormal = (magnitude != 0) & (magnitude < codes.dtype.type(source.smallest_normal_magnitude))
            words[subnormal] &= words.dtype.type(word.compose(True, 0))
        of_words(words, first, to, flags)

    return read_and_round


def _table_rounder(source: Format, format: Format, context: Context, lane: str | None, word: Format) -> Rounder | None:
    """Return a function that rounds codes of `source` into `format`, which is given by a table of its numbers.

    Return None if only the scalar lane can do this. The function first decodes the codes into words of `word`, a format
    that contains `source`.
    """
    from floatlab.arrays.lanes import tables

    kernels = compiled.extension() if is_compiled(lane) else None
    of_words = tables.rounder(format, context, word, kernels)
    if of_words is None or source == word:
        return of_words
    return _read_first(reader(source, word, lane), of_words, word)


def _read_first(read: Reader, of_words: Rounder, word: Format) -> Rounder:
    """Return a function that decodes codes with `read`, and then rounds the decoded numbers with `of_words`.

    The decoded numbers are bit patterns of the format `word`.
    """

    def read_and_round(codes: Array, first: int, to: Array, flags: Array | None) -> None:
        words = np.empty(len(codes), container(word))
        read(codes, words)
        of_words(words, first, to, flags)

    return read_and_round


def _round_scalar(
    source: Format, format: Format, context: Context, given: Array, first: int, codes: Array, flags: Array | None
) -> None:
    """Round a chunk by the scalar codec, element by element."""
    for i, code in enumerate(given.tolist()):
        datum = Datum(source, code)
        if datum.is_finite and not (context.flush_inputs and datum.is_subnormal):
            rounded = round_exact(datum.exact, format, context, index=first + i)
            codes[i], raised = rounded.code, rounded.flags
        else:
            converted = convert(datum, format, context)
            codes[i], raised = converted.result.code, converted.flags
        if flags is not None:
            flags[i] = raised.value


def _numpy_lane() -> Any:
    """Return the NumPy lane, which is imported on first use."""
    from floatlab.arrays.lanes import numpy_rounding

    return numpy_rounding


@lru_cache(maxsize=256)
def reader(format: Format, target: Format, lane: str | None) -> Reader:
    """Return a function that converts arrays of codes of `format` into codes of `target`.

    `target` is a format that contains all numbers of `format`.
    """
    if format.is_table and format.width <= 16 and lane != "scalar":
        from floatlab.arrays.lanes import tables

        return tables.reader(format, target, compiled.extension() if is_compiled(lane) else None)
    if target not in words_containing(format):
        exactly = _rounder(format, target, Context(), lane if lane == "scalar" else None, None)
        return lambda codes, values: exactly(codes, 0, values, None)
    if lane == "scalar" or not can_read(format, target):

        def read_scalar(codes: Array, words: Array) -> None:
            words[...] = [word_of(Datum(format, code), target) for code in codes.tolist()]

        return read_scalar
    made: Reader = (compiled if is_compiled(lane) else _numpy_lane()).reader(format, target)
    return made


def float_reader(format: Format, word: Format, lane: str | None) -> Callable[[Array], Array]:
    """Return a function that decodes arrays of codes of `format` into arrays of NumPy floats.

    `word` is the format of these floats, and contains all numbers of `format`.
    """
    read, held = None if format == word else reader(format, word, lane), container(word)
    number = np.dtype(f"f{held.itemsize}")

    def read_floats(codes: Array) -> Array:
        if read is None:
            return codes.view(number)
        words = np.empty(len(codes), held)
        read(codes, words)
        return words.view(number)

    return read_floats


def threads_for(count: int, threads: int | None) -> int:
    """Return the number of threads for `count` elements; raises UnsupportedError for an invalid `threads`."""
    if threads is None:
        return min(os.cpu_count() or 1, 8) if count >= _WORTH_THREADS and not getattr(_local, "alone", False) else 1
    if not hasattr(threads, "__index__") or isinstance(threads, bool) or not 1 <= threads <= _MOST_THREADS:
        raise UnsupportedError(f"threads must be a number from 1 to {_MOST_THREADS}, not {quoted(str(threads))}")
    return int(threads)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let computations of this thread use one thread by default, because other processes use the other cores."""
    before, _local.alone = getattr(_local, "alone", False), True
    try:
        yield
    finally:
        _local.alone = before


_PLAIN = 0x101  # NumPy's flags for aligned arrays in C order


def flat_views(arrays: list[Array]) -> list[Array] | None:
    """Return the arrays, flattened without a copy.

    Return None if the shapes of the arrays differ, or if an array is not contiguous in C order, aligned, and in native
    byte order.
    """
    shape = arrays[-1].shape
    for each in arrays:
        if each.shape != shape or each.flags.num & _PLAIN != _PLAIN or not each.dtype.isnative:
            return None
    return arrays if len(shape) == 1 else [each.reshape(-1) for each in arrays]


def map_blocks(
    work: Work,
    reads: Sequence[Array],
    to: Array,
    flags: Array | None = None,
    threads: int | None = None,
    start: int = 0,
) -> None:
    """Call `work` on contiguous chunks, in C order, of the arrays `reads` and `to`, and of `flags` if given.

    The arrays may have any strides and byte order. `reads` are broadcast to the shape of `to`. Each thread processes
    its own part of the elements. `start` is the index of the first element's random draw. An array of `reads` may share
    memory with `to` only if elements with the same index have the same address; otherwise pass a copy.
    """
    count, writes = to.size, [to] if flags is None else [to, flags]
    if not count:
        return
    parts = threads_for(count, threads)
    stopped: list[bool] = []
    lines = flat_views([*reads, *writes])

    def do(first: int, blocks: Sequence[Array]) -> None:
        work(*blocks[: len(reads)], start + first, blocks[len(reads)], None if flags is None else blocks[-1])

    def share(low: int, high: int) -> None:
        options: Any = ["external_loop", "buffered", "ranged", "delay_bufalloc"]
        of_one: Any = ["contig", "aligned", "nbo"]
        with (
            DefaultMode(),
            np.nditer(
                [*reads, *writes],
                options,
                [*(["readonly", *of_one] for _ in reads), *(["writeonly", "no_broadcast", *of_one] for _ in writes)],
                [each.dtype.newbyteorder("=") for each in (*reads, *writes)],
                order="C",
                casting="equiv",
                itershape=to.shape,
                buffersize=BLOCK,
            ) as walk,
        ):
            # Setting the range also allocates the iterator's buffers. Buffers allocated earlier would hold the first
            # elements of the array, and write them back, although these may belong to another thread.
            walk.iterrange = (low, high)  # type: ignore[misc]  # read-only according to its stub
            for blocks in walk:
                if stopped:
                    return
                do(low, blocks)
                low += len(blocks[0])

    if parts == 1 or count <= BLOCK:
        if lines is None:
            share(0, count)
            return
        with DefaultMode():
            for first in range(0, count, BLOCK):
                do(first, [line[first : first + BLOCK] for line in lines])
        return
    size = -(-count // (parts * BLOCK)) * BLOCK
    with ThreadPoolExecutor(parts) as pool:
        try:
            for done in [pool.submit(share, low, min(low + size, count)) for low in range(0, count, size)]:
                done.result()
        except BaseException:  # an interruption or an error: the other threads stop before their next chunk
            stopped.append(True)
            raise
