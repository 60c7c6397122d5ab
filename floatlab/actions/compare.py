"""`compare`: two arrays, from files or written out, and how they differ."""

from __future__ import annotations

from contextlib import ExitStack

from floatlab.actions.answer import Answer
from floatlab.arrays.errors import WORST, Differences
from floatlab.arrays.errors import compare as measure
from floatlab.arrays.tolerances import NUMPY
from floatlab.errors import UnsupportedError
from floatlab.files import ArraySource, open_array, says_format
from floatlab.files.readers import kind_of
from floatlab.formats import Format, parse_format

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from floatlab.views.page import Page


def compare_words(
    words: tuple[str, ...],
    format: Format | None = None,
    *,
    rtol: float = NUMPY[0],
    atol: float = NUMPY[1],
    equal_nan: bool = False,
    torch_tolerances: tuple[float, float] | None = None,
    worst: int = WORST,
    dtype: str | None = None,
    shape: str | None = None,
    started: Callable[[int], Callable[[int], None]] | None = None,
) -> Differences:
    """Return how the arrays that two words name differ; `started` is told how many elements there are to compare.

    `format` is what text is read into, and the format whose ulps are counted; without it, text is read into the other
    array's, or into binary64. `dtype` and `shape` are those of files of raw numbers. Raises FloatlabError.

    >>> compare_words(("1,2", "1,3"), parse_format("fp16")).ulps.largest.value
    512
    """
    if len(words) != 2:
        raise UnsupportedError(f"compare takes two arrays, actual and expected, and {len(words)} were given")
    if shape is not None and dtype is None:
        raise UnsupportedError("--shape is for raw numbers, and --dtype NAME says what they are")
    if dtype is not None and all(kind_of(word, dtype) != "raw" for word in words):
        raise UnsupportedError("--dtype is for files of raw numbers, and both arrays say themselves what they hold")
    with ExitStack() as opened:
        sources: dict[int, ArraySource] = {}
        # What has a format of its own comes first: text is read into the same.
        for i in sorted(range(2), key=lambda i: not says_format(words[i], dtype)):
            beside = next((each.format for each in sources.values()), None)
            chosen = format or beside or parse_format("binary64")
            sources[i] = opened.enter_context(open_array(words[i], chosen, dtype=dtype, shape=shape))
        progress = started(sources[0].size) if started is not None else None
        return measure(
            sources[0],
            sources[1],
            rtol,
            atol,
            equal_nan=equal_nan,
            format=format,
            torch_tolerances=torch_tolerances,
            worst=worst,
            progress=progress,
        )


def answer_of(found: Differences) -> Answer:
    """Return the answer that shows what was found."""

    def page() -> Page:
        from floatlab.views.differences import differences_page

        return differences_page(found)

    def records() -> list[dict[str, Any]]:
        from floatlab.render.differences import differences_to_wire

        return [differences_to_wire(found)]

    failing = str(found.allclose.failing if found.shape is not None else "shapes")
    return Answer(page, records, lambda: [failing], lambda: [failing])
