"""Arithmetic in the compiled lane: a block in one pass, rounded to odd in binary32 where that is enough.

What the kernel marks, since a word of that width may not hold enough of it (numbers far from 1 in products, overflow of
the word, infinities, NaNs, divisions by zero), goes through the wider word, and what that marks through the pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.lanes import compiled, dispatch
from floatlab.arrays.lanes.pairs import is_enough
from floatlab.arrays.lanes.reading import DOUBLE, SINGLE, WORDS, reading_for
from floatlab.arrays.lanes.rounding_parameters import recipe_for
from floatlab.arrays.types import Array, Work
from floatlab.formats import Format
from floatlab.numbers import Context, Direction


@lru_cache(maxsize=256)
def runs(
    operation: str, sources: tuple[Format, ...], format: Format, context: Context
) -> tuple[compiled.KernelPass, ...]:
    """Return the passes that an operation goes through, the one of the narrower word first; none: it goes by pairs."""
    if not compiled.is_built() or context.flush_inputs:
        return ()
    words: Sequence[Format] = WORDS
    name, drawn = operation, context.rounding is Direction.SR
    if format == DOUBLE:
        # The processor's own; it tells no flags.
        words, name = [DOUBLE] if operation == "fma" and context == Context() else [], "fma_to_nearest"
    elif drawn and not all(holds(SINGLE, each) for each in sources):
        words = []  # what goes a second way has lost its place, and so its draw
    found = []
    for word in words:
        if not all(holds(word, each) and dispatch.can_read(each, word) for each in sources):
            continue
        if format != DOUBLE and not is_enough(word, format, drawn):
            continue
        recipe = recipe_for(format, context, word)
        if recipe.refuses:
            return ()
        readings = tuple(None if each == word else reading_for(each, word) for each in sources)
        found.append(compiled.KernelPass(recipe, readings, None, name))
    return tuple(found)


class Passes:
    """An operation on blocks, one pass each; `rest` makes what does its leftovers."""

    def __init__(self, made: tuple[compiled.KernelPass, ...], rest: Callable[[], Work]) -> None:
        """Take the passes, in order."""
        (self._first, *self._wider), self._rest = made, rest

    def __call__(self, *given: Any) -> None:
        """Compute a block: codes of each operand, the first one's place, codes of the result, flags or None."""
        *blocks, first, codes, flags = given
        raised, marks = self._first(tuple(blocks), first, codes, flags)
        if raised & compiled.SPECIAL:
            self._again(self._wider, blocks, np.flatnonzero(marks), codes, flags)

    def _again(
        self, wider: Sequence[compiled.KernelPass], blocks: list[Array], where: Array, codes: Array, flags: Array | None
    ) -> None:
        """Do the elements that were marked, which are gathered and put back."""
        blocks = [block[where] for block in blocks]
        made = np.empty(len(where), codes.dtype)
        told = None if flags is None else np.empty(len(where), np.uint8)
        if not wider:
            self._rest()(*blocks, 0, made, told)
        else:
            raised, marks = wider[0](tuple(blocks), 0, made, told)
            if raised & compiled.SPECIAL:
                self._again(wider[1:], blocks, np.flatnonzero(marks), made, told)
        codes[where] = made
        if flags is not None and told is not None:
            flags[where] = told
