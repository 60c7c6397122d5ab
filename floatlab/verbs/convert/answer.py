"""`convert`: a value rounded along a path of formats."""

from __future__ import annotations

from floatlab.errors import FormatError, LiteralError, quoted
from floatlab.formats import Format
from floatlab.numbers import Context, Derivation, convert, parse_literal
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.page.model import Page
from floatlab.verbs.convert.conversion import Conversion
from floatlab.verbs.question import Answer, Question, Started, answer_for, rules_of, written


def convert_through(
    text: str, path: tuple[Format, ...], context: Context | None = None, *, bits: bool = False, dialect: str = ""
) -> Answer:
    """Return the answer for a value rounded along a path of formats, compared with the direct rounding.

    A code (`bits:…`) belongs to the first format of the path. `dialect` names the rules of a processor or library.

    >>> from floatlab import parse_format
    >>> answer = convert_through("1.00048828126", (parse_format("fp32"), parse_format("fp16")))
    >>> answer.codes(), answer.records()[0]["same"]
    (['0x3c00'], False)
    """
    rules = rules_of(dialect, context or Context())
    if not path:
        raise FormatError("convert needs a path: --through fp32,fp16 names the formats in order")
    if "@" in text:
        raise LiteralError(f"{quoted(text)}: give the formats of convert with --through, not as VALUE@FORMAT")
    literal = parse_literal(text, bits)
    stages: list[Derivation] = [read_literal(literal, path[0], rules(path[0]))]
    for format in path[1:]:
        stages.append(convert(stages[-1].result, format, rules(format)))
    if isinstance(literal.value, Code):
        direct = convert(stages[0].result, path[-1], rules(path[-1]))
    else:
        direct = read_literal(literal, path[-1], rules(path[-1]))

    def page() -> Page:
        from floatlab.verbs.convert.page import conversion_page

        return conversion_page(stages, direct)

    last = answer_for([stages[-1]])
    return Answer(page, written(Conversion(tuple(stages), direct)), last.words, last.codes)


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question, one value after another."""
    options = dict(question.options)
    return [convert_through(value, question.formats, question.context, **options) for value in question.values]
