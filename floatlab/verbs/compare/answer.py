"""`compare`: two arrays, from files or written out, and how they differ."""

from __future__ import annotations

from math import prod

from floatlab.arrays.compare.measure import WORST, Differences
from floatlab.arrays.compare.measure import compare as measure
from floatlab.arrays.compare.tolerances import NUMPY
from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source, source_of
from floatlab.errors import UnsupportedError
from floatlab.files import open_arrays
from floatlab.files.readers import kind_of
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Datum
from floatlab.verbs.answer import Answer, written
from floatlab.verbs.edits import code_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from floatlab.arrays.compare.measure import Element
    from floatlab.page.model import Page
    from floatlab.reduce.explain.attribution import Attribution
    from floatlab.reduce.explain.judgements import Judgement
    from floatlab.verbs.answer import Started
    from floatlab.verbs.question import Question
    from floatlab.wire.schema import Wire


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


def product_of(words: tuple[str, ...], inputs: tuple[str, str], format: Format | None, dtype: str | None) -> list[Any]:
    """Return the factors that `inputs` name, and the arrays that `words` name, as they stand there.

    Raises FloatlabError, also where the factors do not make a product of this size.
    """
    with open_arrays((*inputs, *words), format or parse_format("binary32"), dtype=dtype) as opened:
        x, y, *results = (source_of(each.whole(), each.name) for each in opened)
    shapes = f"{x.codes.shape} and {y.codes.shape}"
    if not 1 <= x.codes.ndim <= 2 or not 1 <= y.codes.ndim <= 2 or x.codes.shape[-1] != y.codes.shape[0]:
        raise UnsupportedError(f"--inputs: shapes {shapes} do not make a product")
    shape = (*x.codes.shape[:-1], *y.codes.shape[1:])
    if any(each.codes.size != prod(shape) for each in results):
        made = shape or "one number"
        raise UnsupportedError(f"--inputs: a product of {shapes} is {made}, and the arrays are not")
    return [x, y, *(Source(each.codes.reshape(shape), each.format) for each in results)]


@in_default_mode
def judge_product(product: list[Source], format: Format | None = None) -> Judgement:
    """Return what makes two products differ as much as these do: of x, y, and both results.

    Vectors are one row, or one column. Raises FloatlabError.

    >>> words = product_of(("7", "7"), ("1,2", "3,2"), parse_format("fp32"), None)
    >>> judge_product(words).causes[0].value
    'order'
    """
    from floatlab.reduce.explain.judgements import judge

    x, y, first, second = (decode(each.codes, each.format) for each in product)
    x, y = (x[None] if x.ndim == 1 else x), (y[:, None] if y.ndim == 1 else y)
    shape = (x.shape[0], y.shape[1])
    return judge(x, y, first.reshape(shape), second.reshape(shape), format or product[3].format)


@in_default_mode
def element_codes(found: Differences, element: Element) -> tuple[str, str]:
    """Return both numbers of an element as codes with their formats, which read back whatever they are.

    >>> found = compare_words(("1,2", "1,nan"), parse_format("fp16"))
    >>> element_codes(found, found.worst[0])
    ('bits:0x4000@fp16', 'bits:0x7e00@fp16')
    """
    actual = Datum(found.actual.format, element.actual_code)
    return code_of(actual), code_of(Datum(found.expected.format, element.expected_code))


def answer_of(found: Differences, judged: Judgement | None = None, explained: Attribution | None = None) -> Answer:
    """Return the answer that shows what was found, and the causes, its second part, where inputs were given."""
    whose = ("actual", "expected")

    def parts() -> list[Page]:
        from floatlab.verbs.compare.page import differences_page

        if judged is None:
            return [differences_page(found)]
        return [differences_page(found, in_short(judged)), causes(judged)]

    def in_short(judged: Judgement) -> str:
        from floatlab.verbs.compare.judgement import judgement_words

        ways = "" if explained is None else f"; bit for bit {', or '.join(each.value for each in explained.verdicts)}"
        return judgement_words(judged) + ways

    def causes(judged: Judgement) -> Page:
        from floatlab.page.model import Page
        from floatlab.verbs.attribute.page import attribution_blocks, unlike_blocks
        from floatlab.verbs.compare.judgement import judgement_blocks

        formats = found.actual.format.name, found.expected.format.name
        blocks = judgement_blocks(judged)
        blocks += [] if explained is None else attribution_blocks(explained, whose)
        blocks += unlike_blocks(formats) if formats[0] != formats[1] else []
        return Page(tuple(blocks))

    def page() -> Page:
        from floatlab.page.model import Page

        shown = parts()
        return Page(tuple(block for part in shown for block in part.blocks), shown[0].title)

    def records() -> list[Wire]:
        from floatlab.verbs.compare.json import JUDGEMENT
        from floatlab.wire.schema import write_document

        [wire] = written(found)()
        if judged is not None:
            wire["judgement"] = write_document(JUDGEMENT, judged)
        if explained is not None:
            from floatlab.verbs.attribute.json import PART

            wire["attribution"] = write_document(PART, explained.replace(observed=whose))
        return [wire]

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
    from floatlab.verbs.attribute.answer import attribute_pair

    product = product_of(words, inputs, format, dtype)
    return [answer_of(found, judge_product(product, format), attribute_pair(product, started))]
