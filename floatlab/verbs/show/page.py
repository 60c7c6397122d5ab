"""The pages of `show` that compare: one value in every direction, one code in several formats."""

from __future__ import annotations

from floatlab.numbers import Datum, Derivation
from floatlab.numbers.datum import hexadecimal_code
from floatlab.page.datum import field_widths
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
        (datum.format.name, " ".join(text_of_fields(datum)), Span(brief(datum), Role.VALUE), datum.number_class.value)
        for datum in data
    )
    title = f"{text} in {title}"
    return Page((heading(title), Table(("format", "bits", "value", "class"), rows)), title)


def text_of_fields(datum: Datum) -> list[str]:
    """Return the bits of each field."""
    bits, taken, parts = f"{datum.code:0{datum.format.width}b}", 0, []
    for _, _, width in field_widths(datum.format):
        parts.append(bits[taken : taken + width])
        taken += width
    return parts
