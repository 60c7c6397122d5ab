"""The pages of `show` that compare: one value rounded in every direction, or one code read in several formats."""

from __future__ import annotations

from floatlab.numbers import Datum, Derivation
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.dialects import DIALECTS
from floatlab.page.datum import fields_of
from floatlab.page.model import Page, Role, Span, Table, heading, hint, line
from floatlab.page.words import brief, error_words, flags_line, operand_text


def directions_table(derivations: list[Derivation]) -> Page:
    """Return the page that compares one value rounded in every direction."""
    rows = []
    for each in derivations:
        code, error = Span(hexadecimal_code(each.result), Role.CODE), error_words(each).removeprefix("error ")
        flags = flags_line(each.flags) if each.flags else line("exact")
        rows.append((each.context.rounding.value, code, brief(each.result), error, flags))
    fmt = derivations[0].result.format
    title = f"{operand_text(derivations[0])} in {fmt.name}, rounded in {len(rows)} directions"
    seed = derivations[0].context.seed
    drawn = hint(f"SR used seed {seed}; with another seed, the result may differ")
    return Page((heading(title), Table(("", "code", "value", "error", "flags"), rows), drawn), title)


def dialects_table(data: list[Datum], text: str, title: str) -> Page:
    """Return the page that compares the meanings of one code in several formats."""
    rows = []
    for datum in data:
        bits = " ".join(bits for _, _, bits in fields_of(datum))
        rows.append((datum.format.name, bits, Span(brief(datum), Role.VALUE), datum.number_class.value))
    title = f"{text} in {title}"
    table = Table(("format", "bits", "value", "class"), rows)
    names = ", ".join(dialect.name for dialect in DIALECTS if any(dialect.covers(datum.format) for datum in data))
    rules = (hint(f"rules of processors and libraries for these formats, with --as: {names}"),) if names else ()
    return Page((heading(title), table, *rules), title)


def with_spare_classes(page: Page) -> Page:
    """Return the page of `dialects_table` for a pane of the explorer.

    If the pane is narrow, the column of classes is left out.
    """
    blocks = (block.replace(optional=(3,)) if isinstance(block, Table) else block for block in page.blocks)
    return page.replace(blocks=tuple(blocks))
