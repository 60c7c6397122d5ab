"""`matmul --backends`: one product on every library that is installed."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.reduce.timing.backends import BackendComparison, in_one_format, multiply_on, parse_backends
from floatlab.reduce.timing.ways import RUNS
from floatlab.verbs.backends.page import backends_page
from floatlab.verbs.named_arrays import operands_of
from floatlab.verbs.question import Answer, Started, written


def backends_answer(
    words: tuple[str, ...], backends: str, format: Format | None = None, runs: int = RUNS,
    started: Started | None = None,
) -> Answer:  # fmt: skip
    """Return the answer that multiplies the matrices that two words name on several backends; raises FloatlabError.

    Without a format they are multiplied in the one that both have, in binary32 or binary64 where these hold both, or,
    if they are text, in binary32.
    """
    names = parse_backends(backends)  # before the files are read
    x, y = in_one_format(operands_of("matmul", words, format), format)
    return answer_of(multiply_on(x, y, names, runs, started))


def answer_of(found: BackendComparison) -> Answer:
    """Return the answer that shows what became of a product; in one word, which backend is fastest."""
    fastest = [found.fastest.name] if found.runs else []
    reasons = "; ".join(f"{each.name}: {each.reason}" for each in found.absent)
    return Answer(
        page=lambda: backends_page(found),
        records=written(found),
        words=lambda: fastest,
        codes=lambda: fastest,
        missing="" if found.runs else reasons,
        found=found,
    )
