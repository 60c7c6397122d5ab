"""`matmul --ways`: the four ways to one product, on this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import native_dtype
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.reduce.timing.backends import in_one_format
from floatlab.reduce.timing.ways import Way, apart, four_ways
from floatlab.verbs.answer import Answer
from floatlab.verbs.named_arrays import operands_of
from floatlab.verbs.ways.page import ways_page


@in_default_mode
def ways_answer(
    words: tuple[str, ...], format: Format, runs: int, started: Callable[[str], None] | None = None
) -> Answer:
    """Return the answer that multiplies the matrices that two words name, in four ways; raises FloatlabError."""
    dtype = native_dtype(format)
    if dtype is None:
        raise UnsupportedError(f"--ways times NumPy's own products, and it has none in {format.name}: fp16, fp32, fp64")
    sides = in_one_format(operands_of("matmul", words, format), format)
    x, y = (decode(side.codes, side.format).astype(dtype) for side in sides)
    ways = four_ways(x, y, runs, started)

    fastest = [min(ways, key=lambda way: way.timing.average).name]
    return Answer(
        page=lambda: ways_page(ways, (x.shape, y.shape)),
        records=lambda: [_wire(ways)],
        words=lambda: fastest,
        codes=lambda: fastest,
    )


def _wire(ways: tuple[Way, ...]) -> dict[str, Any]:
    from floatlab.wire.encode import SCHEMA, integer

    return {
        "schema": SCHEMA,
        "operation": "matmul",
        "ways": [
            {
                "name": way.name,
                "seconds": list(way.timing.runs),
                "average": way.timing.average,
                "sum": way.timing.total,
                "cumulative": list(way.timing.cumulative),
                "largest_error": way.largest_error,
                "largest_q": way.largest_q,
            }
            for way in ways
        ],
        "ulps_apart": [[integer(each) for each in row] for row in apart(ways)],
    }
