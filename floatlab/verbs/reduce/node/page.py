"""One node of a reduction that adds several numbers at once: what each of them brings, and what is left of it."""

from __future__ import annotations

from fractions import Fraction

from floatlab.numbers import Datum
from floatlab.numbers.datum import shortest
from floatlab.page.datum import coded
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Table, heading, line
from floatlab.page.sums import decimal, machine_rows, signed
from floatlab.page.words import counted
from floatlab.reduce.results.reduction import Reduction
from floatlab.reduce.simulate.adders import Node, Term
from floatlab.reduce.simulate.tensor_cores import TensorCore

_DIGITS = 12


def node_page(found: Reduction, id: int) -> Page:
    """Return the page of a node by its id.

    >>> from floatlab import sum
    >>> from floatlab.page.layout import to_text
    >>> print(to_text(node_page(sum([1.5, 2**-12, 3], "fused(4)", format="fp16"), 3)), end="")
      node 3 adds 3 numbers at once: 4.5
      added exactly, and rounded once (RNE)
    <BLANKLINE>
      id  number
      x0  1.5
      x1  0.0002441
      x2  3
    <BLANKLINE>
      exact        4.500244140625
      result       0x4480 4.5
      error        −0.0625 ulp
    """
    node = found.nodes[id - len(found)]
    terms = found.terms
    given: list[Term | Datum] = [
        terms[each] if each < len(found) else found.nodes[each - len(found)].value for each in node.arguments
    ]
    title = f"node {id} adds {counted(len(given), 'number')} at once: {shortest(node.value)}"
    core = found.adder if isinstance(found.adder, TensorCore) else None
    blocks: list[Block] = [heading(title), *machine_rows(found.machine)]
    finite = all(each.is_finite for each in given)
    cut = core if core is not None and finite and core.sum_bits is None else None
    if cut is not None:
        blocks += _aligned(cut, node, given, len(found))
    else:
        rounding = found.adder.context.rounding.value
        how = f"added exactly, and rounded once ({rounding})" if core is None else "added as the model says"
        blocks.append(Note(how))
        rows = tuple((_name(each, len(found)), _number(x)) for each, x in zip(node.arguments, given, strict=True))
        blocks += [Gap(), Table(("id", "number"), rows), Gap()]
    return Page((*blocks, *_outcome(node, given if finite else None)), title)


def _aligned(core: TensorCore, node: Node, given: list[Term | Datum], terms: int) -> list[Block]:
    """Show each number in the units that all of them are cut to."""
    top, left = core.aligned(given)
    unit = top - core.fraction_bits
    bits = core.fraction_bits
    words = f"brought to the largest exponent, {top}, and cut toward zero {bits} digits below it, at 2^{unit}"
    rows = []
    for each, x, kept in zip(node.arguments, given, left, strict=True):
        lost = x.exact.as_fraction() - Fraction(kept) * Fraction(2) ** unit
        cut = line(Span("nothing", Role.HINT)) if not lost else line(Span(decimal(lost, 6), Role.LOST))
        rows.append((_name(each, terms), _number(x), f"{kept:,}", cut))
    total = sum(left)
    return [
        Note(words),
        Gap(),
        Table(("id", "number", f"× 2^{unit}", "cut off"), rows, (2,)),
        Gap(),
        Row("together", f"{total:,} × 2^{unit}"),
    ]


def _name(id: int, terms: int) -> Line:
    return line(f"x{id}" if id < terms else str(id))


def _number(x: Term | Datum) -> str:
    if isinstance(x, Datum):
        return shortest(x)
    if x.y is not None:
        exact = decimal(x.exact.as_fraction(), _DIGITS) if x.is_finite else ""
        equals = f" {'' if exact.startswith('≈') else '= '}{exact}" if exact else ""
        return f"{shortest(x.x)} × {shortest(x.y)}{equals}"
    return shortest(x.x)


def _outcome(node: Node, given: list[Term | Datum] | None) -> list[Block]:
    """Compare the node's value with the exact sum of what it was given."""
    rows: list[Block] = []
    exact = None
    if given is not None:
        exact = sum((each.exact.as_fraction() for each in given), Fraction(0))
        rows.append(Row("exact", decimal(exact, 20)))
    rows.append(Row("result", coded(node.value, shortest(node.value))))
    if exact is not None and node.value.is_finite:
        error = node.value.exact.as_fraction() - exact
        ulps = f"{signed(error / node.value.ulp.as_fraction())} ulp" if error else "0"
        rows.append(Row("error", ulps))
    return rows
