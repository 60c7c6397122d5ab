"""The pages of `cmp` and `toint`: how two data stand, and what integer a datum becomes."""

from __future__ import annotations

from floatlab.arith import Comparison, IntegerResult, Relation
from floatlab.formats import Format
from floatlab.numbers import Datum, Flags
from floatlab.numbers.datum import shortest
from floatlab.numbers.decimals import exact_decimal, rounded_decimal
from floatlab.numbers.steps import Rule
from floatlab.page.model import Block, Page, Role, Row, Span, Strip, heading, line, text_of
from floatlab.page.words import GLANCE, PAGE_DIGITS, flags_line, plain_error
from floatlab.verbs.arithmetic.explain.result import sentence
from floatlab.verbs.arithmetic.page import integral_rows, operand_rows

_SIGNS = {Relation.LESS: "<", Relation.EQUAL: "=", Relation.GREATER: ">", Relation.UNORDERED: "is unordered with"}

_SYMBOLIC = 60  # characters of a difference in powers of two; longer ones are rounded


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
    blocks: list[Block] = [heading(title)]
    drawn = operand_rows(comparison.operands, literals, comparison.context, shared)
    blocks += with_changes_marked(drawn) if shared else drawn
    blocks.append(Row("a is", Span(comparison.relation.value, Role.VALUE), flags_line(comparison.flags)))
    if comparison.relation is Relation.UNORDERED:
        blocks.append(Row("", "a NaN compares with nothing, not even itself (5.11)"))
    elif a != b and comparison.relation is Relation.EQUAL and shared:
        blocks.append(Row("", _equal_words(a, b)))
    elif comparison.relation is not Relation.EQUAL:
        blocks += _distance(a, b)
    return Page(tuple(blocks), title)


def _equal_words(a: Datum, b: Datum) -> str:
    """Say how two different codes of one format compare equal."""
    if a.exact != b.exact:
        return sentence(Rule.FLUSHED_INPUT)
    return "two codes for one number" if a.exact else "+0 and −0 compare equal (5.11)"


def with_changes_marked(blocks: list[Block]) -> list[Block]:
    """Put a `^` above each bit of the second operand that is not the first one's; their columns are the same."""
    first, second = (i for i, each in enumerate(blocks) if isinstance(each, Strip))
    a, b = blocks[first], blocks[second]
    assert isinstance(a, Strip)
    assert isinstance(b, Strip)
    pairs = zip(text_of(a.lines[-1]), text_of(b.lines[-1]), strict=True)
    marks = "".join(" " if left == right else "^" for left, right in pairs)
    if not marks.strip():
        return blocks
    marked = b.replace(lines=(line(Span(marks, Role.CHANGED)), *b.lines))
    return [*blocks[:second], marked, *blocks[second + 1 :]]


def _distance(a: Datum, b: Datum) -> list[Block]:
    """Say how far apart two data are that are not equal: in steps where they share a format, and exactly."""
    rows: list[Block] = []
    if a.format == b.format:
        steps = abs(a.ordinal - b.ordinal)
        words = "1 step: they are neighbours" if steps == 1 else f"{steps:,} steps from one number to the next"
        rows.append(Row("apart", words))
    if a.is_finite and b.is_finite:
        difference = a.exact - b.exact
        text = exact_decimal(difference, PAGE_DIGITS)
        if "^" in text and len(text) > _SYMBOLIC:
            text = f"≈ {rounded_decimal(difference.as_fraction())}"
        rows.append(Row("a − b", Span(text, Role.VALUE)))
    return rows


def integer_page(result: IntegerResult) -> Page:
    """Return the page of a conversion to an integer."""
    datum = result.operands[0]
    kind = f"{'signed' if result.kind.signed else 'unsigned'} {result.kind.width}-bit integer"
    literals = result.literals or (None,)
    title = f"{_named(datum, literals[0], datum.format)} to {'a' if result.kind.signed else 'an'} {kind}"
    blocks: list[Block] = [heading(title)]
    blocks += operand_rows(result.operands, literals, result.context, None)
    if result.rounded is not None:
        blocks += integral_rows(result.rounded, result.context.rounding)
    value = line(Span(str(result.value), Role.VALUE), " ", Span(result.hexadecimal_code, Role.CODE))
    blocks.append(Row(result.kind.name, value, flags_line(result.flags)))
    if Flags.INVALID in result.flags:
        words = f"no {kind} stands for it (5.8): this one is the convention of --nan {result.context.nan.value}"
        blocks.append(Row("", Span(words, Role.HINT)))
    elif datum.is_finite and (error := result.value - datum.exact.as_fraction()):
        blocks.append(Row("", f"error {plain_error(error)}"))
    return Page(tuple(blocks), title)
