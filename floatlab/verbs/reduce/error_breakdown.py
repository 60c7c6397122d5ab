"""The origin of a short reduction's error: the rounding of each term, of each node, and their errors."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import reduce
from operator import or_

from floatlab.numbers import Datum, Derivation, Flags
from floatlab.record import Record
from floatlab.reduce import Adder, Compensated, Node, Reduction, Term


class Contribution(Record):
    """A term, a node, or one of the last roundings, with its value and its rounding error.

    `term` is set for terms only. For a product, `value` is None if it enters the node exactly; if it was rounded first,
    `value` has the format of products (provided the accumulator contains it). `error` is value − exact sum of the
    operands, None if one of them is not finite. After the last node, `id` is None and `name` names the entry.
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
        """The kind of entry: term, node, or the name of an entry after the last node."""
        return "term" if self.term is not None else self.name if self.id is None else "node"


def error_contributions(found: Reduction) -> list[Contribution]:
    """Return the entries of a reduction: the terms, the nodes, then the roundings of the last sum.

    With every adder, the errors add up to the error of the result. Raises UnsupportedError as `Reduction.nodes` does.

    >>> from floatlab import dot
    >>> [(each.id, str(each.error)) for each in error_contributions(dot([1, 3], [0.1, 0.1], format="e4m3"))]
    [(0, '0'), (1, '1/128'), (2, '-1/128')]
    """
    terms, nodes = found.terms, found.nodes
    if len(terms) == 1:
        return [_only(terms[0], nodes[0]), *_after(found, nodes[0].value)]
    alone = _alone(found, terms, nodes)
    entries = [_of_term(found, i, term, alone[i]) for i, term in enumerate(terms)]
    given = [_exact(each.term if each.value is None else each.value) for each in entries]
    for node in nodes:
        # For most adders, the node's own rounding is the last one; for compensated sums, all of them are.
        flags = _raised(node.derivations if isinstance(found.adder, Compensated) else node.derivations[-1:])
        error = _error(node.value, [given[each] for each in node.arguments])
        entries.append(Contribution(node.id, node.arguments, None, node.value, error, flags))
        given.append(_exact(node.value))
    return entries + _after(found, nodes[-1].value)


def _after(found: Reduction, last: Datum) -> list[Contribution]:
    """Return the entries after the last node: adding the compensation, and conversion to another format."""
    entries = []
    if isinstance(found.adder, Compensated) and found.accumulated != last:
        error = _error(found.accumulated, [_exact(last)])
        entries.append(Contribution(None, (), None, found.accumulated, error, Flags.NONE, "compensated"))
    if found.last_rounding is not None:
        error = _error(found.result, [_exact(found.accumulated)])
        flags, name = found.last_rounding.flags, found.result.format.name
        entries.append(Contribution(None, (), None, found.result, error, flags, f"to {name}"))
    return entries


def _rounded(found: Reduction) -> Adder | None:
    """Return the adder that rounds terms separately; None if there is none."""
    adder = found.adder.adder if isinstance(found.adder, Compensated) else found.adder
    return adder if isinstance(adder, Adder) else None


def _alone(found: Reduction, terms: list[Term], nodes: list[Node]) -> list[bool]:
    """Mark the terms rounded before they were added: those whose roundings are among their node's roundings."""
    adder = _rounded(found)
    if adder is None or not adder.fma:
        return [adder is not None] * len(terms)
    alone = [False] * len(terms)
    for node in nodes:
        rest = node.derivations[:-1]
        for each in node.arguments:
            if each < len(terms):
                own = tuple(adder.leaf(terms[each], each)[1])
                alone[each] = rest[: len(own)] == own
                rest = rest[len(own) :] if alone[each] else rest
    return alone


def _only(term: Term, node: Node) -> Contribution:
    """Return the entry of a single term, as it was read into the accumulator's format."""
    return Contribution(node.id, (), term, node.value, _error(node.value, [_exact(term)]), _raised(node.derivations))


def _of_term(found: Reduction, i: int, term: Term, alone: bool) -> Contribution:
    adder = _rounded(found)
    if not alone or adder is None:
        value = term.x if term.y is None else None
        return Contribution(i, (), term, value, Fraction(0) if term.is_finite else None, Flags.NONE)
    value, roundings = adder.leaf(term, i)
    if term.y is not None and _exact(roundings[0].result) == _exact(value):
        value = roundings[0].result  # keep the format of products if the accumulator contains the value
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
