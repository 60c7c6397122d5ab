"""`dequantize`: writes a quantised checkpoint as plain numbers, and reports what was read."""

from __future__ import annotations

from collections import Counter

from floatlab.auditing.dequantization import Dequantization, dequantize
from floatlab.fpmode import in_default_mode
from floatlab.page.measures import bytes_text
from floatlab.page.model import Block, Page, Role, Row, Span, heading
from floatlab.page.words import counted, plural
from floatlab.verbs.question import Answer, Question, Started, plain_answer


def answer_of(found: Dequantization) -> Answer:
    """Return the answer that shows which weights were written, and how."""
    return plain_answer(found, lambda: dequantization_page(found), found.target)


@in_default_mode
def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Write the file of a question, and return the answer that describes it; raises FloatlabError."""
    source, target = question.values
    found = dequantize(
        source, target, question.option("to", "fp32"), question.option("only"),
        progress=None if started is None else lambda total: started(total, "elements"),
    )  # fmt: skip
    return [answer_of(found)]


def dequantization_page(found: Dequantization) -> Page:
    """Return the page about the written file: the conventions of the weights, and what was copied or left out."""
    title = f"{found.target}: {counted(len(found.weights), 'weight')} of {found.source} as {found.format.name}"
    blocks: list[Block] = [heading(title)]
    kinds = Counter((each.convention, each.formula, each.evidence) for each in found.weights)
    for (convention, formula, evidence), count in kinds.items():
        blocks.append(Row("weights", f"{count:,} in {convention}: {formula}", Span(f"by {evidence}", Role.HINT)))
    if not found.weights:
        blocks.append(Row("weights", "none is quantised"))
    overflows = sum(each.overflows for each in found.weights)
    if overflows:
        words = f"{overflows:,} {plural(overflows, 'number')} beyond {found.format.name} became infinite"
        blocks.append(Row("", Span(words, Role.BAD)))
    if found.unchanged:
        blocks.append(Row("copied", f"{counted(len(found.unchanged), 'other tensor')}, unchanged"))
    if found.left_out:
        blocks.append(Row("left out", f"{counted(len(found.left_out), 'tensor')} of codes and scales"))
    return Page((*blocks, Row("written", bytes_text(found.bytes))), title)
