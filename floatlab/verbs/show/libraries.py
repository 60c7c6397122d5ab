"""`show --like`: a value converted by installed libraries, compared with the correctly rounded result."""

from __future__ import annotations

from floatlab.errors import LiteralError, MissingPartError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Derivation, Literal
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.other_libraries import Opinion, ask, explain, parse_libraries
from floatlab.page.model import Page, Role, Span, Table, Text, heading, hint, line
from floatlab.page.words import brief, operand_text
from floatlab.verbs.question import Answer, answer_for, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.wire.codecs import Wire


def compare_libraries(
    literal: Literal, formats: tuple[Format, ...], context: Context, libraries: tuple[str, ...]
) -> Answer:
    """Return the answer that compares the libraries with the correctly rounded result, in each format.

    The hints name the libraries that are not installed. The exit status is 3 only if none is installed.
    """
    if isinstance(literal.value, Code):
        raise LiteralError(f"{quoted(literal.text)}: --like takes a number to round, not a code")
    libraries = parse_libraries(libraries)
    given = read_literal(literal, parse_format("binary64")).result
    found, missing = [], dict[str, str]()
    for fmt in formats:
        ours = read_literal(literal, fmt, context)
        opinions: list[Opinion | str] = []
        for library in libraries:
            try:
                opinions.append(ask(library, fmt.name, float(given)))
            except MissingPartError as error:
                missing[library] = str(error)
                opinions.append(library)
        found.append((ours, opinions))

    def page() -> Page:
        from floatlab.page.model import joined

        return joined([libraries_page(ours, opinions) for ours, opinions in found])

    def records() -> list[Wire]:
        from floatlab.wire.derivations import DATUM
        from floatlab.wire.schema import write_document

        wires = written(*(ours for ours, _ in found))()
        for wire, (ours, opinions) in zip(wires, found, strict=True):
            result = ours.result
            wire["like"] = [
                {
                    "library": each.library,
                    "version": each.version,
                    "type": each.type_name,
                    "result": None if each.code is None else write_document(DATUM, Datum(result.format, each.code)),
                    "same": None if each.code is None else each.code == result.code,
                    "explanation": None if each.code is None else explain(literal, result, each.code),
                }
                for each in opinions
                if isinstance(each, Opinion)
            ]
        return wires

    plain, hints = answer_for([ours for ours, _ in found]), tuple(missing.values())
    if len(missing) == len(libraries):
        return Answer(page, records, plain.words, plain.codes, missing=hints[0])
    return Answer(page, records, plain.words, plain.codes, hints)


def _verdict(ours: Derivation, opinion: Opinion) -> tuple[Text, ...]:
    if opinion.code is None:
        return opinion.library, (), (), "has no such type"
    theirs = Datum(ours.result.format, opinion.code)
    literal = ours.operands[0]
    assert isinstance(literal, Literal)
    words = explain(literal, ours.result, opinion.code)
    verdict = line(Span("differs", Role.BAD), f": {words}") if words else line(Span("the same bits", Role.GOOD))
    name = f"{opinion.library} {opinion.version}"
    return (line(name), line(Span(hexadecimal_code(theirs), Role.CODE)), line(brief(theirs)), verdict)


def libraries_page(ours: Derivation, opinions: list[Opinion | str]) -> Page:
    """Return the page that compares floatlab's result in one format with those of other libraries.

    `opinions` has the result of each library, or the name of a library that is not installed.
    """
    result, words = ours.result, f"correctly rounded, {ours.context.rounding.value}"
    code = Span(hexadecimal_code(result), Role.CODE)
    rows: list[tuple[Text, ...]] = [(Span("floatlab", Role.VALUE), code, brief(result), words)]
    rows += [
        (each, (), (), f"not installed: pip install {each}") if isinstance(each, str) else _verdict(ours, each)
        for each in opinions
    ]
    title = f"{operand_text(ours)} in {result.format.name}"
    note = "the libraries received the value as a Python float (binary64), as in library.type(value)"
    return Page((heading(title), Table(("", "code", "value", ""), rows), hint(note)), title)
