"""The pages of `cmp` and `toint`: how two data stand, and what integer a datum becomes."""

from __future__ import annotations

from floatlab.arith import Comparison, IntegerResult, Relation
from floatlab.numbers import Datum, Flags
from floatlab.numbers.datum import hexadecimal_code
from floatlab.views.fields import bits_strip
from floatlab.views.page import Block, Note, Page, Role, Row, Run, line
from floatlab.views.words import brief, equals, flags_line

_SIGNS = {Relation.LESS: "<", Relation.EQUAL: "=", Relation.GREATER: ">", Relation.UNORDERED: "is unordered with"}


def _operand(datum: Datum, label: str) -> Block:
    return bits_strip(datum, label, line(Run(hexadecimal_code(datum), Role.CODE), f" {equals(datum)}"), ruler=False)


def comparison_page(comparison: Comparison) -> Page:
    """Return the page of a comparison."""
    a, b = comparison.operands
    title = f"{brief(a)} {_SIGNS[comparison.relation]} {brief(b)}"
    blocks: list[Block] = [Note(line(Run(title, Role.HEADING)))]
    for name, datum in (("a", a), ("b", b)):
        label = name if a.format == b.format else f"{name} {datum.format.name}"
        blocks.append(_operand(datum, label))
    blocks.append(Row("a is", line(Run(comparison.relation.value, Role.VALUE)), flags_line(comparison.flags)))
    if comparison.relation is Relation.UNORDERED:
        blocks.append(Row("", line("a NaN compares with nothing, not even itself (5.11)")))
    elif a != b and comparison.relation is Relation.EQUAL and a.format == b.format:
        blocks.append(Row("", line("+0 and −0 compare equal (5.11)")))
    return Page(tuple(blocks), title)


def integer_page(result: IntegerResult) -> Page:
    """Return the page of a conversion to an integer."""
    datum = result.operands[0]
    kind = f"{'signed' if result.signed else 'unsigned'} {result.width}-bit integer"
    title = f"{brief(datum)} to a {kind}" if result.signed else f"{brief(datum)} to an {kind}"
    code = f"0x{result.value & ((1 << result.width) - 1):0{-(-result.width // 4)}x}"
    blocks: list[Block] = [
        Note(line(Run(title, Role.HEADING))),
        _operand(datum, datum.format.name),
        Row(
            f"round {result.context.rounding.value}",
            line(Run(str(result.value), Role.VALUE), " ", Run(code, Role.CODE)),
            flags_line(result.flags),
        ),
    ]
    if Flags.INVALID in result.flags:
        rule = result.context.nan.value
        words = f"no {kind} stands for it (5.8): this pattern is the convention of --nan {rule}"
        blocks.append(Row("", line(Run(words, Role.HINT))))
    return Page(tuple(blocks), title)
