"""A node (one addition) of a sum, as the explorer shows it.

If a node adds several operands at once, `node_page` shows the operands and their sum. For other nodes, `roundings_at`
lists the roundings. Each rounding has a question, such as `floatlab add …`, whose answer shows the rounding step by
step.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from floatlab.numbers import Datum, Derivation
from floatlab.numbers.datum import shortest
from floatlab.page.datum import coded
from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, Table, heading
from floatlab.page.sums import decimal, machine_rows, signed
from floatlab.page.words import counted
from floatlab.record import Record
from floatlab.reduce import Adder, Compensated, Reduction, TensorCore, Term
from floatlab.verbs.arithmetic.page import expression
from floatlab.verbs.question import Question, code_of

_DIGITS = 12
_VERBS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "sqrt": "sqrt", "fma": "fma",
    "convert": "show",
}  # fmt: skip


def node_page(found: Reduction, id: int) -> Page:
    """Return the page of the node with this id.

    >>> from floatlab import sum
    >>> from floatlab.page.text_layout import to_text
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
    node, core, n = found.nodes[id - len(found)], found.adder, len(found)
    values: list[Term | Datum] = [*found.terms, *(each.value for each in found.nodes)]
    numbers = {f"x{each}" if each < n else str(each): values[each] for each in node.arguments}
    title = f"node {id} adds {counted(len(numbers), 'number')} at once: {shortest(node.value)}"
    blocks: list[Block] = [heading(title), *machine_rows(found.machine)]
    finite = all(each.is_finite for each in numbers.values())
    if isinstance(core, TensorCore) and finite and core.sum_bits is None:
        blocks += _aligned(core, numbers)
    else:
        once = f"added exactly, and rounded once ({core.context.rounding.value})"
        blocks.append(Note("added by the rules of the hardware model" if isinstance(core, TensorCore) else once))
        blocks += [Gap(), Table(("id", "number"), [(name, _number(x)) for name, x in numbers.items()]), Gap()]
    result = Row("result", coded(node.value, shortest(node.value)))
    if not finite:
        return Page((*blocks, result), title)
    exact = sum((each.exact.as_fraction() for each in numbers.values()), Fraction(0))
    blocks += [Row("exact", decimal(exact, 20)), result]
    if node.value.is_finite:
        error = node.value.exact.as_fraction() - exact
        blocks.append(Row("error", f"{signed(error / node.value.ulp.as_fraction())} ulp" if error else "0"))
    return Page(tuple(blocks), title)


def _aligned(core: TensorCore, numbers: dict[str, Term | Datum]) -> list[Block]:
    """Return rows with the numbers of a node, truncated to multiples of a common unit."""
    top, left = core.aligned([*numbers.values()])
    unit = top - core.fraction_bits
    rows = []
    for (name, x), kept in zip(numbers.items(), left, strict=True):
        lost = x.exact.as_fraction() - kept * Fraction(2) ** unit
        cut = Span(decimal(lost, 6), Role.LOST) if lost else Span("nothing", Role.HINT)
        rows.append((name, _number(x), f"{kept:,}", cut))
    digits = f"truncated toward zero {core.fraction_bits} digits below it, at 2^{unit}"
    note = Note(f"aligned to the largest exponent, {top}, and {digits}")
    table = Table(("id", "number", f"× 2^{unit}", "cut off"), rows, (2,))
    return [note, Gap(), table, Gap(), Row("together", f"{sum(left):,} × 2^{unit}")]


def _number(x: Term | Datum) -> str:
    if isinstance(x, Datum):
        return shortest(x)
    words = " × ".join(map(shortest, x.factors))
    if x.y is None or not x.is_finite:
        return words
    exact = decimal(x.exact.as_fraction(), _DIGITS)
    return f"{words} {'' if exact.startswith('≈') else '= '}{exact}"


class RoundingQuestion(Record):
    """A text that describes a rounding, and the question whose answer shows the rounding step by step."""

    words: str
    question: Question


def roundings_at(found: Reduction, id: int) -> list[RoundingQuestion]:
    """Return the roundings of a node or a term, the last one first. If a node adds several operands at once, return [].

    If a term is not rounded, the list has a question for each factor of the term. Each question shows the value of its
    factor.

    >>> from floatlab import dot
    >>> from floatlab.verbs.registry import command_of
    >>> [command_of(each.question) for each in roundings_at(dot([1, 3], [0.1, 0.1], format="fp16"), 2)][:1]
    ['floatlab add bits:0x2e66@fp16 bits:0x34cc@fp16 --fp16']
    """
    if id >= len(found):
        return as_questions(found.nodes[id - len(found)].derivations)
    term = found.terms[id]
    adder = found.adder.adder if isinstance(found.adder, Compensated) else found.adder
    roundings = adder.leaf(term, id)[1] if isinstance(adder, Adder) else []
    if roundings:
        return as_questions(roundings)
    return [RoundingQuestion(code_of(x), Question("show", (code_of(x),), (x.format,))) for x in term.factors]


def as_questions(derivations: Sequence[Derivation]) -> list[RoundingQuestion]:
    """Return derivations as questions, the last one first; [] if one of them is not an operation on numbers.

    >>> from floatlab import sqrt
    >>> from floatlab.verbs.registry import command_of
    >>> command_of(as_questions([sqrt("2", format="fp16")])[0].question)
    'floatlab sqrt bits:0x4000@fp16 --fp16'
    """
    rows = []
    for each in reversed(derivations):
        verb = _VERBS.get(each.operation)
        operands = [datum for datum in each.operands if isinstance(datum, Datum)]
        if verb is None or len(operands) < len(each.operands):
            return []
        values = tuple(code_of(datum) for datum in operands)
        question = Question(verb, values, (each.result.format,), each.context)
        rows.append(RoundingQuestion(f"{expression(each)} = {shortest(each.result)}", question))
    return rows
