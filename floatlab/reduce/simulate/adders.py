"""The arithmetic of a plan's nodes on single numbers. Each rounding is recorded as a derivation.

A node with two arguments rounds their sum once. Without `fma`, products are rounded to the format `products` before
they are added. With `fma`, an argument that is a product is not rounded. If both arguments are products, the first one
is rounded, as in a loop whose accumulator starts at zero. With `fma` and `pairs=False`, a node that adds two products
rounds both first, as if each had started a separate accumulator. A node with more than two arguments adds them exactly
and rounds once; with `fma`, none of its products is rounded.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain
from typing import ClassVar

from floatlab.arith import add, fma, multiply
from floatlab.arith.operands import DerivationBuilder, holds
from floatlab.errors import PlanError
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context, Datum, Derivation, Direction, Exact, convert
from floatlab.numbers.derivation import Combination, Combine, Step
from floatlab.numbers.rounding import DEFAULT, STREAM
from floatlab.record import Record
from floatlab.reduce.plan.plan import Plan


class Term(Record):
    """A leaf of a plan: a term of a sum, or the two factors of one product of a dot product."""

    x: Datum
    y: Datum | None = None

    @property
    def factors(self) -> tuple[Datum, ...]:
        """The term alone, or both factors."""
        return (self.x,) if self.y is None else (self.x, self.y)

    @property
    def exact(self) -> Exact:
        """The exact value of the term or product; raises UnsupportedError if it is not finite."""
        return self.x.exact if self.y is None else self.x.exact * self.y.exact

    @property
    def is_finite(self) -> bool:
        """Whether the term, or both factors, are finite."""
        return self.x.is_finite and (self.y is None or self.y.is_finite)


class Node(Record):
    """A node after evaluation: its id, the ids of its arguments, its value, and the derivations of its roundings.

    If the model of a tensor core adds products in a node, the node has no derivations. Instead, `given` is the exact
    sum of the node's arguments, or None if an argument is not finite.
    """

    id: int
    arguments: tuple[int, ...]
    value: Datum
    derivations: tuple[Derivation, ...]
    given: Exact | None = None

    @property
    def error(self) -> Fraction | None:
        """The value of the node minus the exact sum of its arguments, or None if either is not finite.

        In a compensated sum, the error of a node is the sum of the errors of its operations. If all nodes are rounded
        additions and no operand is flushed, the error of the whole sum is the sum of the errors of its nodes.
        """
        if not self.value.is_finite:
            return None
        if self.given is not None:
            return self.value.exact.as_fraction() - self.given.as_fraction()
        errors = [each.error for each in self.derivations]
        known = [error for error in errors if error is not None]
        return sum(known, Fraction(0)) if len(known) == len(errors) else None


class NodeRule(Record):
    """An adder that evaluates the nodes of a plan one by one."""

    def node(self, id: int, ids: tuple[int, ...], arguments: Sequence[Term | Datum], element: int = 0) -> Node:
        """Return the evaluated node `id`, from the ids and the values of its arguments.

        `element` is the index of the sum to which the node belongs; random draws depend on it.
        """
        raise NotImplementedError

    def traced(self, plan: Plan, terms: Sequence[Term], element: int = 0) -> tuple[list[Node], Datum]:
        """Return every node of a plan (as `fold` does), and the value of the last one."""
        nodes = fold(plan, terms, self, element)
        return nodes, nodes[-1].value


class Adder(NodeRule):
    """Rounded addition, optionally with FMA; the module's docstring explains `fma` and `pairs`.

    `accumulator` is the format of partial sums. Products that are not fused are rounded to the format `products`. Terms
    and rounded products are converted into the accumulator's format before they are added. Under stochastic rounding
    (SR), the node or term with id i uses the seed of the context plus i (see `stream_context`).
    """

    accumulator: Format
    products: Format
    fma: bool
    context: Context
    pairs: bool

    def __init__(
        self,
        accumulator: Format | str = "binary32",
        products: Format | str | None = None,
        fma: bool = False,
        context: Context = DEFAULT,
        pairs: bool = True,
    ) -> None:
        """Take formats or names of formats; `products` is the accumulator's format by default."""
        put = object.__setattr__
        put(self, "accumulator", parse_format(accumulator))
        put(self, "products", self.accumulator if products is None else parse_format(products))
        put(self, "fma", bool(fma))
        put(self, "context", context)
        put(self, "pairs", bool(pairs))

    def stream_context(self, id: int, element: int = 0) -> Context:
        """Return the context, with the seed of node or term `id` in the sum with index `element`."""
        return stream_context(self.context, id, element)

    def leaf(self, term: Term, id: int, element: int = 0) -> tuple[Datum, list[Derivation]]:
        """Return a term or rounded product in the accumulator's format, and the derivations of this number."""
        context, made, value = self.stream_context(id, element), [], term.x
        if term.y is not None:
            made.append(multiply(term.x, term.y, self.products, context))
            value = made[-1].result
        if value.format != self.accumulator:
            made.append(convert(value, self.accumulator, context))
            value = made[-1].result
        return value, made

    def node(self, id: int, ids: tuple[int, ...], arguments: Sequence[Term | Datum], element: int = 0) -> Node:
        """Return the evaluated node. If the node has one argument, a term, its value is the one that `leaf` returns."""
        if len(ids) == 1 and isinstance(arguments[0], Term):
            value, roundings = self.leaf(arguments[0], ids[0], element)
            return Node(id, ids, value, tuple(roundings))
        context, found = self.stream_context(id, element), []
        factors = [isinstance(each, Term) and each.y is not None for each in arguments]
        values: list[Term | Datum] = list(arguments)
        fused = len(ids) - 1 if factors[-1] else 0
        fuses = self.fma and (self.pairs or len(ids) > 2 or not all(factors))
        for i, each in enumerate(arguments):
            if isinstance(each, Term) and not (fuses and factors[i] and (len(ids) > 2 or i == fused)):
                values[i], roundings = self.leaf(each, ids[i], element)
                found += roundings
        left, right = values[0], values[-1]
        if len(ids) > 2:
            last = derive_exact_sum(values, self.accumulator, context)
        elif isinstance(right, Term):
            last = fma(right.x, right.y, left, self.accumulator, context)
        elif isinstance(left, Term):
            last = fma(left.x, left.y, right, self.accumulator, context)
        else:
            last = add(left, right, self.accumulator, context)
        return Node(id, ids, last.result, (*found, last))


class PartlyFused(Record):
    """Addition of products: FMA adds the products in `fused`; all other products are rounded before they are added.

    Compiled code may use FMA for only some products: a vectorised loop uses FMA, and the loop over the remaining terms
    does not. If both operands of a node are products in `fused`, the first product is rounded. The sums of the nodes in
    `kept` are rounded to the format `partials`, as if one loop stored them and another loop read them.
    """

    accumulator: Format
    fused: tuple[int, ...]  # indices of terms, ascending
    partials: Format | None = None
    kept: tuple[int, ...] = ()  # ids of nodes, ascending

    pairs: ClassVar[bool] = True
    context: ClassVar[Context] = DEFAULT

    @property
    def fma(self) -> bool:
        """Whether any product is fused."""
        return bool(self.fused)

    @property
    def products(self) -> Format:
        """The format to which products that are not fused are rounded."""
        return self.accumulator

    def within(self, terms: Sequence[int]) -> PartlyFused:
        """Return an adder for only these terms, which are renumbered from 0. The new adder's `kept` is empty."""
        fused = set(self.fused)
        return PartlyFused(self.accumulator, tuple(i for i, term in enumerate(terms) if term in fused))


class Joined(Record):
    """Addition in two parts: two adders compute a sum each, and the last node adds these two sums.

    The adder `first` computes the first operand of the last node, and `second` computes the second operand. For
    example, one operand is the sum of a vectorised loop, and the other is the sum of the loop over the remaining terms.
    The last node rounds to the wider of the two accumulator formats.
    """

    first: Adder | PartlyFused
    second: Adder | PartlyFused

    fma: ClassVar[bool] = False
    context: ClassVar[Context] = DEFAULT

    @property
    def accumulator(self) -> Format:
        """The format of the last node."""
        one, other = self.first.accumulator, self.second.accumulator
        return one if holds(one, other) else other


def stream_context(context: Context, id: int, element: int = 0) -> Context:
    """Return a context whose seed depends on `id` and on `element`, the index of a sum.

    Without stochastic rounding, return `context` unchanged.
    """
    if not context.rounding.is_stochastic:
        return context
    return context.replace(seed=(context.seed + id + element * STREAM) % (1 << 64))


def derive_exact_sum(values: Sequence[Term | Datum], format: Format, context: Context = DEFAULT) -> Derivation:
    """Return the derivation of the exact sum of numbers and products, rounded once.

    If some numbers or products are infinities or NaNs, only the infinities and NaNs are added, from left to right, with
    a rounding at each step.

    >>> from floatlab import encode
    >>> derive_exact_sum([encode(x, "fp32") for x in (2.0**30, 1.0, -(2.0**30))], parse_format("fp16")).result
    Datum(binary16 0x3c00 = 1)
    """
    special: Derivation | None = None
    for each in (each for each in values if not each.is_finite):
        one = each if isinstance(each, Datum) else each.x
        if isinstance(each, Term) and each.y is not None:
            one = multiply(each.x, each.y, format, context).result
        special = convert(one, format, context) if special is None else add(special.result, one, format, context)
    if special is not None:
        return special
    groups = [(each,) if isinstance(each, Datum) else each.factors for each in values]
    operands = tuple(chain.from_iterable(groups))
    steps: list[Step] = []
    work = DerivationBuilder("sum", operands, (), format, context, steps)
    numbers = map(work.exact, range(len(operands)))
    exact = [next(numbers) if len(group) == 1 else next(numbers) * next(numbers) for group in groups]
    total = sum(exact[1:], exact[0])
    # IEEE 754-2019, 6.3: a sum of zeros with the same sign has this sign. Other zero sums are +0, or −0 in rounding
    # toward −∞.
    if not total.c:
        alike = not any(one.c or one.negative != exact[0].negative for one in exact)
        total = Exact(exact[0].negative if alike else context.rounding is Direction.RTN, 0, total.q)
    steps.append(Combine(Combination.SUM, total))
    return work.finish(total, total)


@in_default_mode
def fold(plan: Plan, terms: Sequence[Term], adder: NodeRule, element: int = 0) -> list[Node]:
    """Return every node of a plan, evaluated in order; in a plan of one term, the only node converts this term.

    >>> from floatlab import encode
    >>> terms = [Term(encode(x, "fp16")) for x in (2048, 1, 1)]
    >>> [float(node.value) for node in fold(Plan.from_tree(((0, 1), 2)), terms, Adder("fp16"))]
    [2048.0, 2048.0]
    >>> [float(node.value) for node in fold(Plan.from_tree((0, (1, 2))), terms, Adder("fp16"))]
    [2.0, 2050.0]
    """
    check_count(plan.terms, len(terms))
    if not plan.nodes:
        return [adder.node(0, (0,), terms, element)]
    numbers: list[Term | Datum] = list(terms)
    nodes = []
    for id, arguments in enumerate(plan.nodes, plan.terms):
        nodes.append(adder.node(id, arguments, [numbers[each] for each in arguments], element))
        numbers.append(nodes[-1].value)
    return nodes


def check_count(wanted: int, given: int) -> None:
    """Raise PlanError unless a plan has the given number of terms."""
    if wanted != given:
        raise PlanError(f"the plan is for {wanted} terms, not {given}")
