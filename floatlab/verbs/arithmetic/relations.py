"""The pages of `cmp`, `toint` and `fma`. The page of `fma` compares fma with multiply-then-add."""

from __future__ import annotations

from floatlab.arith import Comparison, Contrast, IntegerResult, Relation
from floatlab.formats import Format
from floatlab.numbers import Datum, Derivation, Flags
from floatlab.numbers.datum import shortest
from floatlab.numbers.derivation import Combination, Combine, Decode, Encode, Promote, Round, Rule
from floatlab.numbers.printing import exact_decimal, rounded_decimal
from floatlab.page.datum import coded
from floatlab.page.model import Block, Gap, Note, Page, Pair, Role, Row, Span, Strip, heading, line, text_of
from floatlab.page.words import GLANCE, PAGE_DIGITS, equals, error_words, flags_line, plain_error, plural
from floatlab.verbs.arithmetic import page as pages
from floatlab.verbs.arithmetic.page import StepGroup, rounding_rows, sentence, step_groups

Result = Derivation | Contrast | Comparison | IntegerResult  # the results that an operation can have

_SIGNS = {Relation.LESS: "<", Relation.EQUAL: "=", Relation.GREATER: ">", Relation.UNORDERED: "is unordered with"}

_SYMBOLIC = 60  # a difference is rounded if its text in powers of two is longer than this


def page_of(result: Result, steps: int | None = None, brief: bool = False, why: bool = False) -> Page:
    """Return the page of an operation's result."""
    match result:
        case Derivation():
            return pages.summary_page([result]) if brief else pages.derivation_page(result, steps, why)
        case Contrast():
            return contrast_summary(result) if brief else contrast_page(result, steps, why)
        case Comparison():
            return comparison_page(result)
    return integer_page(result)


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
    drawn = pages.operand_rows(comparison.operands, literals, comparison.context, shared)
    blocks += with_changes_marked(drawn) if shared else drawn
    blocks.append(Row("a is", Span(comparison.relation.value, Role.VALUE), flags_line(comparison.flags)))
    if comparison.relation is Relation.UNORDERED:
        blocks.append(Row("", "a NaN is unordered with every value, even itself (5.11)"))
    elif a != b and comparison.relation is Relation.EQUAL and shared:
        blocks.append(Row("", _equal_words(a, b)))
    elif comparison.relation is not Relation.EQUAL:
        blocks += _distance(a, b)
    return Page(tuple(blocks), title)


def _equal_words(a: Datum, b: Datum) -> str:
    """Explain why two different codes of one format compare equal."""
    if a.exact != b.exact:
        return sentence(Rule.FLUSHED_INPUT)
    return "two codes of the same number" if a.exact else "+0 and −0 compare equal (5.11)"


def with_changes_marked(blocks: list[Block]) -> list[Block]:
    """Mark with `^` the bits in which the second operand differs from the first."""
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
    """Return rows with the difference of two unequal operands.

    The difference is given as a number. If both operands have the same format, it is also given in steps between
    adjacent numbers of the format.
    """
    rows: list[Block] = []
    if a.format == b.format:
        steps = abs(a.ordinal - b.ordinal)
        words = "1 step: they are neighbours" if steps == 1 else f"{steps:,} steps between adjacent numbers"
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
    blocks += pages.operand_rows(result.operands, literals, result.context, None)
    if result.rounded is not None:
        blocks += pages.integral_rows(result.rounded, result.context)
    value = line(Span(str(result.value), Role.VALUE), " ", Span(result.hexadecimal_code, Role.CODE))
    blocks.append(Row(result.kind.name, value, flags_line(result.flags)))
    if Flags.INVALID in result.flags:
        words = f"no {kind} represents it (5.8): the result follows the convention of --nan {result.context.nan.value}"
        blocks.append(Row("", Span(words, Role.HINT)))
    elif datum.is_finite and (error := result.value - datum.exact.as_fraction()):
        blocks.append(Row("", f"error {plain_error(error)}"))
    return Page(tuple(blocks), title)


def product_end(separate: Derivation) -> int:
    """Return the number of steps of multiply-then-add up to the first encoding, which is that of the product."""
    return next((i + 1 for i, step in enumerate(separate.steps) if isinstance(step, Encode)), len(separate.steps))


def _first_difference(contrast: Contrast) -> list[Block]:
    """Describe where the two computations begin to differ: at the rounding of the product, unless this is exact.

    The list is empty if there is no product, or if the product is not finite.
    """
    rounded, product = contrast.product_rounding, contrast.product
    if product is None or not product.is_finite:
        return []
    if rounded is None:
        return [Row("", Span("the product is exact in this format: both are the same so far", Role.HINT))]
    moved = f"separate rounds the product {'up' if rounded.increment != rounded.negative else 'down'}"
    if contrast.same:
        return [Row("", f"{moved} here; the results are the same nevertheless")]
    return [Row("", line(Span("here they differ: ", Role.CHANGED), moved))]


def _opening(derivation: Derivation, start: int = 0) -> int:
    """Return the index of the first step, at `start` or later, that does not decode or promote an operand."""
    steps = enumerate(derivation.steps[start:], start)
    return next((i for i, step in steps if not isinstance(step, Decode | Promote)), start)


def _separate(contrast: Contrast, steps: int | None) -> list[StepGroup]:
    """Return the groups of steps of multiply-then-add, from the rounding of the product to `steps` (None: the end)."""
    derivation, end = contrast.separate, product_end(contrast.separate)
    found: list[StepGroup] = []
    for stage in step_groups(derivation, stop=end if steps is None else min(steps, end)):
        step = derivation.steps[stage.index]
        if isinstance(step, Round):
            rows = tuple(rounding_rows(step.rounded, derivation, step.format))
            found.append(StepGroup("round product", rows, stage.index))
        elif isinstance(step, Encode):
            last = found.pop()
            rows = (*last.blocks, Row("product", coded(step.datum)), *_first_difference(contrast))
            found.append(StepGroup(last.name, rows, last.index))
        elif not isinstance(step, (Decode, Promote, Combine)):
            found.append(stage)
    return found + step_groups(derivation, _opening(derivation, end), steps)


def fused_and_separate(
    contrast: Contrast, steps: int | None = None, draw_bits: bool = True
) -> tuple[list[StepGroup], list[StepGroup], list[StepGroup]]:
    """Return three lists of groups of steps: those in both computations, in fma only, and in multiply-then-add only.

    `steps` limits the number of steps of each computation. `draw_bits` says whether to draw the bits of the operands.
    """
    fused = contrast.fused
    opening = _opening(fused)
    shared = step_groups(fused, stop=opening, draw_bits=draw_bits)
    first = fused.steps[opening]
    product = isinstance(first, Combine) and first.kind is Combination.PRODUCT
    if product and (steps is None or steps > opening):
        shared += step_groups(fused, opening, opening + 1)
    return shared, step_groups(fused, opening + product, steps), _separate(contrast, steps)


def contrast_page(contrast: Contrast, steps: int | None = None, why: bool = False) -> Page:
    """Return the page of fma and multiply-then-add.

    `steps` limits the number of steps that are shown for each computation. `why` adds the reason for each step.
    """
    fused, separate = contrast.fused, contrast.separate
    shared, left, right = fused_and_separate(contrast, steps)
    title, rows = pages.operation_heading(fused), pages.stage_rows
    sides = side_by_side(rows(fused, left, why), rows(separate, right, why))
    blocks: list[Block] = [title, *rows(fused, shared, why), sides, Gap()]
    hidden = [max(len(way.steps) - (steps or len(way.steps)), 0) for way in (fused, separate)]
    if any(hidden):
        blocks.append(Row("", Span(f"{hidden[0]} more steps fused, {hidden[1]} separate", Role.HINT)))
    else:
        blocks += verdict_rows(contrast)
        if why:
            from floatlab.verbs.arithmetic.outcomes import verdict_reason

            blocks.append(Row("why", verdict_reason(contrast)))
    return Page(tuple(blocks), text_of(title.content))


def side_by_side(fused: list[Block], separate: list[Block]) -> Pair:
    """Return the rows of fma and of multiply-then-add side by side, under titles."""
    titles = "fused: the product keeps all its digits", "separate: the product is rounded first"
    left, right = ([Gap(), heading(title)] for title in titles)
    return Pair((*left, *fused), (*right, *separate))


def verdict_rows(contrast: Contrast) -> list[Block]:
    """Return rows that compare the results of fma and multiply-then-add: their bits, and how far apart they are."""
    fused, separate = contrast.fused.result, contrast.separate.result
    if contrast.same:
        return [Row("together", line(Span("the same bits", Role.GOOD), " both ways: ", *coded(fused)))]

    blocks: list[Block] = [
        Row("together", line(Span("different bits", Role.BAD), ": the rounding of the product changed the result")),
        Row("fused", coded(fused, equals(fused)), error_words(contrast.fused)),
        Row("separate", coded(separate, equals(separate)), error_words(contrast.separate)),
    ]
    if fused.is_finite and separate.is_finite:
        apart = abs(fused.ordinal - separate.ordinal)
        blocks.append(Row("", f"{apart} {plural(apart, 'number')} of the format apart"))
    return blocks


def contrast_summary(contrast: Contrast) -> Page:
    """Return a summary of fma and multiply-then-add in two lines."""
    ways = (("fused     ", contrast.fused), ("separate  ", contrast.separate))
    return Page(tuple(Note(line(name, *pages.summary(way))) for name, way in ways), pages.expression(contrast.fused))
