"""The pages of `cmp` and `toint`: how two data stand, and what integer a datum becomes."""

from __future__ import annotations

from floatlab.arith import Comparison, IntegerResult, Relation
from floatlab.formats import Format
from floatlab.numbers import Datum, Flags
from floatlab.numbers.decimals import shortest
from floatlab.views.derivations import integral_rows, operand_rows
from floatlab.views.page import Block, Note, Page, Role, Row, Run, line
from floatlab.views.words import GLANCE, flags_line, plain_error

_SIGNS = {Relation.LESS: "<", Relation.EQUAL: "=", Relation.GREATER: ">", Relation.UNORDERED: "is unordered with"}


def _named(datum: Datum, literal: str | None, shared: Format | None) -> str:
    word = shortest(datum) if literal is None or len(literal) > GLANCE else literal.strip()
    return word if datum.format == shared else f"{word}@{datum.format.name}"


def comparison_page(comparison: Comparison) -> Page:
    """Return the page of a comparison."""
    a, b = comparison.operands
    literals = comparison.literals or (None, None)
    shared = a.format if a.format == b.format else None
    title = f"{_named(a, literals[0], shared)} {_SIGNS[comparison.relation]} {_named(b, literals[1], shared)}"
    title += f" in {shared.name}" if shared else ""
    blocks: list[Block] = [Note(line(Run(title, Role.HEADING)))]
    blocks += operand_rows(comparison.operands, literals, comparison.context, shared)
    blocks.append(Row("a is", line(Run(comparison.relation.value, Role.VALUE)), flags_line(comparison.flags)))
    if comparison.relation is Relation.UNORDERED:
        blocks.append(Row("", line("a NaN compares with nothing, not even itself (5.11)")))
    elif a != b and comparison.relation is Relation.EQUAL and shared:
        blocks.append(Row("", line("+0 and −0 compare equal (5.11)")))
    return Page(tuple(blocks), title)


def integer_page(result: IntegerResult) -> Page:
    """Return the page of a conversion to an integer."""
    datum = result.operands[0]
    kind = f"{'signed' if result.kind.signed else 'unsigned'} {result.kind.width}-bit integer"
    literals = result.literals or (None,)
    title = f"{_named(datum, literals[0], datum.format)} to {'a' if result.kind.signed else 'an'} {kind}"
    blocks: list[Block] = [Note(line(Run(title, Role.HEADING)))]
    blocks += operand_rows(result.operands, literals, result.context, None)
    if result.rounded is not None:
        blocks += integral_rows(result.rounded, result.context.rounding)
    value = line(Run(str(result.value), Role.VALUE), " ", Run(result.hexadecimal_code, Role.CODE))
    blocks.append(Row(result.kind.name, value, flags_line(result.flags)))
    if Flags.INVALID in result.flags:
        words = f"no {kind} stands for it (5.8): this one is the convention of --nan {result.context.nan.value}"
        blocks.append(Row("", line(Run(words, Role.HINT))))
    elif datum.is_finite and (error := result.value - datum.exact.as_fraction()):
        blocks.append(Row("", line(f"error {plain_error(error)}")))
    return Page(tuple(blocks), title)
