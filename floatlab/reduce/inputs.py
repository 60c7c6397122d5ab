"""What is asked of a reduction, settled: formats, adder and schedule, and the terms as codes."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from floatlab.arith.operands import common_format, holds, reading_context
from floatlab.arrays.conversion import encode
from floatlab.arrays.operands import is_floating, is_typed
from floatlab.arrays.reading import SINGLE, container
from floatlab.arrays.results import rules_of
from floatlab.arrays.sources import Source, source_of
from floatlab.arrays.streams import MOST_AT_ONCE
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum
from floatlab.numbers import encode as encode_one
from floatlab.record import Record
from floatlab.reduce.adders import Adder
from floatlab.reduce.compensated import Compensated
from floatlab.reduce.expressions import parse_schedule
from floatlab.reduce.machines import Machine, parse_machine
from floatlab.reduce.orders import Schedule
from floatlab.reduce.tensor_cores import TensorCore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]
    AnyAdder = Adder | Compensated | TensorCore


_DEEPEST = 64  # axes that arrays have at most


class Settings(Record):
    """What is settled before terms are read: formats, adder, schedule, machine."""

    format: Format
    adder: AnyAdder
    schedule: Schedule
    machine: Machine | None


def settle(
    operands: dict[str, Any], schedule: Any = None, format: Any = None, *, terms: Any = None, accumulator: Any = None,
    products: Any = None, fma: bool = False, adder: str = "rounded", context: Context | None = None,
    machine: Any = None,
) -> tuple[list[Source], Settings]:  # fmt: skip
    """Return the terms of operands, by their names, and what is asked; raises what `sum` and `dot` raise."""
    for name, value, kind in (("adder", adder, str), ("fma", fma, bool | np.bool_)):
        if not isinstance(value, kind):
            told = "a name such as kahan" if kind is str else "True or False"
            raise UnsupportedError(f"{name} is {told}, not {type(value).__name__}")
    rules, model = rules_of(context, "RNE"), None if machine is None else parse_machine(machine)
    if model is not None:
        given = {"accumulator": accumulator, "products": products, "context": context, "terms": terms}
        given |= {"fma": fma or None, "adder": None if adder == "rounded" else adder}
        for name, value in given.items():
            if value is not None:
                told = "the context (rounding, overflow, …)" if name == "context" else name
                raise UnsupportedError(f"{told} is fixed by the machine {model.name}: leave it out, or the machine")
        made: AnyAdder = model.adder
        into = made.accumulator if format is None else parse_format(format)
        wanted: Format | None = model.terms
        reading = model.reading
        order = model.schedule if schedule is None else parse_schedule(schedule)
    else:
        own = None if format is None else parse_format(format)
        into = own or _shared(operands)
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
    sources = [_terms(x, name, wanted, into, exactly, reading) for name, x in operands.items()]
    return sources, Settings(into, made, order, model)


def _data(x: Any) -> list[Datum]:
    return [each for each in x if isinstance(each, Datum)] if isinstance(x, list | tuple) else []


def _shared(operands: dict[str, Any]) -> Format:
    """Return the format that operands with formats have in common; binary32 where none has one."""
    formats = [each.format for x in operands.values() for each in _data(x)]
    formats += [source_of(x, name).format for name, x in operands.items() if is_floating(x) and not _data(x)]
    return common_format(list(dict.fromkeys(formats))) if formats else SINGLE


def _terms(x: Any, name: str, wanted: Format | None, into: Format, exactly: bool, reading: Context) -> Source:
    """Return an operand's codes: in the wanted format; arrays keep theirs where the result's holds it."""
    if isinstance(x, list | tuple) and any(isinstance(each, Datum | str | Fraction) for each in _leaves(x)):
        target = wanted or into
        return Source(_encoded(x, name, target, reading), target)
    source = source_of(x, name)
    if not is_floating(x) or not is_typed(x):
        target = wanted or into
    elif wanted is not None and (exactly or not holds(wanted, source.format)):
        target = wanted
    else:
        return Source(source.codes.astype(container(source.format), order="C", copy=False), source.format)
    if source.format == target:
        return Source(source.codes.astype(container(target)), target)
    return Source(np.asarray(encode(source, target, context=reading)), target)


def _leaves(x: Any, depth: int = 0) -> list[Any]:
    if depth == _DEEPEST:
        return []  # NumPy, which has no more axes, says so
    return [leaf for each in x for leaf in (_leaves(each, depth + 1) if isinstance(each, list | tuple) else [each])]


def _encoded(x: Any, name: str, format: Format, reading: Context) -> Array:
    def one(value: Any) -> Any:
        if isinstance(value, list | tuple):
            return [one(each) for each in value]
        return encode_one(value, format, reading).code

    codes = one(x)
    try:
        return np.array(codes, container(format))
    except ValueError:
        raise UnsupportedError(f"{name} has rows of different lengths") from None


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
    return Source(rows, a.format), Source(columns, b.format), (*left.shape[:-1], *right.shape[1:])


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
