"""`sum`, `dot` and `matmul` in a stated order, with stated roundings, bit for bit; and what went wrong on the way."""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from heapq import nlargest

import numpy as np

from floatlab.arith.operands import common_format, holds
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.operands import is_floating, is_typed
from floatlab.arrays.reading import container
from floatlab.arrays.sources import Source, source_of
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, convert
from floatlab.numbers import encode as encode_one
from floatlab.numbers.context import DEFAULT
from floatlab.record import Record
from floatlab.reduce.adders import Adder, Node, Term, drawing
from floatlab.reduce.blame import worst_nodes
from floatlab.reduce.bounds import final_bound, first_bound, running_bound
from floatlab.reduce.compensated import Compensated
from floatlab.reduce.exact import exact_totals
from floatlab.reduce.expressions import parse_schedule
from floatlab.reduce.machines import Machine, parse_machine
from floatlab.reduce.plan import Plan
from floatlab.reduce.schedules import Permuted, Schedule, Sorted
from floatlab.reduce.simulate import simulate
from floatlab.reduce.steps import Steps
from floatlab.reduce.tensor_cores import TensorCore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Array = np.ndarray[Any, np.dtype[Any]]
    AnyAdder = Adder | Compensated | TensorCore

MAX_TRACED = 1 << 14  # terms; of more, no derivation is kept for every node
_FLOATS = {"binary16": np.float16, "binary32": np.float32, "binary64": np.float64}


class Reduction(Record):
    """A sum or dot product: its order, its roundings, its result, and all that is known about its error.

    >>> found = sum([1.0, 2**-24, 2**-24, 2**-24], schedule="pairwise")
    >>> found.result, found.plan, float(found.error_ulps), float(found.condition)
    (Datum(binary32 0x3f800001 = 1.0000001), Plan(((0 1) (2 3))), -0.5, 1.0)
    """

    operation: str
    x: Source
    y: Source | None
    schedule: Schedule
    adder: AnyAdder
    accumulated: Datum  # in the accumulator's format
    result: Datum
    machine: Machine | None = None

    def __eq__(self, other: object) -> bool:
        """Compare by identity: it holds arrays."""
        return self is other

    __hash__ = object.__hash__

    def __float__(self) -> float:
        """Return the result as a float."""
        return float(self.result)

    def __repr__(self) -> str:
        """Show what was done and what came out."""
        terms = f"{len(self):,} term{'s' * (len(self) != 1)}"
        return f"Reduction({self.operation} of {terms}, {self.schedule.text[:80]}: {self.result!r})"

    def __len__(self) -> int:
        """Return the number of terms."""
        return len(self.x.codes)

    @property
    def terms(self) -> list[Term]:
        """The terms, as data."""
        sides = [self.x] if self.y is None else [self.x, self.y]
        rows = zip(*(side.codes.tolist() for side in sides), strict=True)
        return [Term(*(Datum(s.format, code) for s, code in zip(sides, row, strict=True))) for row in rows]

    @property
    def settled(self) -> Schedule:
        """The schedule, with the order of these very terms where it depends on them."""
        if not isinstance(self.schedule, Sorted):
            return self.schedule
        with np.errstate(all="ignore"):
            size = np.abs(decode(self.x.codes, self.x.format, np.float64))
            if self.y is not None:
                size = size * np.abs(decode(self.y.codes, self.y.format, np.float64))
        return Permuted(tuple(self.schedule.places(size).tolist()), self.schedule.inner)

    @property
    def steps(self) -> Steps:
        """The order as steps over arrays."""
        return self.settled.steps(len(self))

    @property
    def plan(self) -> Plan:
        """The order, node by node."""
        return self.settled.plan(len(self))

    @property
    def nodes(self) -> list[Node]:
        """Every node with its value and derivations, evaluated one by one; of one term, its reading.

        Raises UnsupportedError for more than 2^14 terms.

        >>> [(node.arguments, float(node.value), float(node.error)) for node in sum([2048, 1, 1], format="fp16").nodes]
        [((0, 1), 2048.0, -1.0), ((3, 2), 2048.0, -1.0)]
        """
        if len(self) > MAX_TRACED:
            raise UnsupportedError(f"{len(self):,} terms are too many to keep every node: at most {MAX_TRACED:,}")
        return _nodes(self)

    def worst(self, count: int = 5) -> list[Node]:
        """Return the nodes whose own roundings missed most, the worst first, of sums of any length.

        Raises UnsupportedError for long sums that are compensated or fused.

        >>> long = sum(np.float32([2**24] + [1] * 99_999))
        >>> float(long.error), [(node.arguments, float(node.error)) for node in long.worst(1)]
        (-99999.0, [((0, 1), -1.0)])
        """
        if len(self) > MAX_TRACED and isinstance(self.adder, Adder):
            return worst_nodes(self.x, self.y, self.steps, self.adder, count)
        errors = {node.id: abs(node.error or Fraction(0)) for node in self.nodes}
        return nlargest(count, (node for node in self.nodes if errors[node.id]), key=lambda node: errors[node.id])

    @property
    def exact(self) -> Fraction | None:
        """The exact sum of the terms as they were read; None where one is no number."""
        totals = _totals(self)
        return None if totals is None else totals[0]

    @property
    def magnitude(self) -> Fraction | None:
        """Σ|x|, or Σ|x·y|, exactly; None where a term is no number."""
        totals = _totals(self)
        return None if totals is None else totals[1]

    @property
    def error(self) -> Fraction | None:
        """Result − exact; None beyond numbers."""
        exact = self.exact
        return None if exact is None or not self.result.is_finite else self.result.exact.as_fraction() - exact

    @property
    def error_ulps(self) -> Fraction | None:
        """The error in units in the last place of the result."""
        error = self.error
        return None if error is None else error / self.result.ulp.as_fraction()

    @property
    def condition(self) -> Fraction | None:
        """Σ|x| / |Σx|: how much larger a relative error of a term may stand in the sum; None where the sum is zero."""
        totals = _totals(self)
        return None if totals is None or not totals[0] else totals[1] / abs(totals[0])

    @property
    def bound(self) -> Fraction | None:
        """A bound on |error| that order, formats and Σ|x| give beforehand; None where none is claimed.

        Compensated sums and tensor cores have none; `running_bound` may have.
        """
        totals = _totals(self)
        if totals is None or not isinstance(self.adder, Adder):
            return None
        sides = [self.x.format] if self.y is None else [self.x.format, self.y.format]
        own = [] if self.y is not None else sides
        found = first_bound(self.steps, totals[1], self.y is not None, own, self.adder)
        return self._finally(found, totals[0])

    @property
    def running_bound(self) -> Fraction | None:
        """A bound on |error| from the sizes of what was computed; None where none is claimed, or too much to trace."""
        totals = _totals(self)
        if totals is None or len(self) > MAX_TRACED or isinstance(self.adder, Compensated):
            return None
        return self._finally(running_bound(self.nodes, self.terms, self.adder), totals[0])

    def _finally(self, bound: Fraction | None, exact: Fraction) -> Fraction | None:
        if self.result.format == self.accumulated.format:
            return bound
        return final_bound(bound, exact, self.result.format, self.adder.context)


@lru_cache(maxsize=8)
def _nodes(reduction: Reduction) -> list[Node]:
    return reduction.adder.traced(reduction.plan, reduction.terms)[0]


@lru_cache(maxsize=8)
def _totals(reduction: Reduction) -> tuple[Fraction, Fraction] | None:
    found = exact_totals(reduction.x, reduction.y)
    return None if found is None else (found[0].as_fraction(), found[1].as_fraction())


class _Settings(Record):
    """What is settled before terms are read: formats, adder, schedule, machine."""

    format: Format
    adder: AnyAdder
    schedule: Schedule
    machine: Machine | None


def _settle(
    operands: dict[str, Any], schedule: Any, format: Any, terms: Any, accumulator: Any, products: Any, fma: bool,
    adder: str, context: Context | None, machine: Any,
) -> tuple[list[Source], _Settings]:  # fmt: skip
    rules, model = context or DEFAULT, None if machine is None else parse_machine(machine)
    if model is not None:
        given = {"accumulator": accumulator, "products": products, "context": context, "terms": terms}
        given |= {"fma": fma or None, "adder": None if adder == "rounded" else adder}
        for name, value in given.items():
            if value is not None:
                raise UnsupportedError(f"{name} is fixed by the machine {model.name}: leave it out, or the machine")
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
        reading = DEFAULT if context is None else rules.replace(rounding="RNE", flush_results=False)
        order = parse_schedule("serial" if schedule is None else schedule)
    exactly = model is not None or terms is not None
    sources = [_terms(x, name, wanted, into, exactly, reading) for name, x in operands.items()]
    return sources, _Settings(into, made, order, model)


def _data(x: Any) -> list[Datum]:
    return [each for each in x if isinstance(each, Datum)] if isinstance(x, list | tuple) else []


def _shared(operands: dict[str, Any]) -> Format:
    """Return the format that operands with formats have in common; binary32 where none has one."""
    formats = [each.format for x in operands.values() for each in _data(x)]
    formats += [source_of(x, name).format for name, x in operands.items() if is_floating(x) and not _data(x)]
    return common_format(list(dict.fromkeys(formats))) if formats else parse_format("binary32")


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
        return Source(np.ascontiguousarray(source.codes).astype(container(source.format), copy=False), source.format)
    if source.format == target:
        return Source(source.codes.astype(container(target)), target)
    return Source(np.asarray(encode(source, target, context=reading)), target)


def _leaves(x: Any) -> list[Any]:
    return [leaf for each in x for leaf in (_leaves(each) if isinstance(each, list | tuple) else [each])]


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


def _finished(code: int, settings: _Settings, steps: int) -> tuple[Datum, Datum]:
    found = Datum(settings.adder.accumulator, code)
    if found.format == settings.format:
        return found, found
    return found, convert(found, settings.format, drawing(settings.adder.context, steps)).result


def _reduced(operation: str, sources: list[Source], settings: _Settings) -> Reduction:
    x, y = sources[0], sources[1] if len(sources) > 1 else None
    code = int(simulate(x, y, settings.schedule, settings.adder)[()])
    # The last rounding draws with the number after those of all nodes.
    after = 0
    if settings.format != settings.adder.accumulator:
        inner = settings.schedule.inner if isinstance(settings.schedule, Sorted) else settings.schedule
        after = len(x.codes) + inner.steps(len(x.codes)).nodes
    accumulated, result = _finished(code, settings, after)
    return Reduction(operation, x, y, settings.schedule, settings.adder, accumulated, result, settings.machine)


def _row(source: Source, name: str) -> None:
    if source.codes.ndim != 1:
        raise UnsupportedError(f"{name} is one row of numbers, and this has shape {source.codes.shape}: ravel it")
    if not len(source.codes):
        raise UnsupportedError(f"{name} is empty: a sum of nothing has no order")


def sum(
    x: Any,
    schedule: str | Schedule | Plan | None = None,
    format: Format | str | None = None,
    *,
    terms: Format | str | None = None,
    accumulator: Format | str | None = None,
    adder: str = "rounded",
    context: Context | None = None,
) -> Reduction:
    """Return the sum of a row of numbers in an order: serial, or what the schedule says.

    `format` is the result's; without it, what the operands have in common, binary32 for plain numbers. Plain numbers,
    and arrays of wider formats where `format` is named, are read into `terms`, or else `format`, to nearest. Partial
    sums are rounded to `accumulator`, by default `format`, and the last one then to `format`. `adder` is rounded, or
    one of the compensated sums kahan, neumaier, klein, double, which are serial. Raises PlanError for a schedule that
    does not parse or has no order for so many terms, and UnsupportedError, FormatError or LiteralError for operands.

    >>> x = [2**24, 1, 1, 1]
    >>> [float(sum(x, schedule)) - 2**24 for schedule in ("serial", "reversed", "pairwise")]
    [0.0, 4.0, 2.0]
    >>> [float(sum(x, adder=adder)) - 2**24 for adder in ("kahan", "double")]
    [4.0, 4.0]
    >>> sum([0.1] * 10, format="bf16", accumulator="fp32").result
    Datum(bfloat16 0x3f80 = 1)
    """
    sources, settings = _settle({"x": x}, schedule, format, terms, accumulator, None, False, adder, context, None)
    _row(sources[0], "x")
    return _reduced("sum", sources, settings)


def dot(
    a: Any,
    b: Any,
    schedule: str | Schedule | Plan | None = None,
    format: Format | str | None = None,
    *,
    fma: bool = False,
    terms: Format | str | None = None,
    products: Format | str | None = None,
    accumulator: Format | str | None = None,
    adder: str = "rounded",
    context: Context | None = None,
    machine: str | Machine | None = None,
) -> Reduction:
    """Return the dot product of two rows of numbers in an order, with or without fused multiply-adds.

    Products are rounded to `products`, by default the accumulator's format; with `fma`, those that meet a partial sum
    are not (see `floatlab.reduce.adders`). A `machine`, such as `hopper.f16.f32`, is a model of a matrix unit, and
    fixes everything but the schedule and the result's format. The other arguments, and the errors, are those of `sum`.

    >>> from floatlab.reduce.presets import PRESETS
    >>> a, b = PRESETS["forum"].data
    >>> [hex(dot(a, b, fma=fma).result.code) for fma in (False, True)]
    ['0x3d6533f0', '0x3d6533f6']
    >>> dot([1024, 1, 1], [1024, 1, -1], machine="hopper.f16.f32").result
    Datum(binary32 0x49800000 = 1048576)
    """
    sources, settings = _settle(
        {"a": a, "b": b}, schedule, format, terms, accumulator, products, fma, adder, context, machine
    )
    for source, name in zip(sources, "ab", strict=True):
        _row(source, name)
    if len(sources[0].codes) != len(sources[1].codes):
        lengths = " and ".join(str(len(source.codes)) for source in sources)
        raise UnsupportedError(f"a and b have as many numbers as each other, and these have {lengths}")
    return _reduced("dot", sources, settings)


def matmul(
    a: Any,
    b: Any,
    schedule: str | Schedule | Plan | None = None,
    format: Format | str | None = None,
    *,
    fma: bool = False,
    terms: Format | str | None = None,
    products: Format | str | None = None,
    accumulator: Format | str | None = None,
    adder: str = "rounded",
    context: Context | None = None,
    machine: str | Machine | None = None,
) -> Array:
    """Return the matrix product of vectors or matrices, each element as `dot` makes it, as floats.

    The dtype is NumPy's for the result's format, or the narrowest of float32 and float64 that holds it. Under SR,
    element i in C order draws from the seed's stream as `dot` with a seed moved on i times.

    >>> rng = np.random.default_rng(0)
    >>> a, b = rng.random((50, 60), np.float32), rng.random((60, 40), np.float32)
    >>> bool((matmul(a, b, fma=True) == matmul(a, b)).all())
    False
    >>> matmul(a, b)[3, 4] == np.float32(dot(a[3], b[:, 4]))
    np.True_
    """
    sources, settings = _settle(
        {"a": a, "b": b}, schedule, format, terms, accumulator, products, fma, adder, context, machine
    )
    left, right = (source.codes for source in sources)
    if not 1 <= left.ndim <= 2 or not 1 <= right.ndim <= 2 or left.shape[-1] != right.shape[0]:
        raise UnsupportedError(f"shapes {left.shape} and {right.shape} do not make a matrix product")
    if not right.shape[0]:
        raise UnsupportedError(f"shapes {left.shape} and {right.shape} have nothing to add: no order")
    rows, columns = left.reshape(-1, left.shape[-1]), right.reshape(right.shape[0], -1)
    x = Source(np.ascontiguousarray(rows.T)[:, :, None], sources[0].format)
    y = Source(columns[:, None, :], sources[1].format)
    codes = simulate(x, y, settings.schedule, settings.adder)
    into, found = settings.format, Source(codes, settings.adder.accumulator)
    if into != found.format:
        inner = settings.schedule.inner if isinstance(settings.schedule, Sorted) else settings.schedule
        after = len(x.codes) + inner.steps(len(x.codes)).nodes
        codes = np.asarray(encode(found, into, context=drawing(settings.adder.context, after)))
    values = decode(codes, into, _FLOATS.get(into.name))
    return values.reshape((*left.shape[:-1], *right.shape[1:]))
