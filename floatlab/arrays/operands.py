"""What operations on arrays take and give: operands in formats, shapes that broadcast, values of a dtype."""

from __future__ import annotations

import numpy as np

from floatlab.arith.operands import holds
from floatlab.arrays.conversion import encode
from floatlab.arrays.results import float_for
from floatlab.arrays.sources import Source, format_of, source_of
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


def is_typed(x: Any) -> bool:
    """Say whether an operand brings a format or a dtype; numbers and lists of numbers do not."""
    return isinstance(getattr(x, "format", None), Format) or any(
        hasattr(x, each) for each in ("dtype", "__array__", "__dlpack__")
    )


def is_floating(x: Any) -> bool:
    """Say whether an operand brings a format of its own, which integers do not.

    >>> is_floating(np.float16(1)), is_floating(np.int8(1)), is_floating(1.0)
    (True, False, False)
    """
    return is_typed(x) and getattr(getattr(x, "dtype", None), "kind", "f") not in "iub"


def operand(x: Any, name: str, format: Format, context: Context) -> Source:
    """Return an operand as it is; numbers and lists, which bring no format, as `format` reads them in this context."""
    source = source_of(x, name)
    if is_typed(x):
        return source
    return Source(encode(source, format, context=context), format)


def broadcast(names: Sequence[str], sources: Sequence[Source]) -> tuple[int, ...]:
    """Return the shape that operands have together; raises UnsupportedError where they have none."""
    try:
        return np.broadcast_shapes(*(each.codes.shape for each in sources))
    except ValueError:
        told = ", ".join(f"{name} {each.codes.shape}" for name, each in zip(names, sources, strict=True))
        raise UnsupportedError(f"shapes do not broadcast: {told}") from None


def shared_dtype(operands: Sequence[Any], sources: Sequence[Source], format: Format) -> np.dtype[Any]:
    """Return what the operands that are floats have in common, if it holds the format, else float32 or float64."""
    given = [source.dtype for x, source in zip(operands, sources, strict=True) if is_floating(x)]
    given = [each.newbyteorder("=") for each in given if each is not None and format_of(each) is not None]
    if not given:
        return float_for(format)
    try:
        common = np.result_type(*given)
    except TypeError:  # two 8-bit floats of ml_dtypes
        return float_for(format)
    own = format_of(common)
    return common if own is not None and holds(own, format) else float_for(format)
