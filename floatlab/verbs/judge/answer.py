"""Why two results of one product with known inputs differ, and which computations give each result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import prod

import numpy as np

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import Source, native_dtype, source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.files import open_arrays
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.page.model import Block, Gap, Note, Page
from floatlab.reduce.explain.attribution import Attribution
from floatlab.reduce.explain.diagnosis import diagnose
from floatlab.reduce.explain.grid import NUMPY
from floatlab.reduce.explain.installed import numpy_product
from floatlab.reduce.explain.operations import diagnose_operation
from floatlab.reduce.explain.problem import ProductProblem, matrices_of
from floatlab.reduce.results.diagnosis_record import Diagnosis
from floatlab.reduce.results.inputs import shape_of_product
from floatlab.reduce.results.judgements import Judgement, ProductJudge
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
_STOPPED = "Stopped before anything was found: let the search finish to get an answer."


def _sources_of(words: tuple[str, ...], format: Format | None, dtype: str | None) -> list[Source]:
    with open_arrays(words, format or parse_format("binary32"), dtype=dtype) as opened:
        return [source_of(each.whole(), each.name) for each in opened]


def product_of(x: Source, y: Source, results: Sequence[Source]) -> list[Source]:
    """Return both factors, and the results reshaped to the shape of the product.

    Raises FloatlabError if the factors cannot be multiplied, or if a result does not have the size of the product.
    """
    shapes, shape = f"{x.codes.shape} and {y.codes.shape}", shape_of_product(x.codes, y.codes)
    if shape is None:
        raise UnsupportedError(f"--inputs: shapes {shapes} do not make a product{_shape_hint(x, y)}")
    for each, name in zip(results, _WHOSE, strict=True):
        if each.codes.size != prod(shape):
            made, own = (f"has shape {size}" if size else "is one number" for size in (shape, each.codes.shape))
            raise UnsupportedError(f"--inputs: a product of {shapes} {made}, but {name} {own}")
    return [x, y, *(Source(each.codes.reshape(shape), each.format) for each in results)]


def _shape_hint(x: Source, y: Source) -> str:
    """Return the end of an error message: a hint at what would make the two arrays a product."""
    if not x.codes.ndim or not y.codes.ndim:
        return ": both must be at least vectors"
    if shape_of_product(y.codes, x.codes) is not None:
        return "; in the other order they do"
    n = x.codes.shape[-1]
    if y.codes.shape[-1] == n:
        return "; with --op linear, for which Y has the shape (outputs, inputs), they do"
    return f"; the sums run along the last axis of X, so Y must have the shape ({n}, N)"


@in_default_mode
def judge_product(product: list[Source], format: Format | None = None) -> Judgement:
    """Judge the difference between two results of one product; raises FloatlabError.

    `product` has the factors x and y and both results. A vector x is used as a row, a vector y as a column.

    >>> x, y, result = _sources_of(("1,2", "3,2", "7"), None, None)
    >>> judge_product(product_of(x, y, (result, result))).causes[0].value
    'order'
    """
    return _judge(product, format, None)


def _judge(product: list[Source], format: Format | None, problem: ProductProblem | None) -> Judgement:
    x, y, first, second = (decode(each.codes, each.format) for each in product)
    x, y = (x[None] if x.ndim == 1 else x), (y[:, None] if y.ndim == 1 else y)
    shape = (x.shape[0], y.shape[1])
    exact = None if problem is None else (problem.totals.product, problem.totals.missed, problem.totals.size)
    judge = ProductJudge(x, y, format or product[3].format, exact)
    return judge.judged(first.reshape(shape), second.reshape(shape))


def explain_differences(
    words: tuple[str, ...],
    inputs: tuple[str, str],
    format: Format | None,
    dtype: str | None,
    started: Started | None,
    operation: str = "matmul",
    bias: str | None = None,
) -> tuple[Page, Callable[[], Wire], Diagnosis]:
    """Return why two results differ: a page, a function that returns JSON members, and the diagnosis.

    For operations other than products of vectors and matrices, and for products with a bias, the page has only the
    diagnosis, and the function returns an empty object.
    """
    first, second, x, y, *added = _sources_of((*words, *inputs, *filter(None, (bias,))), format, dtype)
    others = [first, second, *added]
    is_plain = bias is None and operation in _PLAIN and {x.codes.ndim, y.codes.ndim} <= {1, 2}
    if is_plain:
        x, y, *others = product_of(x, y, others)
    tick = None if started is None else partial(started(0, "diagnosis"), 1)
    problem: ProductProblem | None = None
    # After Ctrl-C, the answer has what the diagnosis found so far, and nothing else.
    try:
        if tick is not None:
            tick()  # multiplying exactly may take long
        if is_plain and x.codes.ndim == y.codes.ndim == 2:
            factors, results = matrices_of(x, y, *others)
            problem = ProductProblem(*factors, (results[0].format, results[1].format), tick=tick)
            found = diagnose(x, y, *others, progress=tick, keep_interrupted=True, problem=problem)
        else:
            found = diagnose_operation(
                operation, x, y, *others[:2], bias=others[2] if bias else None, progress=tick, keep_interrupted=True
            )  # fmt: skip
    except KeyboardInterrupt:
        found = Diagnosis("unknown", _STOPPED, (), None, True)
    blocks = diagnosis_blocks(found, operation)
    wire: dict[str, Callable[[], object]] = {}
    if is_plain and not found.stopped:
        try:
            for more, name, write in _details([x, y, *others], format, problem, found, started):
                blocks += more
                if write is not None:
                    wire[name] = write
        except KeyboardInterrupt:
            blocks += [Gap(), Note("Stopped: the details that would follow were left out.")]
    return Page(tuple(blocks)), lambda: {name: write() for name, write in wire.items()}, found


def _details(
    product: list[Source],
    format: Format | None,
    problem: ProductProblem | None,
    diagnosis: Diagnosis,
    started: Started | None,
) -> Iterator[tuple[list[Block], str, Callable[[], object] | None]]:
    """Yield details of a difference.

    Each detail has rows of the page, the name of a JSON member, and a function that returns the value of this member.

    If all numbers are finite, the first detail is q, the difference in units of u·(|X|·|Y|). The last detail names the
    candidate computations that give each result. If the results have different formats, the last detail instead says
    that the formats are the cause.
    """
    if all(np.isfinite(decode(each.codes, each.format)).all() for each in product):
        judged = _judge(product, format, problem)
        yield quotient_blocks(judged), "judgement", partial(write_document, JUDGEMENT, judged)
    # The diagnosis has tried the orders of libraries already. Probe them again only if it found no cause, or does not
    # know how a result was computed.
    is_open = diagnosis.status == "unknown" or any(
        ("computed as", "not known") in each.evidence for each in diagnosis.causes
    )
    explained = attribute_pair(product, started, None if is_open else ())
    if explained is not None:
        blocks = attribution_blocks(explained, _WHOSE, diagnosis, _libraries(product, explained))
        yield blocks, "attribution", partial(write_document, PART, explained.replace(observed=_WHOSE))
    first, second = (result.format.name for result in product[2:])
    if first != second:
        yield unlike_blocks((first, second)), "", None


def _libraries(product: list[Source], explained: Attribution) -> tuple[str, ...]:
    """Return a text for each result: `NUMPY` if NumPy's product has the same bits, otherwise an empty text.

    If candidates already explain both results, NumPy's product is not computed.
    """
    x, y, *results = product
    made = None if all(explained.fitting) else numpy_product(x, y)
    given = [made is not None and _is_alike(made, each) for each in results]
    return NUMPY if given[0] else "", NUMPY if given[1] else ""


def _is_alike(made: Array, result: Source) -> bool:
    kind = native_dtype(result.format)
    return kind == made.dtype and np.array_equal(
        made.reshape(result.codes.shape), result.codes.view(kind), equal_nan=True
    )
