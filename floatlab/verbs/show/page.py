"""The pages of `show` that compare: one value in every direction, one code in several formats."""

from __future__ import annotations

from floatlab.numbers import Datum, Derivation
from floatlab.numbers.datum import hexadecimal_code
from floatlab.page.datum import fields_of
from floatlab.page.model import Page, Role, Span, Table, heading, hint, line
from floatlab.page.words import brief, error_words, flags_line, operand_text


def directions_table(derivations: list[Derivation]) -> Page:
    """Compare one value's rounding in every direction."""
    rows = tuple(
        (
            each.context.rounding.value,
            Span(hexadecimal_code(each.result), Role.CODE),
            brief(each.result),
            error_words(each).removeprefix("error "),
            flags_line(each.flags) if each.flags else line("exact"),
        )
        for each in derivations
    )
    fmt = derivations[0].result.format
    title = f"{operand_text(derivations[0])} in {fmt.name}, every direction"
    seed = derivations[0].context.seed
    return Page(
        (
            heading(title),
            Table(("", "code", "value", "error", "flags"), rows),
            hint(f"SR drew with seed {seed}; another seed may round the other way"),
        ),
        title,
    )


def dialects_table(data: list[Datum], text: str, title: str) -> Page:
    """Compare what one code means in several formats."""
    rows = tuple(
        (
            datum.format.name,
            " ".join(bits for _, _, bits in fields_of(datum)),
            Span(brief(datum), Role.VALUE),
            datum.number_class.value,
        )
        for datum in data
    )
    title = f"{text} in {title}"
    return Page((heading(title), Table(("format", "bits", "value", "class"), rows)), title)
