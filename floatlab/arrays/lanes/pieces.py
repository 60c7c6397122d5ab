"""Blocks cut into pieces, for work that makes arrays on its way: those are to stay in the cache."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

PIECE = 1 << 16  # elements


def in_pieces(work: Callable[..., None], size: int = PIECE) -> Callable[..., None]:
    """Return work on blocks of any length: blocks read, the first one's place, a block to write, flags or None.

    >>> lengths = []
    >>> in_pieces(lambda read, first, to, flags: lengths.append((first, len(to))))(range(10**5), 7, range(10**5), None)
    >>> lengths
    [(7, 65536), (65543, 34464)]
    """

    def whole(*given: Any) -> None:
        *blocks, first, to, flags = given
        if len(to) <= size:
            work(*given)
            return
        for at in range(0, len(to), size):
            piece = slice(at, at + size)
            told = None if flags is None else flags[piece]
            work(*(block[piece] for block in blocks), first + at, to[piece], told)

    return whole
