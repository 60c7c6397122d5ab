"""Candidate computations of a product or a sum: each has an order of the additions and an adder.

The adder is the arithmetic of each addition: the formats to which sums and products are rounded, and whether FMA is
used. Only the exact sum, which is rounded once, has neither an order nor an adder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import TypeVar

from floatlab.arith.operands import holds
from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context
from floatlab.numbers.rounding import DEFAULT
from floatlab.record import Record
from floatlab.reduce.plan.expressions import parse_schedule
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.plan.schedules import Schedule, Sorted
from floatlab.reduce.simulate.adders import Adder, Joined, PartlyFused
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.reduce.simulate.matrix_units import MACHINES, Machine, parse_machine
from floatlab.reduce.simulate.tensor_core_engine import TensorCore

SCHEDULES = (
    "serial", "reversed", "pairwise", "numpy", *(f"lanes({1 << k})" for k in range(1, 7)), "adjacent", "folded",
    "reversed(pairwise)", *(f"splitk({1 << k})" for k in range(1, 6)),
    *(f"blocked({k})" for k in (4, 8, 16, 32, 64, 128, 192, 256, 320, 384, 448, 512, 1024)),
    *(f"unrolled({1 << k}, lanes({1 << k}))" for k in range(2, 7)),
)  # fmt: skip
FUSED = tuple(f"fused({1 << k})" for k in range(1, 6))
_FEW = 1 << 8  # if all sums together have more terms than this, the orders `FUSED` are tried only on request
_LONG = 1 << 14  # if a sum has more terms than this, models of matrix units are tried only on request
_ONE_BY_ONE = 1 << 12  # if a sum has more terms than this, floatlab does not probe which products a library fuses
WIDER = ("binary32", "binary64")
_COMPARED = 1 << 11  # if a sum has more terms than this, orders count as equal only if their expressions are equal


NodeAdder = Adder | PartlyFused | Compensated
CandidateAdder = NodeAdder | Joined | TensorCore
T = TypeVar("T")


class InputRounding(Record):
    """Rounding of all inputs to `format` in direction `rounding`.

    The directions in `alike` round the given inputs to the same numbers as `rounding` does.
    """

    format: Format
    rounding: str
    alike: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The format and the rounding directions as text; all these directions give the same rounded inputs."""
        return f"{self.format.name} ({' or '.join((self.rounding, *self.alike))})"


class Candidate(Record):
    """A candidate computation: an order and an adder. For the exact sum, which is rounded once, both are None."""

    schedule: Schedule | None
    adder: CandidateAdder | None
    machines: tuple[Machine, ...] = ()  # the machines that this candidate models, if any
    same: tuple[Schedule, ...] = ()  # other requested schedules with the same tree for these terms
    order: str = ""  # the name of the order in messages; if empty, messages show the expression
    inputs: InputRounding | None = None

    @property
    def plain(self) -> Candidate:
        """The candidate without its fields `same` and `order`, which do not affect the results."""
        return Candidate(self.schedule, self.adder, self.machines, inputs=self.inputs)

    @property
    def adders(self) -> tuple[NodeAdder, ...]:
        """The candidate's adders.

        Candidates with a `Joined` adder have two adders. Tensor cores and the exact sum have none. All other candidates
        have one adder.
        """
        if isinstance(self.adder, Joined):
            return self.adder.first, self.adder.second
        return () if self.adder is None or isinstance(self.adder, TensorCore) else (self.adder,)


EXACT_SUM = Candidate(None, None)


def candidate_text(candidate: Candidate, format: Format) -> str:
    """Describe a candidate in words; `format` is the format of the results.

    >>> from floatlab.formats import parse_format
    >>> from floatlab.reduce.plan.grouped_schedules import SERIAL
    >>> single = parse_format("binary32")
    >>> candidate_text(Candidate(SERIAL, Adder(fma=True)), single)
    'serial with FMA'
    >>> apart = Joined(Adder(fma=True), Adder("fp64"))
    >>> candidate_text(Candidate(SERIAL, apart, order="numpy.dot's order here"), single)
    "numpy.dot's order here, one operand of the last addition in binary32 with FMA, the other in binary64"
    """
    if candidate.adder is None or candidate.schedule is None:
        return "exact, rounded once"
    if candidate.machines:
        return f"model {', '.join(row.name for row in candidate.machines)}"
    name = candidate.order or candidate.schedule.text
    if candidate.inputs is not None:
        name += f" of inputs rounded to {candidate.inputs.text}"
    if isinstance(candidate.adder, Joined):
        one, other = (each.accumulator.name + _adder_text(each, each.accumulator) for each in candidate.adders)
        return f"{name}, one operand of the last addition in {one}, the other in {other}"
    return name + _adder_text(candidate.adders[0], format)


def _adder_text(adder: NodeAdder, format: Format) -> str:
    if isinstance(adder, Compensated):
        return f", compensated ({adder.rule})" + _adder_text(adder.adder, format)
    found = "" if adder.accumulator == format else f", accumulator {adder.accumulator.name}"
    if adder.products != adder.accumulator:
        found += f", products {adder.products.name}"
    if isinstance(adder, PartlyFused):
        if adder.fused or adder.partials is None:
            found += f" with FMA of {len(adder.fused):,} product{'s' * (len(adder.fused) != 1)}"
        if adder.partials is not None:
            found += f", {len(adder.kept):,} partial sum{'s' * (len(adder.kept) != 1)} kept in {adder.partials.name}"
        return found
    return found + " with FMA" * adder.fma + " except in nodes that add two products" * (adder.fma and not adder.pairs)


def list_candidates(
    n: int,
    factors: tuple[Format, ...],
    into: Format,
    schedules: Iterable[str | Schedule | Plan] | None = None,
    formats: Iterable[str | Format] | None = None,
    machines: Iterable[str | Machine] | None = None,
    elements: int = 1,
    context: Context = DEFAULT,
) -> list[Candidate]:
    """Return candidates for sums of n terms, or of n products of two factors; simple candidates come first.

    Models of machines have their own rounding; all other candidates use `context`. Two orders with the same tree give
    one candidate, unless n is above 2^11. If `schedules`, `formats` or `machines` is None, a default list of them is
    tried. `elements` is the number of sums. If n·`elements` exceeds 256, the default list of schedules lacks the orders
    in `FUSED`.
    """
    usual = SCHEDULES + FUSED * (n * elements <= _FEW)
    orders = _orders(n, usual if schedules is None else _listed(schedules, "schedules"))
    kinds = None if formats is None else [parse_format(each) for each in _listed(formats, "formats")]
    adders = list_adders(factors, into, kinds, context)
    found = [Candidate(order, adder, same=same) for adder in adders for order, same in orders.items()]
    if formats is None and not context.flush_inputs:
        found.append(EXACT_SUM)
    models: dict[tuple[Schedule, TensorCore | Adder, Format], list[Machine]] = {}
    for row in _machines(n, factors, machines):
        models.setdefault((row.schedule, row.adder, row.terms), []).append(row)
    return found + [Candidate(order, adder, tuple(rows)) for (order, adder, _), rows in models.items()]


def adders_along(
    schedule: Schedule,
    n: int,
    factors: tuple[Format, ...],
    into: Format,
    context: Context = DEFAULT,
    fused: Callable[[], tuple[int, ...]] | None = None,
) -> Iterator[CandidateAdder]:
    """Yield candidate adders for the order that was inferred for a library; simple adders come first.

    The adders of `list_adders` come first. The next adders use FMA, except in nodes that add two products: there, both
    products are rounded first. If the last node has two operands, pairs of different adders follow. One adder of a pair
    computes the first operand, and the other computes the second: a library may use another format for the terms that
    remain after its main loop. If `fused` is given, it is called next, to probe which products the library fuses. Then
    comes an adder that fuses only these products. If the last node has two operands, the pairs of this adder with each
    of the others follow. `fused` is not called for sums without products, for n above 2^12, or if a node has more than
    two operands.
    """
    nodes = schedule.plan(n).nodes
    adders: list[Adder | PartlyFused] = [*list_adders(factors, into, context=context)]
    if any(len(node) == 2 and max(node) < n for node in nodes):
        adders += [each.replace(pairs=False) for each in adders if each.fma]
    yield from adders
    joins = len(nodes) > 1 and len(nodes[-1]) == 2
    if joins:
        yield from (Joined(one, other) for one, other in product(adders, adders) if one != other)
    if fused is None or len(factors) == 1 or n > _ONE_BY_ONE or any(len(node) > 2 for node in nodes):
        return
    partly = PartlyFused(into, fused())
    yield partly
    if joins:
        yield from (Joined(*sides) for each in adders for sides in ((partly, each), (each, partly)))


def _listed(tried: Iterable[T], name: str) -> list[T]:
    if isinstance(tried, str) or not isinstance(tried, Iterable):
        raise UnsupportedError(f"{name} must be a list of {name} to try, not {type(tried).__name__}")
    return list(tried)


def _orders(n: int, schedules: Iterable[str | Schedule | Plan]) -> dict[Schedule, tuple[Schedule, ...]]:
    """Group the schedules that have the same tree for n terms.

    Return a dictionary from the first schedule of each group to the other schedules of this group.

    Trees are not compared if n is above 2^11. The tree of `sorted` is never compared, because this tree depends on the
    terms.
    """
    alike: dict[object, dict[Schedule, None]] = {}
    for order in map(parse_schedule, schedules):
        compared = n <= _COMPARED and not isinstance(order, Sorted)
        key: object = order.plan(n).left_to_right().nodes if compared else order
        alike.setdefault(key, {})[order] = None
    return {first: tuple(others) for first, *others in alike.values()}


def list_adders(
    factors: tuple[Format, ...], into: Format, kinds: list[Format] | None = None, context: Context = DEFAULT
) -> list[Adder]:
    """Return candidate adders for each accumulator format in `kinds`. Terms are products if `factors` has two formats.

    For products, some adders use FMA, unless FMA cannot change the results. Other adders round products to the format
    of a factor. By default, `kinds` are `into`, any format in `factors` that contains all formats in `factors`, and the
    formats in WIDER that contain `into`.

    >>> half, single = parse_format("fp16"), parse_format("fp32")
    >>> [(each.accumulator.name, each.products.name, each.fma) for each in list_adders((half, half), single)][1:3]
    [('binary32', 'binary16', False), ('binary16', 'binary16', False)]
    """
    own = [each for each in dict.fromkeys(factors) if all(holds(each, other) for other in factors)]
    if kinds is None:
        wider = [each for each in map(parse_format, WIDER) if holds(each, into)]
        kinds = list(dict.fromkeys([into, *own, *wider]))
    adders = []
    for kind in kinds:
        adders.append(Adder(kind, context=context))
        if len(factors) > 1:
            if context.flush_results or not _multiplies_exactly(kind, *factors):
                adders.append(Adder(kind, fma=True, context=context))
            adders += [Adder(kind, each, context=context) for each in own if each != kind and holds(kind, each)]
    return adders


def _multiplies_exactly(into: Format, x: Format, y: Format) -> bool:
    """Return whether `into` represents all products of finite numbers of the formats x and y.

    If `into` represents all these products, FMA makes no difference.
    """
    if into.precision < x.precision + y.precision or not into.subnormals:
        return False
    return bool(into.largest >= x.largest * y.largest and into.smallest <= x.smallest * y.smallest)


def _machines(n: int, factors: tuple[Format, ...], machines: Iterable[str | Machine] | None) -> Iterator[Machine]:
    if machines is not None:
        found = [parse_machine(each) for each in _listed(machines, "machines")]
        if found and len(factors) == 1:
            raise UnsupportedError("machines are models of matrix units: they need two factors")
        yield from found
        return
    wanted = {each.name for each in factors}
    if len(wanted) == 1 and len(factors) == 2 and n <= _LONG:
        wanted |= {"tf32"} if wanted == {"binary32"} else set()
        yield from (row for row in MACHINES.values() if row.terms.name in wanted)
