"""The page of `show --like`: what other libraries give, beside the correctly rounded datum."""

from __future__ import annotations

from floatlab.numbers import Context, Datum, Derivation, convert
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.literals import Literal
from floatlab.numbers.reading import read_literal
from floatlab.peers import Opinion
from floatlab.views.page import Line, Note, Page, Role, Run, Table, line
from floatlab.views.words import brief, operand_text


def _explained(ours: Derivation, theirs: Datum, given: Datum) -> str:
    """Say which other rounding of the same value gives a library's answer, where one does."""
    if theirs.is_nan and ours.result.is_nan:
        return "a NaN with other bits"
    fmt, context = ours.result.format, Context()
    routes = (
        ("rounds to nearest", read_again(ours, context)),
        ("rounds twice: to binary64, then here", convert(given, fmt, context)),
        ("rounds through binary32", convert(convert(given, "binary32").result, fmt, context)),
        ("saturates", convert(given, fmt, Context(overflow="saturate"))),
        ("cuts off", convert(given, fmt, Context(rounding="RTZ"))),
    )
    return next((words for words, other in routes if other.result == theirs), "another value")


def read_again(ours: Derivation, context: Context) -> Derivation:
    """Return what was asked, rounded to nearest instead."""
    operand = ours.operands[0]
    assert isinstance(operand, Literal)
    return read_literal(operand, ours.result.format, context)


def _verdict(ours: Derivation, opinion: Opinion, given: Datum) -> tuple[Line, ...]:
    if opinion.code is None:
        return (line(opinion.library), (), (), line("has no such type"))
    theirs = Datum(ours.result.format, opinion.code)
    if theirs == ours.result:
        verdict = line(Run("the same bits", Role.GOOD))
    else:
        verdict = line(Run("differs", Role.BAD), f": {_explained(ours, theirs, given)}")
    name = f"{opinion.library} {opinion.version}"
    return (line(name), line(Run(hexadecimal_code(theirs), Role.CODE)), line(brief(theirs)), verdict)


def libraries_page(ours: Derivation, opinions: list[Opinion | str], given: Datum) -> Page:
    """Return the comparison in one format; a bare name stands for a library that is not installed."""
    result = ours.result
    rows: list[tuple[Line, ...]] = [
        (
            line(Run("floatlab", Role.VALUE)),
            line(Run(hexadecimal_code(result), Role.CODE)),
            line(brief(result)),
            line(f"correctly rounded, {ours.context.rounding.value}"),
        )
    ]
    for opinion in opinions:
        if isinstance(opinion, str):
            rows.append((line(opinion), (), (), line(f"not installed: pip install {opinion}")))
        else:
            rows.append(_verdict(ours, opinion, given))
    title = f"{operand_text(ours)} in {result.format.name}"
    note = "the libraries were given the value as a Python float (binary64), as in library.type(value)"
    return Page(
        (
            Note(line(Run(title, Role.HEADING))),
            Table(("", "code", "value", ""), tuple(rows)),
            Note(line(Run(note, Role.HINT))),
        ),
        title,
    )
