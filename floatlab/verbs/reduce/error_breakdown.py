"""Divides the error of a short reduction into the rounding errors of its terms and nodes."""

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

    Only terms have a `term`. If the term is a product that is added exactly, `value` is None. If the product was
    rounded first, `value` is the rounded product, in the format of products. If the accumulator cannot represent this
    number, `value` is the number to which the accumulator's format rounds it. `error` is the difference between `value`
    and the exact sum of the operands; it is None if one of these numbers is not finite. An entry after the last node
    has the `id` None, and a `name`.
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
    """Return the entries of a reduction: the terms, the nodes, then the roundings after the last node.

    For every adder, the sum of the errors is the error of the result, if all numbers are finite. Raises
    UnsupportedError as `Reduction.nodes` does.

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
        # For most adders, only the last rounding of a node counts; for compensated sums, all of its roundings count.
        flags = _raised(node.derivations if isinstance(found.adder, Compensated) else node.derivations[-1:])
        error = _error(node.value, [given[each] for each in node.arguments])
        entries.append(Contribution(node.id, node.arguments, None, node.value, error, flags))
        given.append(_exact(node.value))
    return entries + _after(found, nodes[-1].value)


def _after(found: Reduction, last: Datum) -> list[Contribution]:
    """Return the entries after the last node: addition of the compensation, conversion to another format."""
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
    """Return the adder that can round terms before they are added; None for tensor cores."""
    adder = found.adder.adder if isinstance(found.adder, Compensated) else found.adder
    return adder if isinstance(adder, Adder) else None


def _rounded_separately(found: Reduction, terms: list[Term], nodes: list[Node]) -> list[bool]:
    """Return for each term whether it was rounded before it was added.

    If it was, the derivations of its node include this rounding.
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
    """Return the entry of a sum with a single term, which is converted to the accumulator's format."""
    return Contribution(node.id, (), term, node.value, _error(node.value, [_exact(term)]), _raised(node.derivations))


def _of_term(found: Reduction, i: int, term: Term, is_separate: bool) -> Contribution:
    adder = _rounding_adder(found)
    if not is_separate or adder is None:
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
