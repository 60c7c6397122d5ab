"""The inputs of a reduction: formats, adder and schedule as they are settled, and the terms as codes."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

import numpy as np

from floatlab.arith.operands import common_format, exact_integer, holds, in_own_format, reading_context
from floatlab.arrays.conversion import encode
from floatlab.arrays.lanes.reading import SINGLE, container
from floatlab.arrays.operands import is_floating, is_typed
from floatlab.arrays.results import rules_of
from floatlab.arrays.sources import Origin, Source, source_of
from floatlab.arrays.streams import MOST_AT_ONCE
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Derivation, Exact, Flags, Literal, read
from floatlab.numbers.rounding import AnyContext
from floatlab.numbers.scalars import whole_number
from floatlab.record import Record
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.plan.orders import Schedule
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.code_engine import Sides
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.machines import Machine, parse_machine
from floatlab.reduce.simulate.simulation import AnyAdder

_DEEPEST = 64  # axes that arrays have at most
_MOST_INTEGER = 1 << 53  # float64 has all integers up to here
# Numbers that NumPy does not read, or not exactly: a list that has one is read one by one.
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
    """Return the terms of named operands, and the settings of the reduction; raises what `sum` and `dot` raise."""
    for name, value, kind, words in (
        ("adder", adder, str, "a name such as kahan"), ("fma", fma, bool | np.bool_, "True or False"),
    ):  # fmt: skip
        if not isinstance(value, kind):
            raise UnsupportedError(f"{name} is {words}, not {type(value).__name__}")
    rules, model = rules_of(context, "RNE"), None if machine is None else parse_machine(machine)
    inputs = [_given(x, name) for name, x in operands.items()]
    if model is not None:
        fixed: dict[str, object] = {"accumulator": accumulator, "products": products, "terms": terms}
        fixed |= {
            "the context (rounding, overflow, …)": context,
            "fma": fma or None,
            "adder": None if adder == "rounded" else adder,
        }
        for name, option in fixed.items():
            if option is not None:
                raise UnsupportedError(f"{name} is fixed by the machine {model.name}: leave it out, or the machine")
        made: AnyAdder = model.adder
        into = made.accumulator if format is None else parse_format(format)
        wanted: Format | None = model.terms
        reading = model.reading
        order = model.schedule if schedule is None else parse_schedule(schedule)
    else:
        own = None if format is None else parse_format(format)
        into = own or common_format([each.format for each in inputs if each.format] or [SINGLE])
        wanted = parse_format(terms) if terms is not None else own
        held = into if accumulator is None else parse_format(accumulator)
        apart = held if products is None else parse_format(products)
        if adder == "rounded":
            made = Adder(held, apart, fma, rules)
        else:
            made = Compensated(adder, held, apart, rules)
            if fma:
                raise UnsupportedError(f"fma goes with rounded additions; {adder} adds products that were rounded")
        reading = reading_context(rules)
        order = parse_schedule("serial" if schedule is None else schedule)
    exactly = model is not None or terms is not None
    sides = tuple(_terms(each, wanted, into, exactly, reading) for each in inputs)
    return sides, Settings(into, made, order, model)


class _Given(Record):
    """An operand before it is read: the format that it brings, if any, and its numbers, in an array or one by one."""

    x: object
    name: str
    format: Format | None
    source: Source | None  # None where each number is to be read by itself


def _given(x: object, name: str) -> _Given:
    """Look at an operand; raises what `source_of` and `common_format` raise.

    A Datum, a Python float, and a number of NumPy have formats; a list has what its numbers have in common. Text,
    fractions and integers have none.
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
    """Return an operand's codes: in the wanted format; numbers that bring a format keep it where the result's holds it.

    Raises UnsupportedError for integers that are no numbers of the format they are read into.
    """
    own, source, name = given.format, given.source, given.name
    if source is None:
        target = wanted or into
        return _encoded(given.x, name, target, reading)
    if own is None:
        target = wanted or into
    elif wanted is not None and (exactly or not holds(wanted, own)):
        target = wanted
    else:
        target = own
    codes = source.codes
    if source.format == target:
        return Source(codes.astype(container(target), order="C", copy=False), target, None, source.origin)
    found, counts = encode(source, target, context=reading, return_flags="counts")
    if any(counts.values()):
        for n in _integers(given):
            exact_integer(n, target)
    return Source(np.asarray(found), target, None, Origin(own, counts[Flags.INEXACT]))


def _integers(given: _Given) -> set[int]:
    """Return the integers of an operand that is an array, or a list of Python's numbers."""
    if given.format is not None:
        return {n for n in _leaves(given.x) if type(n) is int} if isinstance(given.x, list | tuple) else set()
    assert given.source is not None
    return set(map(int, np.unique(given.source.codes.view(np.float64)).tolist()))


def _leaves(x: Iterable[object], depth: int = 0) -> list[object]:
    if depth == _DEEPEST:
        return []  # NumPy, which has no more axes, says so
    if not any(isinstance(each, list | tuple) for each in x):
        return list(x)
    return [leaf for each in x for leaf in (_leaves(each, depth + 1) if isinstance(each, list | tuple) else [each])]


def _encoded(x: object, name: str, format: Format, reading: Context) -> Source:
    """Read numbers one by one; the origin is a format where all of them bring it."""
    origins: set[Format | None] = set()
    inexact = 0

    def one(value: object) -> object:
        nonlocal inexact
        if isinstance(value, list | tuple):
            return [one(each) for each in value]
        n = whole_number(value)
        if n is not None:
            origins.add(None)
            return exact_integer(n, format).code
        number = in_own_format(value)
        if isinstance(number, Datum):
            origins.add(number.format)
            if number.format == format:
                return number.code
        else:
            origins.add(None)
        done = read(number, format, reading)
        inexact += Flags.INEXACT in done.flags
        return done.result.code

    codes = one(x)
    try:
        found = np.array(codes, container(format))
    except ValueError:
        raise UnsupportedError(f"{name} has rows of different lengths") from None
    alike = origins.pop() if len(origins) == 1 else None
    return Source(found, format, None, None if alike == format else Origin(alike, inexact))


def as_matrices(a: Source, b: Source) -> tuple[Source, Source, tuple[int, ...]]:
    """Return factors as matrices (rows, n) and (n, columns), and the shape of their product; raises UnsupportedError.

    >>> x, y, shape = as_matrices(source_of(np.ones(3)), source_of(np.ones((3, 2))))
    >>> x.codes.shape, y.codes.shape, shape
    ((1, 3), (3, 2), (2,))
    """
    left, right = a.codes, b.codes
    if not 1 <= left.ndim <= 2 or not 1 <= right.ndim <= 2 or left.shape[-1] != right.shape[0]:
        raise UnsupportedError(
            f"shapes {left.shape} and {right.shape} do not make a matrix product: of one or two axes each, the last of "
            "the first is to be as long as the first of the second"
        )
    n = right.shape[0]
    if not n:
        raise UnsupportedError(f"shapes {left.shape} and {right.shape} have nothing to add: no order")
    rows, columns = left.reshape(-1, n), right.reshape(n, -1)
    return a.replace(codes=rows), b.replace(codes=columns), (*left.shape[:-1], *right.shape[1:])


def check_size(rows: int, columns: int) -> None:
    """Refuse a product of more elements than arrays may have in memory; raises UnsupportedError."""
    if rows * columns > MOST_AT_ONCE:
        raise UnsupportedError(
            f"the product has {rows:,} × {columns:,} elements, and at most {MOST_AT_ONCE:,} are made at once"
        )


def check_row(source: Source, name: str) -> None:
    """Refuse what is no row of numbers; raises UnsupportedError."""
    if source.codes.ndim != 1:
        raise UnsupportedError(
            f"{name} is one row of numbers, and this has shape {source.codes.shape}; matmul takes matrices, and "
            "numpy.ravel makes a row of one"
        )
    if not len(source.codes):
        raise UnsupportedError(f"{name} is empty: a sum of nothing has no order")
