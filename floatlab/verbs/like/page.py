"""The page of `show --like`: what other libraries give, beside the correctly rounded datum."""

from __future__ import annotations

from floatlab.numbers import Datum, Derivation, Literal
from floatlab.numbers.datum import hexadecimal_code
from floatlab.page.model import Page, Role, Span, Table, Text, heading, hint, line
from floatlab.page.words import brief, operand_text
from floatlab.peers import Opinion, explain


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
    """Return the comparison in one format; a bare name stands for a library that is not installed."""
    result, words = ours.result, f"correctly rounded, {ours.context.rounding.value}"
    code = Span(hexadecimal_code(result), Role.CODE)
    rows: list[tuple[Text, ...]] = [(Span("floatlab", Role.VALUE), code, brief(result), words)]
    rows += [
        (each, (), (), f"not installed: pip install {each}") if isinstance(each, str) else _verdict(ours, each)
        for each in opinions
    ]
    title = f"{operand_text(ours)} in {result.format.name}"
    note = "the libraries were given the value as a Python float (binary64), as in library.type(value)"
    return Page((heading(title), Table(("", "code", "value", ""), rows), hint(note)), title)
