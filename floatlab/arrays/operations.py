"""Arithmetic on arrays: `add`, `subtract`, `multiply`, `divide`, `sqrt` and `fma`, each rounded once into any format.

Values, signs of zero, codes and flags agree with the scalar operations of the same names.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Unpack

import numpy as np

from floatlab.arrays.codec import (  # fmt: skip
    CallOptions,
    broadcast,
    exact_operand,
    floating_dtype,
    rules_of,
    shared_dtype,
    written,
)
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.sources import format_of, kind_of
from floatlab.arrays.types import Array, DType, Work
from floatlab.errors import UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context
from floatlab.numbers.rounding import AnyContext
from floatlab.record import Individual


class _Asked(Individual):
    """The checked arguments of a call except its operands, cached so that equal calls share one object."""

    operation: str
    names: tuple[str, ...]  # of the operands
    format: Format
    context: Context
    lane: str | None


@lru_cache(maxsize=256)
def _asked(
    operation: str, count: int, format: Format | str, rounding: AnyContext, overflow: str, context: AnyContext,
    lane: str | None,
) -> _Asked:  # fmt: skip
    from floatlab.arrays.lanes.numpy_operations import OPERATIONS

    if not isinstance(operation, str) or operation not in OPERATIONS:
        known, word = " ".join(OPERATIONS), str(operation)
        raise UnsupportedError(f"operation must be one of {known}, not {quoted(word)}{guess(word, [*OPERATIONS])}")
    fmt, rules = parse_format(format), rules_of(context, rounding, overflow)
    names = OPERATIONS[operation].operands
    if count != len(names):
        raise UnsupportedError(f"{operation} takes {len(names)} operands, not {count}")
    lane = dispatch.parse_lane(lane)
    container(fmt)  # checks the width
    return _Asked(operation, names, fmt, rules, lane)


@lru_cache(maxsize=256)
def _work(
    asked: _Asked, sources: tuple[Format, ...], dtypes: tuple[DType | None, ...], with_flags: bool, as_codes: bool
) -> tuple[Work, DType]:
    """Return a function that computes the results for one chunk of the arrays at a time, and the dtype of the results.

    If values are requested, their dtype may depend on the dtypes of the operands.
    """
    from floatlab.arrays.lanes.numpy_operations import OPERATIONS, calculator

    fmt, lane = asked.format, asked.lane
    work = calculator(OPERATIONS[asked.operation], sources, fmt, asked.context, lane, with_flags)
    if as_codes:
        return work, container(fmt)
    kind = shared_dtype(dtypes, fmt)
    return dispatch.convert_results(work, fmt, format_of(kind), lane), kind


@lru_cache(maxsize=256)
def _plain_work(
    asked: _Asked, dtypes: tuple[DType, ...], with_flags: bool, as_codes: bool
) -> tuple[Work, DType, list[DType]] | None:
    """Return the result of `_work` and the dtypes of the operands' codes; None if a dtype is not a float."""
    kinds = [kind for kind in map(kind_of, dtypes) if kind is not None]
    if len(kinds) < len(dtypes):
        return None
    return *_work(asked, tuple(format for format, _ in kinds), dtypes, with_flags, as_codes), [
        codes for _, codes in kinds
    ]


@in_default_mode
def operate(
    operation: str,
    operands: Sequence[Any],
    format: Format | str,
    rounding: AnyContext = "RNE",
    overflow: str = "native",
    out: Array | None = None,
    *,
    context: AnyContext = None,
    return_flags: bool | str = False,
    lane: str | None = None,
    threads: int | None = None,
    as_codes: bool = False,
) -> Any:
    """Return the result of an operation on arrays, rounded once into a format.

    Parameters
    ----------
    operation
        `add`, `subtract`, `multiply`, `divide`, `sqrt` or `fma`.
    operands
        Operands that broadcast. Operands are not rounded to the result's format: arrays keep their own formats; Python
        floats, lists of floats, and arrays of integers are binary64. Integers lie within ±2^53, and Python integers
        must be representable in the result's format.
    format, rounding, overflow, out, context, return_flags, lane, threads
        As in `encode`, but without block formats.
    as_codes
        Return codes instead of values.

    Returns
    -------
    values
        Floats, or codes if `as_codes` is true. The floats have the common dtype of the floating operands if this dtype
        contains the format, otherwise float32 or float64. With `return_flags`, a pair of result and flags.

    Raises
    ------
    UnsupportedError
        As `encode`, and for operands that do not broadcast.
    FormatError, ContextError
        For unknown names.

    Examples
    --------
    >>> operate("add", [np.float32([1, 2]), 0.1], "bf16").tolist()
    [1.1015625, 2.09375]
    >>> [hex(code) for code in operate("add", [np.float32([1, 2]), 0.1], "bf16", as_codes=True)]
    ['0x3f8d', '0x4006']
    """
    words = operation, len(operands), format, rounding, overflow, context, lane
    try:
        asked = _asked(*words)
    except TypeError:  # an argument is not hashable, such as a list: the uncached call reports it
        asked = _asked.__wrapped__(*words)
    names, with_flags = asked.names, return_flags is not False
    plain = None
    if all(type(x) is np.ndarray for x in operands):
        plain = _plain_work(asked, tuple(x.dtype for x in operands), with_flags, as_codes)
    if plain is not None:
        work, kind, held = plain
        codes = [x.view(each) for x, each in zip(operands, held, strict=True)]
    else:
        sources = [exact_operand(x, name, asked.format, asked.context) for x, name in zip(operands, names, strict=True)]
        dtypes = tuple(floating_dtype(x, source) for x, source in zip(operands, sources, strict=True))
        work, kind = _work(asked, tuple(each.format for each in sources), dtypes, with_flags, as_codes)
        codes = [each.codes for each in sources]
    return written(work, codes, broadcast(names, codes), kind, out, asked.context, return_flags, threads)


def add(
    x: object, y: object, format: Format | str, rounding: AnyContext = "RNE", overflow: str = "native",
    out: Array | None = None, **options: Unpack[CallOptions],
) -> Any:  # fmt: skip
    """Return x + y, rounded once into a format.

    Parameters
    ----------
    x, y
        Operands, as in `operate`; they broadcast.
    format, rounding, overflow, out, **options
        As in `operate`; options are `context`, `return_flags`, `lane` and `threads`.

    Returns
    -------
    values
        As `operate`.

    Raises
    ------
    UnsupportedError, FormatError, ContextError
        As `operate`.

    Examples
    --------
    >>> add(np.float32([1, 256]), np.float32([0.5, 1]), "bf16").tolist()
    [1.5, 256.0]
    """
    return operate("add", (x, y), format, rounding, overflow, out, **options)


def subtract(
    x: object, y: object, format: Format | str, rounding: AnyContext = "RNE", overflow: str = "native",
    out: Array | None = None, **options: Unpack[CallOptions],
) -> Any:  # fmt: skip
    """Return x − y, rounded once into a format.

    Parameters
    ----------
    x, y
        Operands, as in `operate`; they broadcast.
    format, rounding, overflow, out, **options
        As in `operate`; options are `context`, `return_flags`, `lane` and `threads`.

    Returns
    -------
    values
        As `operate`.

    Raises
    ------
    UnsupportedError, FormatError, ContextError
        As `operate`.

    Examples
    --------
    >>> subtract(np.float16([1, 2048]), np.float16([1, 1]), "fp16", "RTN").tolist()
    [-0.0, 2047.0]
    """
    return operate("subtract", (x, y), format, rounding, overflow, out, **options)


def multiply(
    x: object, y: object, format: Format | str, rounding: AnyContext = "RNE", overflow: str = "native",
    out: Array | None = None, **options: Unpack[CallOptions],
) -> Any:  # fmt: skip
    """Return x · y, rounded once into a format.

    Parameters
    ----------
    x, y
        Operands, as in `operate`; they broadcast.
    format, rounding, overflow, out, **options
        As in `operate`; options are `context`, `return_flags`, `lane` and `threads`.

    Returns
    -------
    values
        As `operate`.

    Raises
    ------
    UnsupportedError, FormatError, ContextError
        As `operate`.

    Examples
    --------
    >>> multiply(np.float32([1.125, 100]), np.float32([1.125, 100]), "e4m3", overflow="saturate").tolist()
    [1.25, 448.0]
    """
    return operate("multiply", (x, y), format, rounding, overflow, out, **options)


def divide(
    x: object, y: object, format: Format | str, rounding: AnyContext = "RNE", overflow: str = "native",
    out: Array | None = None, **options: Unpack[CallOptions],
) -> Any:  # fmt: skip
    """Return x / y, rounded once into a format.

    Parameters
    ----------
    x, y
        Operands, as in `operate`; they broadcast.
    format, rounding, overflow, out, **options
        As in `operate`; options are `context`, `return_flags`, `lane` and `threads`.

    Returns
    -------
    values
        As `operate`.

    Raises
    ------
    UnsupportedError, FormatError, ContextError
        As `operate`.

    Examples
    --------
    >>> values, flags = divide(np.float32([1, 1]), np.float32([3, 0]), "fp16", return_flags=True)
    >>> values.tolist(), flags.tolist()
    ([0.333251953125, inf], [16, 2])
    """
    return operate("divide", (x, y), format, rounding, overflow, out, **options)


def sqrt(
    x: object, format: Format | str, rounding: AnyContext = "RNE", overflow: str = "native",
    out: Array | None = None, **options: Unpack[CallOptions],
) -> Any:  # fmt: skip
    """Return √x, rounded once into a format.

    Parameters
    ----------
    x
        Operand, as in `operate`.
    format, rounding, overflow, out, **options
        As in `operate`; options are `context`, `return_flags`, `lane` and `threads`.

    Returns
    -------
    values
        As `operate`.

    Raises
    ------
    UnsupportedError, FormatError, ContextError
        As `operate`.

    Examples
    --------
    >>> sqrt(np.float32([2, -0.0]), "bf16").tolist()
    [1.4140625, -0.0]
    """
    return operate("sqrt", (x,), format, rounding, overflow, out, **options)


def fma(
    x: object, y: object, z: object, format: Format | str, rounding: AnyContext = "RNE",
    overflow: str = "native", out: Array | None = None, **options: Unpack[CallOptions],
) -> Any:  # fmt: skip
    """Return x · y + z, rounded once into a format.

    Parameters
    ----------
    x, y, z
        Operands, as in `operate`; they broadcast.
    format, rounding, overflow, out, **options
        As in `operate`; options are `context`, `return_flags`, `lane` and `threads`.

    Returns
    -------
    values
        As `operate`.

    Raises
    ------
    UnsupportedError, FormatError, ContextError
        As `operate`.

    Examples
    --------
    >>> fma(np.float64([1 + 2**-30]), 1 + 2**-30, -(1 + 2**-29), "fp64").tolist()
    [8.673617379884035e-19]
    """
    return operate("fma", (x, y, z), format, rounding, overflow, out, **options)
