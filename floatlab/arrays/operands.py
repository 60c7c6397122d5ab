"""Operands of operations on arrays: their formats, the shape they broadcast to, the dtype of the result."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from floatlab.arith.operands import exact_integer, holds
from floatlab.arrays.conversion import encode
from floatlab.arrays.results import float_for
from floatlab.arrays.sources import Source, format_of, source_of
from floatlab.arrays.types import Array, DType
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers import Context
from floatlab.numbers.scalars import whole_number


def is_typed(x: object) -> bool:
    """Say whether an operand brings a format or a dtype; numbers and lists of numbers do not."""
    return isinstance(getattr(x, "format", None), Format) or any(
        hasattr(x, each) for each in ("dtype", "__array__", "__dlpack__")
    )


def is_floating(x: object) -> bool:
    """Say whether an operand brings a format of its own, which integers do not.

    >>> is_floating(np.float16(1)), is_floating(np.int8(1)), is_floating(1.0)
    (True, False, False)
    """
    dtype = getattr(x, "dtype", None)
    kind = getattr(dtype, "kind", None) or str(dtype).rpartition(".")[2][:1]  # of PyTorch's dtypes the name's initial
    return is_typed(x) and kind not in ("i", "u") and not (kind == "b" and str(dtype).endswith("bool"))


def operand(x: object, name: str, format: Format) -> Source:
    """Return an operand as it is; numbers and lists, which bring no format, rounded into `format`."""
    source = source_of(x, name)
    return source if is_typed(x) else Source(encode(source, format), format)


def exact_operand(x: object, name: str, format: Format, context: Context) -> Source:
    """Return an operand as the numbers that it is: arrays in their formats, Python floats in binary64, integers exact.

    Where `format` has the same numbers, they come in it, which is quicker. Raises UnsupportedError for a Python integer
    that is no number of the format.
    """
    source = source_of(x, name)
    if is_typed(x):
        return source
    codes, raised = encode(source, format, return_flags="counts")
    changed = any(raised.values())
    if changed:
        for n in _integers(x):
            exact_integer(n, format)
    if changed or (context.flush_inputs and source.dtype is not None):  # a subnormal number is one of its own format
        return source
    return Source(codes, format)


def _integers(x: object) -> set[int]:
    if isinstance(x, list | tuple):
        return set().union(*map(_integers, x))
    n = whole_number(x)
    return set() if n is None else {n}


def broadcast(names: Sequence[str], codes: Sequence[Array]) -> tuple[int, ...]:
    """Return the shape that operands have together; raises UnsupportedError where they have none."""
    shapes = [each.shape for each in codes]
    first: tuple[int, ...] = shapes[0]
    if shapes.count(first) == len(shapes):
        return first
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        told = ", ".join(f"{name} {shape}" for name, shape in zip(names, shapes, strict=True))
        raise UnsupportedError(f"shapes do not broadcast: {told}") from None


def floating_dtype(x: object, source: Source) -> DType | None:
    """Return the dtype of an operand that brings one of floats."""
    return source.dtype if type(x) is np.ndarray or is_floating(x) else None


@lru_cache(maxsize=256)
def shared_dtype(dtypes: tuple[DType | None, ...], format: Format) -> DType:
    """Return what the operands that are floats have in common, if it holds the format, else float32 or float64."""
    given = [each.newbyteorder("=") for each in dtypes if each is not None and format_of(each) is not None]
    if not given:
        return float_for(format)
    try:
        common = np.result_type(*given)
    except TypeError:  # two 8-bit floats of ml_dtypes
        return float_for(format)
    own = format_of(common)
    return common if own is not None and holds(own, format) else float_for(format)
