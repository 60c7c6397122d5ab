"""Reads the arguments of a reduction: finds its formats, adder and schedule, and converts the terms to codes."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from floatlab.arith.operands import common_format, exact_integer, holds, in_own_format, reading_context
from floatlab.arrays.codec import rules_of
from floatlab.arrays.conversion import encode
from floatlab.arrays.lanes.parameters import SINGLE, container
from floatlab.arrays.sources import CHANGED, MOST_AT_ONCE, Origin, Source, is_floating, is_typed, source_of
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Derivation, Exact, Literal, read
from floatlab.numbers.rounding import AnyContext
from floatlab.numbers.scalars import whole_number
from floatlab.record import Record
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import Schedule
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.matrix_units import Machine, parse_machine
from floatlab.reduce.simulate.simulation import AnyAdder

_DEEPEST = 64  # the largest number of axes of a NumPy array
_MOST_INTEGER = 1 << 53  # float64 represents every integer up to this one
# Lists with numbers of these types are read one by one, because NumPy may round or reject them. The docstring of
# `_given` names two exceptions.
_ONE_BY_ONE = (Datum, Derivation, Literal, Exact, str, Fraction, Decimal, int, np.generic)


class Settings(Record):
    """The result's format, the adder, the schedule and the machine of a reduction."""

    format: Format
    adder: AnyAdder
    schedule: Schedule
    machine: Machine | None


def read_operands(
    operands: dict[str, object],
    schedule: str | Schedule | Plan | None = None,
    format: Format | str | None = None,
    *,
    terms: Format | str | None = None,
    accumulator: Format | str | None = None,
    products: Format | str | None = None,
    fma: bool = False,
    adder: str = "rounded",
    context: AnyContext = None,
    machine: str | Machine | None = None,
) -> tuple[Sides, Settings]:
    """Return the terms of named operands, and the settings of the reduction; raises errors as `sum` and `dot` do."""
    if not isinstance(adder, str):
        raise UnsupportedError(f"adder must be a name such as kahan, not {type(adder).__name__}")
    if not isinstance(fma, bool | np.bool_):
        raise UnsupportedError(f"fma must be True or False, not {type(fma).__name__}")
    rules, model = rules_of(context, "RNE"), None if machine is None else parse_machine(machine)
    inputs = [_given(x, name) for name, x in operands.items()]
    made: AnyAdder
    wanted: Format | None
    own = None if format is None else parse_format(format)
    if model is not None:
        for name, option in (
            ("accumulator", accumulator), ("products", products), ("terms", terms),
            ("the context (rounding, overflow, …)", context), ("fma", fma or None),
            ("adder", None if adder == "rounded" else adder),
        ):  # fmt: skip
            if option is not None:
                raise UnsupportedError(f"{name} is fixed by the machine {model.name}: leave out one of them")
        made, wanted, reading = model.adder, model.terms, model.reading
        into = own or made.accumulator
        order = model.schedule if schedule is None else parse_schedule(schedule)
    else:
        into = own or common_format([each.format for each in inputs if each.format] or [SINGLE])
        wanted = own if terms is None else parse_format(terms)
        held = into if accumulator is None else parse_format(accumulator)
        apart = held if products is None else parse_format(products)
        made = Adder(held, apart, bool(fma), rules) if adder == "rounded" else Compensated(adder, held, apart, rules)
        if fma and adder != "rounded":
            raise UnsupportedError(f"fma needs the adder rounded; {adder} adds rounded products")
        reading, order = reading_context(rules), parse_schedule("serial" if schedule is None else schedule)
    exactly = model is not None or terms is not None
    sides = tuple(_terms(each, wanted, into, exactly, reading) for each in inputs)
    return sides, Settings(into, made, order, model)


def read_factor(x: object, name: str, formats: tuple[Format, ...]) -> Source:
    """Return an operand's codes. If its format is not in `formats`, its numbers are rounded to `formats[0]`.

    >>> read_factor([1, 0.3], "a", (parse_format("e2m1"),)).codes.tolist()
    [2, 1]
    """
    given = _given(x, name)
    wanted = given.format if given.format in formats else formats[0]
    return _terms(given, wanted, wanted or formats[0], True, Context())


class _Given(Record):
    """An operand before it is converted: its format (None if it has none) and its numbers."""

    x: object
    name: str
    format: Format | None
    source: Source | None  # the operand as an array; None if its numbers are read one by one


def _given(x: object, name: str) -> _Given:
    """Inspect an operand; raises the same errors as `source_of` and `common_format`.

    A Datum, a Python float and a NumPy float have a format. A list has the smallest format that contains the formats of
    its numbers. Text, fractions and integers have no format. Two kinds of lists are converted by a single call of
    NumPy: NumPy numbers of one type, and Python floats mixed with integers up to 2^53.
    """
    if not isinstance(x, list | tuple):
        source = source_of(x, name)
        typed = isinstance(x, float) or (is_typed(x) and is_floating(x))
        return _Given(x, name, source.format if typed else None, source)
    leaves = _leaves(x)
    kinds = set(map(type, leaves))
    alike = len(kinds) == 1 and issubclass(next(iter(kinds)), np.generic)
    plain = kinds <= {int, float} and all(abs(n) <= _MOST_INTEGER for n in leaves if type(n) is int)
    if alike or plain or not any(issubclass(kind, _ONE_BY_ONE) for kind in kinds):
        source = source_of(x, name)
        return _Given(x, name, None if source.dtype is None else source.format, source)
    brought = {each.format for each in map(in_own_format, leaves) if isinstance(each, Datum)}
    return _Given(x, name, common_format(list(brought)) if brought else None, None)


def _terms(given: _Given, wanted: Format | None, into: Format, exactly: bool, reading: Context) -> Source:
    """Return an operand's codes.

    An array of floats keeps its format if `wanted` is None, or if `exactly` is false and `wanted` contains this format.
    All other numbers are converted to `wanted`, or to `into` if `wanted` is None. Raises UnsupportedError for integers
    that the new format cannot represent.
    """
    own, source, name = given.format, given.source, given.name
    if source is None:
        return _encoded(given.x, name, wanted or into, reading)
    target = own or wanted or into
    if own is not None and wanted is not None and (exactly or not holds(wanted, own)):
        target = wanted
    if source.format == target:
        return Source(source.codes.astype(container(target), order="C", copy=False), target, None, source.origin)
    codes, counts = encode(source, target, context=reading, return_flags="counts")
    if any(counts.values()):
        for n in _integers(given):
            exact_integer(n, target)
    return Source(np.asarray(codes), target, None, Origin(own, sum(counts[flag] for flag in CHANGED)))


def _integers(given: _Given) -> set[int]:
    """Return the integers of an operand that is an integer array or a list of Python numbers."""
    if given.format is not None:
        return {n for n in _leaves(given.x) if type(n) is int} if isinstance(given.x, list | tuple) else set()
    assert given.source is not None
    return set(map(int, np.unique(given.source.codes.view(np.float64)).tolist()))


def _leaves(x: Iterable[object], depth: int = 0) -> list[object]:
    if depth == _DEEPEST:
        return []  # NumPy raises the error for too many axes
    if not any(isinstance(each, list | tuple) for each in x):
        return list(x)
    return [leaf for each in x for leaf in (_leaves(each, depth + 1) if isinstance(each, list | tuple) else [each])]


def _encoded(x: object, name: str, format: Format, reading: Context) -> Source:
    """Read numbers one by one; return their codes, whose `origin` names the format that all numbers had, if any."""
    origins: set[Format | None] = set()
    changed: list[bool] = []

    def read_one(value: object) -> object:
        if isinstance(value, list | tuple):
            return [read_one(each) for each in value]
        n = whole_number(value)
        number = in_own_format(value) if n is None else exact_integer(n, format)
        origins.add(number.format if n is None and isinstance(number, Datum) else None)
        if isinstance(number, Datum) and number.format == format:
            return number.code
        done = read(number, format, reading)
        changed.append(bool(done.flags & CHANGED))
        return done.result.code

    numbers = read_one(x)
    try:
        codes = np.array(numbers, container(format))
    except ValueError:
        raise UnsupportedError(f"{name} has rows of different lengths") from None
    alike = origins.pop() if len(origins) == 1 else None
    return Source(codes, format, None, None if alike == format else Origin(alike, sum(changed)))


def as_matrices(a: Source, b: Source) -> tuple[Source, Source, tuple[int, ...]]:
    """Return the factors as matrices (rows, n) and (n, columns), and the shape of their product.

    Raises UnsupportedError if the shapes do not match, or if n is 0.

    >>> x, y, shape = as_matrices(source_of(np.ones(3)), source_of(np.ones((3, 2))))
    >>> x.codes.shape, y.codes.shape, shape
    ((1, 3), (3, 2), (2,))
    """
    left, right = a.codes, b.codes
    shape = shape_of_product(left, right)
    if shape is None:
        rule = "each has one or two axes, and the last axis of the first is as long as the first axis of the second"
        raise UnsupportedError(f"shapes {left.shape} and {right.shape} do not make a matrix product: {rule}")
    n = right.shape[0]
    if not n:
        raise UnsupportedError(f"shapes {left.shape} and {right.shape} have nothing to add")
    return a.replace(codes=left.reshape(-1, n)), b.replace(codes=right.reshape(n, -1)), shape


def shape_of_product(x: Array, y: Array) -> tuple[int, ...] | None:
    """Return the shape of the product of vectors or matrices; None if they cannot be multiplied."""
    if not 1 <= x.ndim <= 2 or not 1 <= y.ndim <= 2 or x.shape[-1] != y.shape[0]:
        return None
    return *x.shape[:-1], *y.shape[1:]


def check_factors(x: Array, y: Array) -> None:
    """Raise UnsupportedError unless both are matrices, of shapes (rows, n) and (n, columns)."""
    if x.ndim != 2 or y.ndim != 2 or x.shape[1] != y.shape[0]:
        raise UnsupportedError(f"shapes do not match: {x.shape} times {y.shape}")


def check_size(rows: int, columns: int) -> None:
    """Raise UnsupportedError for a product with more elements than the limit for arrays in memory."""
    if rows * columns > MOST_AT_ONCE:
        most = f"at most {MOST_AT_ONCE:,} are computed at once"
        raise UnsupportedError(f"the product has {rows:,} × {columns:,} elements, and {most}")


def check_row(source: Source, name: str) -> None:
    """Raise UnsupportedError unless the operand is one row of at least one number."""
    if source.codes.ndim != 1:
        hint = "matmul takes matrices, and numpy.ravel makes a row of one"
        raise UnsupportedError(f"{name} must be one row of numbers, but has shape {source.codes.shape}; {hint}")
    if not len(source.codes):
        raise UnsupportedError(f"{name} is empty: it needs at least one number")
