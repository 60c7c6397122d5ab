"""The causes of the difference of two products with known inputs, and the computations that give each product."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from math import prod

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source, source_of
from floatlab.errors import UnsupportedError
from floatlab.files import open_arrays
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.page.model import Block, Page
from floatlab.reduce.explain.operations import diagnose_operation
from floatlab.reduce.results.inputs import shape_of_product
from floatlab.reduce.results.judgements import Judgement, judge_difference
from floatlab.reduce.results.verdicts import Diagnosis
from floatlab.verbs.attribute.answer import attribute_pair
from floatlab.verbs.attribute.json import PART
from floatlab.verbs.attribute.page import attribution_blocks, unlike_blocks
from floatlab.verbs.compare.json import JUDGEMENT
from floatlab.verbs.judge.page import diagnosis_blocks, quotient_blocks
from floatlab.verbs.question import Started
from floatlab.wire.schema import write_document

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.wire.codecs import Wire

_WHOSE = ("actual", "expected")
_PLAIN = ("matmul", "dot")


def _sources_of(words: tuple[str, ...], format: Format | None, dtype: str | None) -> list[Source]:
    with open_arrays(words, format or parse_format("binary32"), dtype=dtype) as opened:
        return [source_of(each.whole(), each.name) for each in opened]


def product_of(x: Source, y: Source, results: Sequence[Source]) -> list[Source]:
    """Return the factors and both results in the shape of the product.

    Raises FloatlabError if the shapes of the factors do not give a product of this size.
    """
    shapes, shape = f"{x.codes.shape} and {y.codes.shape}", shape_of_product(x.codes, y.codes)
    if shape is None:
        raise UnsupportedError(f"--inputs: shapes {shapes} do not make a product")
    if any(each.codes.size != prod(shape) for each in results):
        made = shape or "one number"
        raise UnsupportedError(f"--inputs: a product of {shapes} is {made}, but the arrays are not")
    return [x, y, *(Source(each.codes.reshape(shape), each.format) for each in results)]


@in_default_mode
def judge_product(product: list[Source], format: Format | None = None) -> Judgement:
    """Return the judgement of the difference of two products; `product` has x, y, and both results.

    A vector x is used as a row, a vector y as a column. Raises FloatlabError.

    >>> x, y, result = _sources_of(("1,2", "3,2", "7"), None, None)
    >>> judge_product(product_of(x, y, (result, result))).causes[0].value
    'order'
    """
    x, y, first, second = (decode(each.codes, each.format) for each in product)
    x, y = (x[None] if x.ndim == 1 else x), (y[:, None] if y.ndim == 1 else y)
    shape = (x.shape[0], y.shape[1])
    return judge_difference(x, y, first.reshape(shape), second.reshape(shape), format or product[3].format)


def explain_differences(
    words: tuple[str, ...],
    inputs: tuple[str, str],
    format: Format | None,
    dtype: str | None,
    started: Started | None,
    operation: str = "matmul",
    bias: str | None = None,
) -> tuple[Page, Callable[[], Wire], Diagnosis]:
    """Return the causes of the difference of two products: a page, a function that returns JSON, and the diagnosis.

    For operations other than products of vectors and matrices, there is only the diagnosis.
    """
    x, y, *others = _sources_of((*inputs, *words, *filter(None, (bias,))), format, dtype)
    is_plain = bias is None and operation in _PLAIN and {x.codes.ndim, y.codes.ndim} <= {1, 2}
    if is_plain:
        x, y, *others = product_of(x, y, others)
    # Ctrl-C ends the diagnosis; its results so far are kept, and the details are omitted.
    found = diagnose_operation(
        operation, x, y, *others[:2], bias=others[2] if bias else None, keep_interrupted=True
    )  # fmt: skip
    blocks = diagnosis_blocks(found, operation)
    wire: dict[str, Callable[[], object]] = {}
    if is_plain and not found.stopped:
        with suppress(KeyboardInterrupt):
            more, wire = _details([x, y, *others], format, started)
            blocks += more
    return Page(tuple(blocks)), lambda: {name: write() for name, write in wire.items()}, found


def _details(
    product: list[Source], format: Format | None, started: Started | None
) -> tuple[list[Block], dict[str, Callable[[], object]]]:
    """Return q (if all numbers are finite) and the candidates that give each result, as blocks and for JSON."""
    blocks: list[Block] = []
    wire: dict[str, Callable[[], object]] = {}
    if all(np.isfinite(decode(each.codes, each.format)).all() for each in product):
        judged = judge_product(product, format)
        blocks += quotient_blocks(judged)
        wire["judgement"] = partial(write_document, JUDGEMENT, judged)
    explained = attribute_pair(product, started)
    if explained is not None:
        blocks += attribution_blocks(explained, _WHOSE)
        wire["attribution"] = partial(write_document, PART, explained.replace(observed=_WHOSE))
    first, second = (result.format.name for result in product[2:])
    return blocks + (unlike_blocks((first, second)) if first != second else []), wire
