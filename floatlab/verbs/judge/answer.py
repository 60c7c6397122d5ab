"""Why two products differ, given their inputs: the causes that explain it, and the computations that give each."""

from __future__ import annotations

from collections.abc import Callable
from math import prod

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source, source_of
from floatlab.errors import UnsupportedError
from floatlab.files import open_arrays
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.page.model import Page
from floatlab.reduce.explain.diagnosis import Diagnosis, diagnose
from floatlab.reduce.results.inputs import shape_of_product
from floatlab.reduce.results.judgements import Judgement, judge_difference
from floatlab.verbs.attribute.answer import attribute_pair
from floatlab.verbs.attribute.json import PART
from floatlab.verbs.attribute.page import attribution_blocks, unlike_blocks
from floatlab.verbs.compare.json import JUDGEMENT
from floatlab.verbs.judge.page import judgement_blocks, judgement_words
from floatlab.verbs.question import Started
from floatlab.wire.schema import write_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.wire.schema import Wire

_WHOSE = ("actual", "expected")


def product_of(
    words: tuple[str, ...], inputs: tuple[str, str], format: Format | None, dtype: str | None
) -> list[Source]:
    """Return the factors that `inputs` name, and the arrays that `words` name, as they stand there.

    Raises FloatlabError, also where the factors do not make a product of this size.
    """
    with open_arrays((*inputs, *words), format or parse_format("binary32"), dtype=dtype) as opened:
        x, y, *results = (source_of(each.whole(), each.name) for each in opened)
    shapes, shape = f"{x.codes.shape} and {y.codes.shape}", shape_of_product(x.codes, y.codes)
    if shape is None:
        raise UnsupportedError(f"--inputs: shapes {shapes} do not make a product")
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
    x, y, first, second = (decode(each.codes, each.format) for each in product)
    x, y = (x[None] if x.ndim == 1 else x), (y[:, None] if y.ndim == 1 else y)
    shape = (x.shape[0], y.shape[1])
    return judge_difference(x, y, first.reshape(shape), second.reshape(shape), format or product[3].format)


def explain_differences(
    words: tuple[str, ...], inputs: tuple[str, str], format: Format | None, dtype: str | None, started: Started | None
) -> tuple[str, Page, Callable[[], Wire], Diagnosis]:
    """Return why two products differ: in a sentence, as a page, as JSON when it is asked for, and the diagnosis."""
    product = product_of(words, inputs, format, dtype)
    judged, explained = judge_product(product, format), attribute_pair(product, started)
    diagnosis = diagnose(*product)
    first, second = (result.format.name for result in product[2:])
    summary, blocks = judgement_words(judged), judgement_blocks(judged)
    if explained is not None:
        summary += f"; bit for bit {', or '.join(each.value for each in explained.verdicts)}"
        blocks += attribution_blocks(explained, _WHOSE)
    if first != second:
        blocks += unlike_blocks((first, second))

    def to_wire() -> Wire:
        wire: Wire = {"judgement": write_document(JUDGEMENT, judged)}
        if explained is not None:
            wire["attribution"] = write_document(PART, explained.replace(observed=_WHOSE))
        return wire

    return summary, Page(tuple(blocks)), to_wire, diagnosis
