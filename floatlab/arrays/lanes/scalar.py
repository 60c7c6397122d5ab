"""The scalar lane: every element through the codec and the scalar operations themselves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from floatlab.arrays.lanes.reading import Reading, word_of
from floatlab.arrays.types import Array, Reader
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction, convert
from floatlab.numbers.projection import round_exact
from floatlab.numbers.rounding import STREAM


def round_codes(
    given: Array, source: Format, format: Format, context: Context, first: int, codes: Array, flags: Array | None
) -> None:
    """Round a block of codes of one format into codes of another, and tell flags where there is room for them."""
    for i, code in enumerate(given.tolist()):
        datum = Datum(source, code)
        if datum.is_finite and not (context.flush_inputs and datum.is_subnormal):
            rounded = round_exact(datum.exact, format, context, index=first + i)
            codes[i], raised = rounded.code, rounded.flags
        else:
            found = convert(datum, format, context)
            codes[i], raised = found.result.code, found.flags
        if flags is not None:
            flags[i] = raised.value


def reader(reading: Reading) -> Reader:
    """Return what reads a block of codes as words."""

    def read_block(codes: Array, words: Array) -> None:
        words[...] = [word_of(Datum(reading.format, code), reading.word) for code in codes.tolist()]

    return read_block


class OneByOne:
    """An operation, element by element: the scalar lane, and where the others send what they cannot do."""

    def __init__(
        self, operation: Callable[..., Any], sources: tuple[Format, ...], format: Format, context: Context
    ) -> None:  # fmt: skip
        """Take the scalar operation, the formats of its operands and its result, and the context."""
        self.operation, self.sources, self.format, self.context = operation, sources, format, context

    def answer(self, codes: tuple[int, ...], index: int) -> tuple[int, int]:
        """Return the code and the flags of the operation on codes; `index` numbers the draw."""
        context = self.context
        if context.rounding is Direction.SR:
            # The draw of element i is the first one of the stream that starts i draws further on.
            context = context.replace(seed=(context.seed + index * STREAM) % (1 << 64))
        data = (Datum(format, code) for format, code in zip(self.sources, codes, strict=True))
        found = self.operation(*data, format=self.format, context=context)
        return found.result.code, found.flags.value

    def put(self, where: Array, blocks: list[Array], first: int, codes: Array, flags: Array | None) -> None:
        """Put the results of some elements of a block."""
        rows = zip(*(block[where].tolist() for block in blocks), strict=True)
        for i, row in zip(where.tolist(), rows, strict=True):
            codes[i], raised = self.answer(row, first + i)
            if flags is not None:
                flags[i] = raised

    def put_alike(
        self, where: Array, kinds: list[Array], blocks: list[Array], codes: Array, flags: Array | None
    ) -> None:
        """Put results that are the same for all elements with the same `kinds` of operands, asking once for each."""
        left = np.arange(len(where))
        while len(left):
            i = where[left[0]]
            code, raised = self.answer(tuple(int(block[i]) for block in blocks), 0)
            same = np.ones(len(left), bool)
            for kind in kinds:
                same &= kind[left] == kind[left[0]]
            codes[where[left[same]]] = code
            if flags is not None:
                flags[where[left[same]]] = raised
            left = left[~same]

    def put_nans(
        self, where: Array, numbers: list[Array], blocks: list[Array], codes: Array, flags: Array | None
    ) -> None:
        """Put the results that are NaNs, which depend on the NaNs among the operands, and on little else."""
        kinds = [_kinds(number[where], block[where]) for number, block in zip(numbers, blocks, strict=True)]
        if all(np.isfinite(number[where]).all() for number in numbers):
            kinds = []  # an invalid operation gives the same NaN on all numbers
        self.put_alike(where, kinds, blocks, codes, flags)


def _kinds(number: Array, codes: Array) -> Array:
    """Return what a NaN's operands may matter by: which NaN, ±∞, ±0, or merely the sign."""
    kind = np.where((number == 0) | np.isinf(number), number, np.copysign(1.0, number)).astype(np.float64)
    return np.where(np.isnan(number), codes.astype(np.uint64), kind.view(np.uint64))
