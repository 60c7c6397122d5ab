"""The scalar lane: every element through the codec itself."""

from __future__ import annotations

from floatlab.numbers import Datum, convert
from floatlab.numbers.projection import round_exact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from floatlab.arrays.reading import Reading
    from floatlab.formats import Format
    from floatlab.numbers import Context

    Array = np.ndarray[Any, np.dtype[Any]]


def round_codes(
    given: Array, source: Format, format: Format, context: Context, first: int, codes: Array, flags: Array | None
) -> None:
    """Round a block of codes of one format into codes of another, and tell flags where there is room for them."""
    for i, code in enumerate(given.tolist()):
        datum = Datum(source, code)
        if datum.is_finite and not (context.flush_inputs and datum.is_subnormal):
            rounded = round_exact(datum.exact, format, context, index=first + i)
            codes[i], raised = rounded.code, rounded.flags
        else:
            found = convert(datum, format, context)
            codes[i], raised = found.result.code, found.flags
        if flags is not None:
            flags[i] = raised.value


def reader(reading: Reading) -> Any:
    """Return what reads a block of codes as words."""
    from floatlab.arrays.reading import word_of

    def read_block(codes: Array, words: Array) -> None:
        words[...] = [word_of(Datum(reading.format, code), reading.word) for code in codes.tolist()]

    return read_block
