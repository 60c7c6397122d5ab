"""The page of `convert`: a value rounded along a path of formats, beside the direct rounding."""

from __future__ import annotations

from floatlab.numbers import Derivation
from floatlab.numbers.datum import hexadecimal_code
from floatlab.views.fields import bits_strip
from floatlab.views.numbers import coded
from floatlab.views.page import Block, Note, Page, Role, Row, Run, line
from floatlab.views.words import decision, equals, error_words, far_away, flags_line, operand_text, read_line


def _stage(derivation: Derivation) -> list[Block]:
    datum = derivation.result
    label = datum.format.name
    blocks: list[Block] = [
        bits_strip(datum, label, line(Run(hexadecimal_code(datum), Role.CODE), f" {equals(datum)}"), ruler=False)
    ]
    rounded = derivation.rounded
    flags = flags_line(derivation.flags)
    if rounded is None:
        return [*blocks, Row("", line(operand_text(derivation)), flags)]
    error = error_words(derivation)
    words = line(error, ", " * bool(error and derivation.flags), flags if derivation.flags else ())
    far = far_away(derivation)
    blocks.append(Row("", read_line(derivation), line("from ", operand_text(derivation))))
    blocks.append(
        Row("", line(far) if far and rounded.overflowed else decision(rounded, derivation.context.rounding), words)
    )
    return blocks


def conversion_page(stages: list[Derivation], direct: Derivation) -> Page:
    """Return the page of a conversion: each stage, the direct rounding, and whether they agree."""
    path = " → ".join(stage.result.format.name for stage in stages)
    title = f"{operand_text(stages[0])} through {path}"
    blocks: list[Block] = [Note(line(Run(title, Role.HEADING)))]
    for stage in stages:
        blocks += _stage(stage)
    result = stages[-1].result
    if len(stages) == 1:
        return Page(tuple(blocks), title)
    blocks.append(Row("directly", coded(direct.result), line(error_words(direct))))
    if direct.result == result and result.is_nan:
        same = line(Run("the same bits", Role.GOOD))
    elif direct.result == result:
        same = line(Run("the same bits", Role.GOOD), ": rounding on the way did no harm")
    elif result.is_nan and direct.result.is_nan:
        same = line(
            Run("different bits", Role.BAD),
            ": a conversion quiets a NaN and keeps its payload from the left; a literal's payload is taken as typed",
        )
    else:
        same = line(
            Run("different bits", Role.BAD),
            ": double rounding. The first rounding moved the value onto, or across, a point where the next one turns",
        )
    blocks.append(Row("path", same))
    return Page(tuple(blocks), title)
