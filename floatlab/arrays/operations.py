"""Arithmetic on arrays: `add`, `subtract`, `multiply`, `divide`, `sqrt` and `fma`, each rounded once into any format.

The scalar operations of the same names, element by element: the same values, signs of zero, codes and flags.
"""

from __future__ import annotations

import numpy as np

from floatlab.arith.operands import reading_context
from floatlab.arrays import lanes
from floatlab.arrays.arithmetic import OPERATIONS, calculator
from floatlab.arrays.operands import broadcast, operand, shared_dtype
from floatlab.arrays.reading import container
from floatlab.arrays.results import rules_of, written
from floatlab.arrays.sources import format_of
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]


def operate(
    operation: str,
    operands: Sequence[Any],
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
    as_codes: bool = False,
) -> Any:
    """Return an operation, named, on operands that broadcast, rounded once into a format; as values or as its codes.

    Operands with a dtype or a format are taken as they are, whatever the result's format; numbers and lists of
    numbers are read into it first, to nearest, as constants are. The values have the dtype that the float operands
    have in common, if that holds the format, else float32 or float64. The other arguments, and the errors, are
    `encode`'s; UnsupportedError also names operands that do not broadcast.

    >>> operate("add", [np.float32([1, 2]), 0.1], "bf16").tolist()
    [1.1015625, 2.09375]
    >>> [hex(code) for code in operate("add", [np.float32([1, 2]), 0.1], "bf16", as_codes=True)]
    ['0x3f8d', '0x4006']
    """
    if not isinstance(operation, str) or operation not in OPERATIONS:
        known = [*OPERATIONS]
        raise UnsupportedError(
            f"operation is one of {' '.join(known)}, not {quoted(str(operation))}{guess(str(operation), known)}"
        )
    asked, fmt, rules = OPERATIONS[operation], parse_format(format), rules_of(context, rounding, overflow)
    if len(operands) != len(asked.operands):
        raise UnsupportedError(f"{operation} takes {len(asked.operands)} operands, not {len(operands)}")
    lane = lanes.parse_lane(lane)
    kind = container(fmt)
    sources = [operand(x, name, fmt, reading_context(rules)) for x, name in zip(operands, asked.operands, strict=True)]
    shape = broadcast(asked.operands, sources)
    work = calculator(asked, tuple(each.format for each in sources), fmt, rules, lane, return_flags is not False)
    if not as_codes:
        kind = shared_dtype(operands, sources, fmt)
        work = lanes.telling_values(work, fmt, format_of(kind), lane)
    return written(work, [each.codes for each in sources], shape, kind, out, rules, return_flags, threads)


def add(
    x: Any,
    y: Any,
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
) -> Any:
    """Return x + y, rounded once into a format; arguments and errors are `operate`'s.

    >>> add(np.float32([1, 256]), np.float32([0.5, 1]), "bf16").tolist()
    [1.5, 256.0]
    """
    return operate(
        "add", (x, y), format, rounding, overflow, out,
        context=context, return_flags=return_flags, lane=lane, threads=threads,
    )  # fmt: skip


def subtract(
    x: Any,
    y: Any,
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
) -> Any:
    """Return x − y, rounded once into a format; arguments and errors are `operate`'s.

    >>> subtract(np.float16([1, 2048]), np.float16([1, 1]), "fp16", "RTN").tolist()
    [-0.0, 2047.0]
    """
    return operate(
        "subtract", (x, y), format, rounding, overflow, out,
        context=context, return_flags=return_flags, lane=lane, threads=threads,
    )  # fmt: skip


def multiply(
    x: Any,
    y: Any,
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
) -> Any:
    """Return x · y, rounded once into a format; arguments and errors are `operate`'s.

    >>> multiply(np.float32([1.125, 100]), np.float32([1.125, 100]), "e4m3", overflow="saturate").tolist()
    [1.25, 448.0]
    """
    return operate(
        "multiply", (x, y), format, rounding, overflow, out,
        context=context, return_flags=return_flags, lane=lane, threads=threads,
    )  # fmt: skip


def divide(
    x: Any,
    y: Any,
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
) -> Any:
    """Return x / y, rounded once into a format; arguments and errors are `operate`'s.

    >>> values, flags = divide(np.float32([1, 1]), np.float32([3, 0]), "fp16", return_flags=True)
    >>> values.tolist(), flags.tolist()
    ([0.333251953125, inf], [16, 2])
    """
    return operate(
        "divide", (x, y), format, rounding, overflow, out,
        context=context, return_flags=return_flags, lane=lane, threads=threads,
    )  # fmt: skip


def sqrt(
    x: Any,
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
) -> Any:
    """Return √x, rounded once into a format; arguments and errors are `operate`'s.

    >>> sqrt(np.float32([2, -0.0]), "bf16").tolist()
    [1.4140625, -0.0]
    """
    return operate(
        "sqrt", (x,), format, rounding, overflow, out,
        context=context, return_flags=return_flags, lane=lane, threads=threads,
    )  # fmt: skip


def fma(
    x: Any,
    y: Any,
    z: Any,
    format: Format | str,
    rounding: str = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: Context | None = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
) -> Any:
    """Return x · y + z, rounded once into a format; arguments and errors are `operate`'s.

    >>> fma(np.float64([1 + 2**-30]), 1 + 2**-30, -(1 + 2**-29), "fp64").tolist()
    [8.673617379884035e-19]
    """
    return operate(
        "fma", (x, y, z), format, rounding, overflow, out,
        context=context, return_flags=return_flags, lane=lane, threads=threads,
    )  # fmt: skip
