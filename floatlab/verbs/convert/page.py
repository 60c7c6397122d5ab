"""The page of `convert`: a value rounded along a path of formats, compared with the direct rounding."""

from __future__ import annotations

from floatlab.numbers import Derivation, Special
from floatlab.numbers.derivation import Rule
from floatlab.page import words
from floatlab.page.datum import coded, datum_strip
from floatlab.page.model import Block, Page, Role, Row, Span, heading, line
from floatlab.verbs.arithmetic.page import sentence

_PAYLOADS = (
    ": a conversion quiets a NaN and keeps the leading bits of its payload; the payload of a literal is used as typed"
)
_DOUBLE_ROUNDING = (
    ": double rounding. The first rounding moved the value to, or across, a rounding boundary of the next format"
)


def _stage(derivation: Derivation) -> list[Block]:
    datum = derivation.result
    blocks: list[Block] = [datum_strip(datum, datum.format.name)]
    rounded = derivation.rounded
    if any(isinstance(step, Special) and step.rule is Rule.FLUSHED_INPUT for step in derivation.steps):
        blocks.append(Row("", sentence(Rule.FLUSHED_INPUT)))
    if rounded is None:
        blocks.append(Row("", words.operand_text(derivation), words.flags_line(derivation.flags)))
    else:
        blocks.append(Row("", words.read_line(derivation), line("from ", words.operand_text(derivation))))
        far = words.far_away(derivation)
        decided = line(far) if far and rounded.overflowed else words.decision(rounded, derivation.context)
        blocks.append(Row("", decided, words.verdict_line(derivation)))
    if replaced := words.replaced_words(derivation):
        blocks.append(Row("", Span(replaced, Role.HINT)))
    return blocks


def conversion_page(stages: list[Derivation], direct: Derivation) -> Page:
    """Return the page of a conversion: each stage, the direct rounding, and whether both give the same bits."""
    path = " → ".join(stage.result.format.name for stage in stages)
    title = f"{words.operand_text(stages[0])} through {path}"
    blocks: list[Block] = [heading(title)]
    for stage in stages:
        blocks += _stage(stage)
    result = stages[-1].result
    if len(stages) == 1:
        return Page(tuple(blocks), title)
    blocks.append(Row("directly", coded(direct.result), words.error_words(direct)))
    if direct.result == result:
        bits = Span("the same bits", Role.GOOD)
        why = "" if result.is_nan else ": rounding through the other formats changed nothing"
    else:
        bits = Span("different bits", Role.BAD)
        why = _PAYLOADS if result.is_nan and direct.result.is_nan else _DOUBLE_ROUNDING
    blocks.append(Row("path", line(bits, why)))
    return Page(tuple(blocks), title)
