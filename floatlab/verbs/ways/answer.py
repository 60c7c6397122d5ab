"""`matmul --ways`: the four ways to one product, on this machine."""

from __future__ import annotations

from collections.abc import Callable

from floatlab.arrays.conversion import decode
from floatlab.arrays.sources import native_dtype
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.page.model import Page
from floatlab.reduce.timing.backends import in_one_format
from floatlab.reduce.timing.ways import four_ways
from floatlab.verbs.named_arrays import operands_of
from floatlab.verbs.question import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.wire.schema import Wire


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

    def page() -> Page:
        from floatlab.verbs.ways.page import ways_page

        return ways_page(ways, (x.shape, y.shape))

    def records() -> list[Wire]:
        from floatlab.verbs.ways.json import WAYS
        from floatlab.wire.schema import write_document

        return [write_document(WAYS, ways)]

    fastest = [min(ways, key=lambda way: way.timing.average).name]
    return Answer(page, records, lambda: fastest, lambda: fastest)
