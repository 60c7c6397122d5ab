"""The answers of `matmul --ways` and `--backends`: a product timed as a whole and in parts, or in several libraries."""

from __future__ import annotations

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import native_dtype
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.page.model import Page
from floatlab.reduce.timing.backends import BackendComparison, in_one_format, multiply_on, parse_backends
from floatlab.reduce.timing.measurement import RUNS as RUNS
from floatlab.reduce.timing.measurement import Ranking
from floatlab.reduce.timing.partitions import BLOCK as BLOCK
from floatlab.reduce.timing.partitions import time_partitions
from floatlab.verbs.named_arrays import operands_of
from floatlab.verbs.question import Answer, Started, plain_answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.wire.codecs import Wire

_INTERRUPTED = 130  # exit status after Ctrl-C


@in_default_mode
def partitions_answer(
    words: tuple[str, ...], format: Format, runs: int, block: int, started: Started | None = None
) -> Answer:
    """Return the answer for the product of two matrices, computed as a whole and in parts; raises FloatlabError."""
    dtype = native_dtype(format)
    if dtype is None:
        raise UnsupportedError(
            f"--ways times NumPy's own products, which exist in fp16, fp32 and fp64, not in {format.name}"
        )
    sides = in_one_format(operands_of("matmul", words, format), format)
    x, y = (decode(side.codes, side.format).astype(dtype) for side in sides)
    found = time_partitions(x, y, runs, block, started, keep_interrupted=True)

    def page() -> Page:
        from floatlab.verbs.timing.page import partitions_page

        return partitions_page(found)

    def records() -> list[Wire]:
        from floatlab.verbs.timing.json import PARTITIONS
        from floatlab.wire.schema import write_document

        return [write_document(PARTITIONS, found)]

    fastest = _fastest(found.ranking)
    status = _INTERRUPTED if found.interrupted else 0
    return Answer(page, records, lambda: fastest, lambda: fastest, status=status)


def backends_answer(
    words: tuple[str, ...], backends: str, format: Format | None, runs: int, started: Started | None = None
) -> Answer:
    """Return the answer for the product of two named matrices on several backends; raises FloatlabError.

    Without `format`, the product has the format of the matrices. If the matrices have different formats, the product is
    computed in binary64 if only binary64 contains both formats, otherwise in binary32. Typed numbers are read into the
    format of the other matrix or, if both matrices are typed, into binary32.
    """
    names = parse_backends(backends)  # check the names before the files are read
    x, y = in_one_format(operands_of("matmul", words, format), format)
    return answer_of(multiply_on(x, y, names, runs, started, keep_interrupted=True))


def answer_of(found: BackendComparison) -> Answer:
    """Return the answer for products on several backends.

    `--quiet` prints the fastest backend, or several backends if their times cannot be told apart.
    """

    def page() -> Page:
        from floatlab.verbs.timing.page import backends_page

        return backends_page(found)

    fastest = _fastest(found.ranking)
    missing = "" if found.runs else "; ".join(f"{each.name}: {each.reason}" for each in found.absent)
    status = _INTERRUPTED if found.interrupted else 0
    return plain_answer(found, page, *fastest).replace(missing=missing, status=status)


def _fastest(ranking: Ranking) -> list[str]:
    """Return a list with one text: the names of the fastest candidates, separated by commas.

    The list is empty if nothing was timed.
    """
    return [",".join(ranking.candidates)] if ranking.candidates else []
