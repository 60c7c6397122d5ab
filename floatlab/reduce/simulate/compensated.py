"""Compensated sums: serial loops that also compute the rounding errors of their additions, and correct the sum.

Sources of the rules:

* Kahan, *Further remarks on reducing truncation errors*, CACM 8(1), 1965;
* Neumaier, *Rundungsfehleranalyse einiger Verfahren zur Summation endlicher Summen*, ZAMM 54(1), 1974;
* Klein (of second order), *A generalized Kahan-Babuška-summation-algorithm*, Computing 76, 2006;
* double-double addition: Dekker, Numerische Mathematik 18, 1971.

Each rule is one function. If the operands are `Datum` objects or arrays, the function computes the result. If the
operands are names, the function records its operations, which become the stages of a compiled loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from floatlab.arith import add, subtract
from floatlab.arith.operands import holds
from floatlab.arrays.conversion import decode
from floatlab.arrays.lanes.parameters import DOUBLE
from floatlab.arrays.recurrences import CONVERT, Recurrence, RecurrenceStage
from floatlab.arrays.types import Array
from floatlab.errors import PlanError, UnsupportedError, guess, quoted
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Derivation, encode
from floatlab.progress import count
from floatlab.record import Record
from floatlab.reduce.plan.batches import Batches
from floatlab.reduce.plan.plan import Plan
from floatlab.reduce.simulate.adders import Adder, Node, Term, check_count
from floatlab.reduce.simulate.code_engine import MANY, MOST_WALKED, ROWS, CodeEngine
from floatlab.reduce.simulate.float_engine import FloatEngine

X = TypeVar("X")


class Operations(Generic[X]):
    """Rounded additions and subtractions for one kind of operands, such as arrays."""

    def apply(self, operation: str, a: X, b: X) -> X:
        """Return the rounded result of an operation, named `add` or `subtract`."""
        raise NotImplementedError

    def add(self, a: X, b: X) -> X:
        """Return a rounded sum."""
        return self.apply("add", a, b)

    def subtract(self, a: X, b: X) -> X:
        """Return a rounded difference."""
        return self.apply("subtract", a, b)

    def by_size(self, a: X, b: X) -> tuple[X, X]:
        """Return the operand of larger magnitude first, then the other."""
        raise NotImplementedError


class CompensationRule(Record):
    """A rule of compensated summation. Its state has the partial sum and one or more compensation values.

    `take` returns the state after one more term. A rule whose `by_size` is true compares operands by magnitude and adds
    the compensation values to the sum at the end. The other rules use the compensation values at each step.
    """

    take: Callable[..., tuple[Any, ...]]
    rests: int = 1  # number of compensation values in a state, besides the sum
    by_size: bool = False

    def end(self, do: Operations[X], state: tuple[X, ...]) -> X:
        """Return the result of the sum, given the state after the last term."""
        return reduce(lambda rest, each: do.add(each, rest), state[::-1]) if self.by_size else state[0]


def _kahan(do: Operations[X], state: tuple[X, ...], x: X) -> tuple[X, ...]:
    s, c = state
    y = do.subtract(x, c)
    t = do.add(s, y)
    return t, do.subtract(do.subtract(t, s), y)


def _add_with_rest(do: Operations[X], s: X, x: X) -> tuple[X, X]:
    """Return t, the rounded sum of s and x, and the part of the smaller operand that t lacks (Dekker's Fast2Sum)."""
    t = do.add(s, x)
    large, small = do.by_size(s, x)
    return t, do.add(do.subtract(large, t), small)


def _with_rests(do: Operations[X], state: tuple[X, ...], x: X) -> tuple[X, ...]:
    """Return the state after adding the term x.

    The term is added to the first number of the state, the error of this addition to the second number, and so on.

    The first number is the partial sum. One more number follows in Neumaier's rule, and two more in Klein's.
    """
    *ones, last = state
    for i, each in enumerate(ones):
        ones[i], x = _add_with_rest(do, each, x)
    return *ones, do.add(last, x)


def _double(do: Operations[X], state: tuple[X, ...], x: X) -> tuple[X, ...]:
    s, e = state
    t = do.add(s, x)  # Knuth's TwoSum
    b = do.subtract(t, s)
    low = do.add(do.subtract(s, do.subtract(t, b)), do.subtract(x, b))
    low = do.add(e, low)
    high = do.add(t, low)
    return high, do.subtract(low, do.subtract(high, t))


RULES = {
    "kahan": CompensationRule(_kahan),
    "neumaier": CompensationRule(_with_rests, 1, by_size=True),
    "klein": CompensationRule(_with_rests, 2, by_size=True),
    "double": CompensationRule(_double),
}


class _Scalars(Operations[Datum]):
    """Operations on `Datum` objects; `made` collects the derivations of the results."""

    def __init__(self, format: Format, context: Context) -> None:
        self.format, self.context = format, context
        self.made: list[Derivation] = []

    def apply(self, operation: str, a: Datum, b: Datum) -> Datum:
        self.made.append((add if operation == "add" else subtract)(a, b, self.format, self.context))
        return self.made[-1].result

    def by_size(self, a: Datum, b: Datum) -> tuple[Datum, Datum]:
        return (a, b) if abs(float(a)) >= abs(float(b)) else (b, a)


class _Arrays(Operations[Array]):
    """Operations on the arrays of an engine."""

    def __init__(self, engine: CodeEngine) -> None:
        self.engine, self.ids = engine, np.zeros(1, np.int64)

    def apply(self, operation: str, a: Array, b: Array) -> Array:
        return (self.engine.add if operation == "add" else self.engine.subtract)(a, b, self.ids)

    def by_size(self, a: Array, b: Array) -> tuple[Array, Array]:
        x, y = (
            abs(each if isinstance(self.engine, FloatEngine) else decode(each, self.engine.format)) for each in (a, b)
        )
        return np.where(x >= y, a, b), np.where(x >= y, b, a)


class _Stages(Operations[str]):
    """Operations that are not computed, but recorded: each becomes a stage of a `Recurrence` for compiled code.

    Operands and results are the names of the recurrence's rows.
    """

    def __init__(self, format: Format, context: Context) -> None:
        self.format, self.context = format, context
        self.written: list[RecurrenceStage] = []

    def apply(self, operation: str, *operands: str, to: str = "") -> str:
        to = to or f"made {len(self.written)}"
        self.written.append(RecurrenceStage(to, operation, operands, self.format, self.context))
        return to

    def recurrence(self, rule: CompensationRule, names: Sequence[str]) -> Recurrence:
        """Return the recurrence by which `rule` adds a term x to a state whose numbers are named `names`."""
        for name, made in zip(names, rule.take(self, tuple(names), "x"), strict=True):
            self.apply(CONVERT, made, to=name)
        return Recurrence([*names, "x", *(stage.to for stage in self.written)], self.written)


class Compensated(Record):
    """A compensated sum of terms or of rounded products, which are added one after the other.

    Raises UnsupportedError for an unknown rule. Under stochastic rounding, all additions and subtractions of one step
    use the same random draw.
    """

    rule: str
    accumulator: Format
    products: Format
    context: Context

    fma: ClassVar[bool] = False
    pairs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Raise UnsupportedError for an unknown rule."""
        if self.rule not in RULES:
            raise UnsupportedError(
                f"adder must be rounded or one of {' '.join(RULES)}, not {quoted(str(self.rule))}"
                f"{guess(str(self.rule), [*RULES])}"
            )

    @property
    def adder(self) -> Adder:
        """The arithmetic of each addition and subtraction: rounded, without FMA."""
        return Adder(self.accumulator, self.products, False, self.context)

    def _serial(self) -> PlanError:
        return PlanError(f"{self.rule} adds one term after the other: its schedule is serial, reversed or sorted")

    def traced(self, plan: Plan, terms: Sequence[Term], element: int = 0) -> tuple[list[Node], Datum]:
        """Return the nodes of a serial plan, and the result; a node's value is the sum without the compensation.

        Raises PlanError if the plan is not serial, or if its number of terms is not the length of `terms`.

        >>> from floatlab.reduce.plan.plan import Plan
        >>> plan, ones = Plan.from_tree(((0, 1), 2)), [Term(encode(x, "fp16")) for x in (2048, 1, 1)]
        >>> half = encode(0, "fp16").format
        >>> [float(Compensated(rule, half, half, Context()).traced(plan, ones)[1]) for rule in RULES]
        [2050.0, 2050.0, 2050.0, 2050.0]
        """
        check_count(plan.terms, len(terms))
        rule, adder = RULES[self.rule], self.adder
        if any(len(node) != 2 or (i and node[0] != plan.terms + i - 1) for i, node in enumerate(plan.nodes)):
            raise self._serial()
        order = [0] if not plan.nodes else [plan.nodes[0][0], *(node[1] for node in plan.nodes)]
        value, found = adder.leaf(terms[order[0]], order[0], element)
        if not plan.nodes:
            return [Node(0, (0,), value, tuple(found))], value
        do = _Scalars(self.accumulator, self.context)
        state: tuple[Datum, ...] = (value, *[encode(0, self.accumulator)] * rule.rests)
        nodes = []
        for id, (arguments, leaf) in enumerate(zip(plan.nodes, order[1:], strict=True), plan.terms):
            value, made = adder.leaf(terms[leaf], leaf, element)
            do.context, do.made = adder.stream_context(id, element), [*found, *made]
            state = rule.take(do, state, value)
            found = []
            if id == plan.root:
                result = rule.end(do, state)
            nodes.append(Node(id, arguments, state[0], tuple(do.made)))
        return nodes, result

    def evaluated(self, batches: Batches, engine: CodeEngine) -> Array:
        """Return the results, an array of the shape `engine.batch`.

        `engine` must give the same results as `adder`. Raises PlanError if `batches` are not one serial chain.
        """
        if len(batches.each) > 1 or any(chains.lanes > 1 or chains.rest.shape[1] > 1 for chains in batches.each):
            raise self._serial()
        order = [batches.root]
        if batches.each:
            order = [int(batches.each[0].first[0]), *batches.each[0].rest[:, 0, 0].tolist()]
        value = engine.leaf(np.array(order[:1]))
        if not batches.each:
            return np.asarray(value[0])
        do, rule, zero = _Arrays(engine), RULES[self.rule], engine.blank(1)
        zero.view(f"u{zero.itemsize}")[...] = encode(0, self.accumulator).code
        state: tuple[Array, ...] = (value, *[zero] * rule.rests)
        walked = None if rule.by_size else self._walked(state, order[1:], engine)
        if walked is not None:
            return np.asarray(rule.end(do, walked)[0])
        for i, leaf in enumerate(order[1:]):
            do.ids[0] = batches.terms + i
            state = rule.take(do, state, engine.leaf(np.array([leaf])))
            count(value.size)
        return np.asarray(rule.end(do, state)[0])

    def _walked(self, state: tuple[Array, ...], order: list[int], engine: CodeEngine) -> tuple[Array, ...] | None:
        """Return the state after all terms, computed by one compiled loop.

        The result is None if there is no compiled loop, if the loop would save no time, or if a number is not finite.
        """
        if engine.drawn or len(order) < MANY or state[0].size > MOST_WALKED or not holds(DOUBLE, self.accumulator):
            return None
        names = [f"state {i}" for i in range(len(state))]
        line = _Stages(self.accumulator, self.context).recurrence(RULES[self.rule], names)
        if not line.is_compiled:
            return None
        start = {name: engine.doubles(each).reshape(-1) for name, each in zip(names, state, strict=True)}
        rows = line.rows(state[0].size, start)
        for first in range(0, len(order), ROWS):
            part = np.array(order[first : first + ROWS])
            terms = engine.doubles(engine.leaf(part)).reshape(len(part), -1)
            if not np.isfinite(terms).all() or line.walk(rows, len(part), {"x": terms}, finite=names) < len(part):
                return None
        if not np.isfinite(rows).all():
            return None
        return tuple(engine.from_doubles(rows[line.names[name]]).reshape(state[0].shape) for name in names)
