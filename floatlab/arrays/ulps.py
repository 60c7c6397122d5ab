"""The order of the numbers of a format, on arrays: ranks, distances in ulps, spacing, neighbours."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from floatlab.arith.operands import common_format, holds
from floatlab.arrays.codec import broadcast, floating_dtype, operand, shared_dtype, written
from floatlab.arrays.lanes import dispatch
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, container
from floatlab.arrays.sources import Source, format_of, is_floating, source_of
from floatlab.arrays.types import Array, DType, Work
from floatlab.errors import FormatError, UnsupportedError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context, Datum

NAN_RANK = -(1 << 63)  # no number of 64 bits has this rank
NOT_COMPARABLE = -1  # the distance between a NaN and a number
_MOST = (1 << 63) - 1
_SIDES = {"up": 1, "down": -1}


@in_default_mode
def ordinal(x: object, format: Format | str | None = None) -> Array:
    """Return the ranks of numbers in a format, as int64: zeros have rank 0, and the ranks of neighbours differ by 1.

    Parameters
    ----------
    x
        Array of numbers.
    format
        Format that represents the numbers of `x`; by default the format of its dtype, or binary64 for integers and
        lists.

    Returns
    -------
    ranks
        As `Datum.ordinal`. The rank of ∞ is one above the rank of the largest number. NaNs have the rank −2^63.

    Raises
    ------
    UnsupportedError
        For an array with numbers that the format does not represent. (Python numbers and lists are instead rounded into
        the format.)
    FormatError
        For a format with an explicit integer bit, or with more than 63 bits besides the sign.

    Examples
    --------
    >>> ordinal(np.float16([0, -0.0, 2**-24, 1, np.inf, -1])).tolist()
    [0, 0, 1, 15360, 31744, -15360]
    """
    (source,), fmt = _operands((x,), ("x",), format)
    read = _reader(source, fmt, "x")

    def work(codes: Array, first: int, ranks: Array, flags: Array | None) -> None:
        ranks[...] = _ranks(read(codes), fmt).view(np.uint64)

    return _written(work, ("x",), [source], np.dtype(np.int64))


@in_default_mode
def ulp_distance(x: object, y: object, format: Format | str | None = None) -> Array:
    """Return the distances between the numbers of x and y, counted in ulps of a format, as int64.

    Parameters
    ----------
    x, y
        Arrays of numbers that broadcast.
    format
        Format in which ulps are counted: two neighbouring numbers of this format have the distance 1. By default the
        operands' common format.

    Returns
    -------
    distances
        −0 and 0 have the distance 0. An infinity is one step from the largest number. Two NaNs have the distance 0; a
        NaN and a number have the distance −1. Distances beyond 2^63 − 1 become 2^63 − 1; such distances occur only in
        formats of 64 bits, between numbers of opposite signs.

    Raises
    ------
    UnsupportedError, FormatError
        As `ordinal`.

    Examples
    --------
    >>> ulp_distance(np.float32([1, 0, np.inf, np.nan]), np.float32([1.000001, -0.0, 3.4028235e38, 1])).tolist()
    [8, 0, 1, -1]
    >>> ulp_distance(1.0, [1.125, -1.0, 448], "e4m3").tolist()
    [1, 112, 70]
    """
    sources, fmt = _operands((x, y), ("x", "y"), format)
    readers = [_reader(source, fmt, name) for source, name in zip(sources, ("x", "y"), strict=True)]

    def work(x: Array, y: Array, first: int, distances: Array, flags: Array | None) -> None:
        a, b = (_ranks(read(codes), fmt) for read, codes in zip(readers, (x, y), strict=True))
        apart = (np.maximum(a, b) - np.minimum(a, b)).view(np.uint64)  # unsigned, so it cannot overflow
        apart = np.minimum(apart, np.uint64(_MOST)).view(np.int64)
        lone = (a == NAN_RANK) != (b == NAN_RANK)
        distances[...] = np.where(lone, NOT_COMPARABLE, apart).view(np.uint64)

    return _written(work, ("x", "y"), sources, np.dtype(np.int64))


@in_default_mode
def spacing(x: object, format: Format | str | None = None) -> Array:
    """Return the unit in the last place of each number in a format, as `Datum.ulp` does; NaN for infinities and NaNs.

    The unit is a power of two. Formats given by a table are different: their unit is the distance to the next larger
    magnitude or, for the largest number, to the next smaller magnitude.

    Parameters
    ----------
    x, format
        As in `ordinal`.

    Returns
    -------
    units
        Positive numbers, in the dtype of `x` if this dtype contains the format and the units, else in float32 or
        float64.

    Raises
    ------
    UnsupportedError, FormatError
        As `ordinal`.

    Examples
    --------
    >>> spacing(np.float32([1, 255, 0])).tolist()
    [1.1920928955078125e-07, 1.52587890625e-05, 1.401298464324817e-45]
    >>> spacing(np.float32([1, 255, 0]), "bf16").tolist()
    [0.0078125, 1.0, 9.183549615799121e-41]
    """
    (source,), fmt = _operands((x,), ("x",), format)
    read, kind = _reader(source, fmt, "x"), shared_dtype((floating_dtype(x, source),), fmt)
    if (own := format_of(kind)) is not None and own.least_exponent > fmt.qmin:
        kind = np.dtype(np.float32 if fmt.qmin >= SINGLE.qmin else np.float64)

    def work(codes: Array, first: int, units: Array, flags: Array | None) -> None:
        codes = read(codes)
        if fmt.is_table:
            units[...] = _gaps(fmt)[codes].astype(kind).view(units.dtype)
            return
        field = _magnitudes(codes, fmt) >> fmt.trailing_bits
        found = np.ldexp(1.0, np.maximum(field, int(fmt.zero)) - fmt.bias - fmt.trailing_bits)
        found[_magnitudes(codes, fmt) > fmt.largest_magnitude] = np.nan
        found[_ranks(codes, fmt) == NAN_RANK] = np.nan
        units[...] = found.astype(kind).view(units.dtype)

    return _written(work, ("x",), [source], kind)


@in_default_mode
def next_after(x: object, toward: object, format: Format | str | None = None) -> Array:
    """Return the neighbour of each number in a format: the next number above, below, or toward another number.

    Parameters
    ----------
    x
        Array of numbers.
    toward
        "up" or "down", as `Datum.next_up` and `next_down`; or an array of numbers, as in `numpy.nextafter`. The last
        number in a direction (∞ in formats with infinities) is its own neighbour. The next number above the negative
        number closest to zero is −0 if the format has −0, else 0. If a number equals its target, the result is the
        target, so a zero may change its sign. A NaN in either array gives a NaN.
    format
        The format; by default the format of the dtype of `x`.

    Returns
    -------
    neighbours
        In the dtype of `x` if this dtype contains the format, else float32 or float64.

    Raises
    ------
    UnsupportedError, FormatError
        As `ordinal`; UnsupportedError also for a NaN in `toward` if the format has no NaN.

    Examples
    --------
    >>> next_after(np.float16([1, 65504, -(2**-24)]), "up").tolist()
    [1.0009765625, inf, -0.0]
    >>> next_after(np.float32([1, 1, 448]), [2, 0, 500], "e4m3").tolist()
    [1.125, 0.9375, 448.0]
    """
    (source,), fmt = _operands((x,), ("x",), format)
    read, sources, aimed, side = _reader(source, fmt, "x"), [source], None, 0
    if isinstance(toward, str):
        if toward not in _SIDES:
            raise UnsupportedError(
                f"toward must be up, down or numbers, not {quoted(toward)}{guess(toward, [*_SIDES])}"
            )
        side = _SIDES[toward]
    else:
        aims = source_of(toward, "toward")
        sources, aimed = [source, aims], (_numbers(fmt, "x"), _numbers(aims.format, "toward"))

    def work(*given: Any) -> None:
        *blocks, _, made, _ = given
        codes = read(blocks[0])
        if aimed is None:
            made[...] = _moved(codes, fmt, side, side > 0)  # a negative number steps up to −0
            return
        here, there = aimed[0](codes), aimed[1](blocks[1])
        step = (there > here).astype(np.int64) - (there < here)
        made[...] = _moved(codes, fmt, step, (step > 0) | ((step == 0) & np.signbit(there)))
        lost = np.isnan(there)
        if lost.any():
            if not fmt.has_nan:
                raise UnsupportedError(f"toward has a NaN, but {fmt.name} has none")
            made[lost] = fmt.nan_code

    kind = shared_dtype((floating_dtype(x, source),), fmt)
    converted = dispatch.convert_results(work, fmt, format_of(kind), None)
    return _written(converted, ("x", "toward")[: len(sources)], sources, kind)


def _operands(
    values: tuple[object, ...], names: tuple[str, ...], format: Format | str | None
) -> tuple[list[Source], Format]:
    """Return the operands, and the format whose ranks are used.

    Python numbers and lists are rounded into this format.
    """
    if format is not None:
        fmt = parse_format(format)
    else:
        own = [source_of(x, name).format for x, name in zip(values, names, strict=True) if is_floating(x)]
        fmt = common_format(own) if own else DOUBLE
    if fmt.magnitude_bits > 63 or fmt.explicit_integer_bit:
        raise FormatError(f"{fmt.name} has ranks of {fmt.magnitude_bits} bits; arrays hold at most 63")
    return [operand(x, name, fmt) for x, name in zip(values, names, strict=True)], fmt


def _numbers(format: Format, name: str) -> Callable[[Array], Array]:
    """Return a function that decodes arrays of a format's codes into binary64."""
    if not holds(DOUBLE, format):
        raise FormatError(f"{name} is of {format.name}, which has numbers that float64 does not hold")
    return dispatch.float_reader(format, DOUBLE, None)


def _reader(source: Source, format: Format, name: str) -> Callable[[Array], Array]:
    """Return a function that converts arrays of codes of `source` into codes of `format`.

    The function raises UnsupportedError for a number that `format` does not contain; the message calls the operand
    `name`.
    """
    if source.format == format:
        return lambda codes: codes
    into = dispatch.rounder(source.format, format, Context(), None)
    before, after, held = _numbers(source.format, name), _numbers(format, name), container(format)

    def read(codes: Array) -> Array:
        converted = np.empty(len(codes), held)
        into(codes, 0, converted, None)
        x, y = before(codes), after(converted)
        differ = (x != y) & ~(np.isnan(x) & np.isnan(y))
        if differ.any():
            culprit = float(x[np.argmax(differ)])
            raise UnsupportedError(f"{name} holds {culprit}, which {format.name} does not have: quantize it first")
        return converted

    return read


def _magnitudes(codes: Array, format: Format) -> Array:
    """Return codes without their signs, as int64."""
    return codes.astype(np.int64) & ((1 << format.magnitude_bits) - 1)


def _hidden(format: Format) -> int:
    """Return the number of unused codes between zero and the smallest number in a format without subnormals; else 0."""
    return format.smallest_normal_magnitude - 1 if format.zero and not format.subnormals else 0


def _ranks(codes: Array, format: Format) -> Array:
    """Return the ranks of codes as int64; NaNs have `NAN_RANK`."""
    if format.is_table:
        from floatlab.arrays.lanes.tables import ranks_table

        return ranks_table(format, NAN_RANK)[codes]
    magnitudes = _magnitudes(codes, format)
    negative = codes >> codes.dtype.type(format.width - 1) != 0 if format.signed else np.zeros(len(codes), bool)
    ranks: Array = np.maximum(magnitudes - _hidden(format), 0)
    ranks = np.where(negative, -ranks, ranks)
    ranks[magnitudes > max(format.largest_magnitude, format.infinity_magnitude)] = NAN_RANK
    if format.nan_in_place_of_negative_zero:
        ranks[negative & (magnitudes == 0)] = NAN_RANK
    return ranks


def _moved(codes: Array, format: Format, step: Array | int, minus: Array | bool) -> Array:
    """Return the codes that are `step` (1, 0 or −1) ranks above `codes`; the outermost numbers and NaNs stay unchanged.

    Where `minus` is true, a zero result is −0 if the format has −0.
    """
    ranks = _ranks(codes, format)
    if format.is_table:
        return _moved_in_table(codes, format, ranks, step, minus)
    top = max(format.largest_magnitude, format.infinity_magnitude) - _hidden(format)
    there = np.clip(ranks + step * (ranks != NAN_RANK), -top if format.signed else 0, top)
    magnitudes = np.abs(there)
    magnitudes += np.where(magnitudes > 0, _hidden(format), 0)
    signed = (there < 0) | ((there == 0) & minus & (format.negative_zero and format.zero and format.signed))
    whole = magnitudes.astype(np.uint64) | (signed.astype(np.uint64) << np.uint64(format.width - 1))
    return np.where(ranks == NAN_RANK, codes, whole.astype(codes.dtype))


@lru_cache(maxsize=16)
def _gaps(format: Format) -> Array:
    """Return the unit in the last place of each code of a format given by a table; NaN for infinities and NaNs."""
    data = (Datum(format, code) for code in range(1 << format.width))
    return np.array([float(datum.ulp.as_fraction()) if datum.is_finite else np.nan for datum in data])


def _moved_in_table(codes: Array, format: Format, ranks: Array, step: Array | int, minus: Array | bool) -> Array:
    """Do the same as `_moved` for a format given by a table."""
    from floatlab.arrays.lanes.tables import codes_table

    by_rank, zero = codes_table(format)
    there = np.clip(np.where(ranks == NAN_RANK, 0, ranks + step), -zero, len(by_rank) - 1 - zero)
    found = by_rank[there + zero]
    if format.negative_zero:
        found[(there == 0) & minus] = format.compose(True, 0)
    return np.where(ranks == NAN_RANK, codes, found)


def _written(work: Work, names: tuple[str, ...], sources: list[Source], dtype: DType) -> Array:
    codes = [source.codes for source in sources]
    return written(work, codes, broadcast(names, codes), dtype, None, Context(), False, None)
