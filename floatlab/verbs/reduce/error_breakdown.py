"""Divides the error of a short sum or dot product into the rounding errors of its terms and nodes (additions)."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from operator import or_

from floatlab.numbers import Datum, Derivation, Flags
from floatlab.record import Record
from floatlab.reduce import Adder, Compensated, Node, Reduction, Term


class Contribution(Record):
    """A term, a node, or a rounding after the last node, with its value and its rounding error.

    `term` is None for nodes and for roundings after the last node. If a term is a product that is rounded before it is
    added, `value` is the rounded product. (If the accumulator cannot represent this product, the product is rounded
    again, to the accumulator's format.) If the product is added exactly, `value` is None.
    `error` is the value minus the exact result of the operands. `error` is 0 for a product that is added exactly, and
    None if the value or the exact result is not finite. A rounding after the last node has a `name`, and its `id` is
    None.
    """

    id: int | None
    arguments: tuple[int, ...]
    term: Term | None
    value: Datum | None
    error: Fraction | None
    flags: Flags
    name: str = ""

    @property
    def kind(self) -> str:
        """The kind of contribution: term, node, or the name of a rounding after the last node."""
        return "term" if self.term is not None else self.name if self.id is None else "node"


def error_contributions(found: Reduction) -> list[Contribution]:
    """Return the contributions of the terms, of the nodes, and of the roundings after the last node, in this order.

    If all numbers are finite, the errors add up to the error of the result. This holds for every kind of addition.
    Raises UnsupportedError as `Reduction.nodes` does.

    >>> from floatlab import dot
    >>> [(each.id, str(each.error)) for each in error_contributions(dot([1, 3], [0.1, 0.1], format="e4m3"))]
    [(0, '0'), (1, '1/128'), (2, '-1/128')]
    """
    terms, nodes = found.terms, found.nodes
    if len(terms) == 1:
        return [_of_single_term(terms[0], nodes[0]), *_after(found, nodes[0].value)]
    is_separate = _rounded_separately(found, terms, nodes)
    entries = [_of_term(found, i, term, is_separate[i]) for i, term in enumerate(terms)]
    given = [_exact(each.term if each.value is None else each.value) for each in entries]
    for node in nodes:
        # In compensated sums, all roundings of a node count; in other sums, only the last one counts.
        flags = _raised(node.derivations if isinstance(found.adder, Compensated) else node.derivations[-1:])
        error = _error(node.value, [given[each] for each in node.arguments])
        entries.append(Contribution(node.id, node.arguments, None, node.value, error, flags))
        given.append(_exact(node.value))
    return entries + _after(found, nodes[-1].value)


def _after(found: Reduction, last: Datum) -> list[Contribution]:
    """Return the contributions of the roundings after the last node: adding the compensation, converting the result."""
    entries = []
    if isinstance(found.adder, Compensated) and found.accumulated != last:
        error = _error(found.accumulated, [_exact(last)])
        entries.append(Contribution(None, (), None, found.accumulated, error, Flags.NONE, "compensated"))
    if found.last_rounding is not None:
        error = _error(found.result, [_exact(found.accumulated)])
        flags, name = found.last_rounding.flags, found.result.format.name
        entries.append(Contribution(None, (), None, found.result, error, flags, f"to {name}"))
    return entries


def _rounding_adder(found: Reduction) -> Adder | None:
    """Return the adder whose rules may round terms before the addition; None for tensor cores."""
    adder = found.adder.adder if isinstance(found.adder, Compensated) else found.adder
    return adder if isinstance(adder, Adder) else None


def _rounded_separately(found: Reduction, terms: list[Term], nodes: list[Node]) -> list[bool]:
    """Return, for each term, whether the term was rounded before the addition.

    The node that adds such a term has a derivation for this rounding.
    """
    adder = _rounding_adder(found)
    if adder is None or not adder.fma:
        return [adder is not None] * len(terms)
    is_separate = [False] * len(terms)
    for node in nodes:
        rest = node.derivations[:-1]
        for each in node.arguments:
            if each < len(terms):
                own = tuple(adder.leaf(terms[each], each)[1])
                is_separate[each] = rest[: len(own)] == own
                rest = rest[len(own) :] if is_separate[each] else rest
    return is_separate


def _of_single_term(term: Term, node: Node) -> Contribution:
    """Return the contribution of the only term of a sum: the term is converted to the accumulator's format."""
    return Contribution(node.id, (), term, node.value, _error(node.value, [_exact(term)]), _raised(node.derivations))


def _of_term(found: Reduction, i: int, term: Term, is_separate: bool) -> Contribution:
    adder = _rounding_adder(found)
    if not is_separate or adder is None:
        value = term.x if term.y is None else None
        return Contribution(i, (), term, value, Fraction(0) if term.is_finite else None, Flags.NONE)
    value, roundings = adder.leaf(term, i)
    if term.y is not None and _exact(roundings[0].result) == _exact(value):
        value = roundings[0].result  # the accumulator keeps this value: show it in the format of products
    return Contribution(i, (), term, value, _error(value, [_exact(term)]), _raised(roundings))


def _raised(derivations: Sequence[Derivation]) -> Flags:
    return reduce(or_, (each.flags for each in derivations), Flags.NONE)


def _exact(x: Datum | Term | None) -> Fraction | None:
    return x.exact.as_fraction() if x is not None and x.is_finite else None


def _error(value: Datum, given: list[Fraction | None]) -> Fraction | None:
    numbers = [each for each in given if each is not None]
    if len(numbers) < len(given) or not value.is_finite:
        return None
    return value.exact.as_fraction() - sum(numbers, Fraction(0))
