"""`show --like`: what installed libraries give for the same value, and who is right."""

from __future__ import annotations

from floatlab.errors import LiteralError, MissingPartError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Literal
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.page.model import Page
from floatlab.peers import Opinion, ask, explain, parse_libraries
from floatlab.verbs.question import Answer, answer_for, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.wire.codecs import Wire


def compare_libraries(
    literal: Literal, formats: tuple[Format, ...], context: Context, libraries: tuple[str, ...]
) -> Answer:
    """Answer what each library rounds a value to in each format, beside the correctly rounded datum.

    A library that is not installed is named in the hints; only where none is installed is the answer not all there.
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
        from floatlab.verbs.like.page import libraries_page

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
