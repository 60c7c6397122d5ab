"""`compare`: two arrays, from files or written out, and how they differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from floatlab.arrays.compare.differences import ComparedElement, Differences
from floatlab.arrays.compare.measure import WORST
from floatlab.arrays.compare.measure import compare as measure
from floatlab.arrays.compare.tolerances import NUMPY
from floatlab.errors import UnsupportedError
from floatlab.files import open_arrays
from floatlab.files.readers import kind_of
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Datum
from floatlab.page.model import Page
from floatlab.verbs.edits import code_of
from floatlab.verbs.question import Answer, Question, Started, written


@in_default_mode
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

    >>> from floatlab.formats import parse_format
    >>> compare_words(("1,2", "1,3"), parse_format("fp16")).ulps.largest.value
    512
    """
    if len(words) != 2:
        raise UnsupportedError(f"compare takes two arrays, actual and expected, and {len(words)} were given")
    if shape is not None and dtype is None:
        raise UnsupportedError("--shape is for raw numbers, and --dtype NAME says what they are")
    if dtype is not None and all(kind_of(word, dtype) != "raw" for word in words):
        raise UnsupportedError("--dtype is for files of raw numbers, and both arrays say themselves what they hold")
    with open_arrays(words, format, "binary64", dtype=dtype, shape=shape) as (actual, expected):
        return measure(
            actual,
            expected,
            rtol,
            atol,
            equal_nan=equal_nan,
            format=format,
            torch_tolerances=torch_tolerances,
            worst=worst,
            progress=None if started is None else started(actual.size),
        )


@in_default_mode
def element_codes(found: Differences, element: ComparedElement) -> tuple[str, str]:
    """Return both numbers of an element as codes with their formats, which read back whatever they are.

    >>> from floatlab.formats import parse_format
    >>> found = compare_words(("1,2", "1,nan"), parse_format("fp16"))
    >>> element_codes(found, found.worst[0])
    ('bits:0x4000@fp16', 'bits:0x7e00@fp16')
    """
    actual = Datum(found.actual.format, element.actual_code)
    return code_of(actual), code_of(Datum(found.expected.format, element.expected_code))


def answer_of(
    found: Differences,
    summary: str = "",
    causes: Page | None = None,
    causes_to_wire: Callable[[], dict[str, Any]] = dict,
) -> Answer:
    """Return the answer that shows differences.

    Where the arrays' inputs were given, `summary` says in a sentence what explains them, `causes` is the second part
    of the page, and `causes_to_wire` gives what the JSON says of it.
    """

    def parts() -> list[Page]:
        from floatlab.verbs.compare.page import differences_page

        return [differences_page(found, summary), *([] if causes is None else [causes])]

    def page() -> Page:
        shown = parts()
        return Page(tuple(block for part in shown for block in part.blocks), shown[0].title)

    def records() -> list[dict[str, Any]]:
        [wire] = written(found)()
        return [wire | causes_to_wire()]

    failing = str(found.allclose.failing if found.shape is not None else "shapes")
    status = 0 if found.within else 1
    return Answer(page, records, lambda: [failing], lambda: [failing], found=found, parts=parts, status=status)


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question: how two arrays differ, and why where their inputs are given."""
    words, format, options = question.values, next(iter(question.formats), None), dict(question.options)
    inputs, dtype = options.pop("inputs", None), options.get("dtype")
    options.pop("op", None)
    both = "rtol" in options and "atol" in options
    found = compare_words(
        words,
        format,
        torch_tolerances=(options["rtol"], options["atol"]) if both else None,
        started=None if started is None else lambda size: started(size, "elements"),
        **options,
    )
    if inputs is None:
        return [answer_of(found)]
    from floatlab.verbs.judge.answer import explain_differences

    return [answer_of(found, *explain_differences(words, inputs, format, dtype, started))]
