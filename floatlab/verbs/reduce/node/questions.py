"""What happened at a node of a reduction, as questions of their own: each addition and product with all its digits."""

from __future__ import annotations

from collections.abc import Sequence

from floatlab.numbers import Datum, Derivation
from floatlab.numbers.datum import shortest
from floatlab.record import Record
from floatlab.reduce.results.reduction import Reduction
from floatlab.reduce.simulate.adders import Adder
from floatlab.reduce.simulate.compensated import Compensated
from floatlab.verbs.arithmetic.page import expression
from floatlab.verbs.question import Question, code_of

_VERBS = {
    "add": "add", "subtract": "sub", "multiply": "mul", "divide": "div", "sqrt": "sqrt", "fma": "fma",
    "convert": "show",
}  # fmt: skip


class RoundingQuestion(Record):
    """A rounding in words, and the question that it answers."""

    words: str
    question: Question


def roundings_at(found: Reduction, id: int) -> list[RoundingQuestion]:
    """Return the roundings of a node or a term by its id, the last one first; none where several are added at once.

    A term that was not rounded is a question about its value.

    >>> from floatlab import dot
    >>> from floatlab.verbs.registry import command_of
    >>> [command_of(each.question) for each in roundings_at(dot([1, 3], [0.1, 0.1], format="fp16"), 2)][:1]
    ['floatlab add bits:0x2e66@fp16 bits:0x34cc@fp16 --fp16']
    """
    if id < len(found):
        return _of_term(found, id)
    node = found.nodes[id - len(found)]
    return as_questions(node.derivations)


def _of_term(found: Reduction, id: int) -> list[RoundingQuestion]:
    term = found.terms[id]
    adder = found.adder
    if isinstance(adder, Compensated):
        adder = Adder(adder.accumulator, adder.products, False, adder.context)
    roundings = adder.leaf(term, id)[1] if isinstance(adder, Adder) else []
    if roundings:
        return as_questions(roundings)
    sides = [term.x] if term.y is None else [term.x, term.y]
    return [RoundingQuestion(code_of(each), Question("show", (code_of(each),), (each.format,))) for each in sides]


def as_questions(derivations: Sequence[Derivation]) -> list[RoundingQuestion]:
    """Return derivations as questions, the last one first; none where one of them is no operation on numbers.

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
