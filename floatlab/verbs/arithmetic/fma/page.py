"""The page of `fma`: fused beside separate, with the place where they part."""

from __future__ import annotations

from floatlab.arith import Contrast
from floatlab.numbers import Derivation
from floatlab.numbers.steps import Combination, Combine, Decode, Encode, Promote, Round
from floatlab.page.datum import coded
from floatlab.page.model import Block, Gap, Note, Page, Pair, Role, Row, Span, heading, line, text_of
from floatlab.page.words import equals, error_words, plural
from floatlab.record import Record
from floatlab.verbs.arithmetic.explain.result import verdict_reason
from floatlab.verbs.arithmetic.page import (
    StepGroup,
    expression,
    operation_heading,
    rounding_rows,
    step_groups,
    summary,
    with_reasons,
)

FUSED = "fused: the product keeps all its digits"
SEPARATE = "separate: the product is rounded first"


class FusedAndSeparate(Record):
    """Both ways in stages: what they share, then each its own."""

    shared: tuple[StepGroup, ...]
    fused: tuple[StepGroup, ...]
    separate: tuple[StepGroup, ...]


def product_end(separate: Derivation) -> int:
    """Return how many steps of the separate way make the product, its encoding included."""
    return next((i + 1 for i, step in enumerate(separate.steps) if isinstance(step, Encode)), len(separate.steps))


def _parting(contrast: Contrast) -> list[Block]:
    """Say where the two ways part: at the product's rounding, if that lost anything."""
    rounded, product = contrast.parting, contrast.product
    if product is None or not product.is_finite:
        return []
    if rounded is None:
        return [Row("", Span("the product is exact in this format: the ways do not part here", Role.HINT))]
    moved = f"the separate way rounds the product {'up' if rounded.increment != rounded.negative else 'down'}"
    if contrast.same:
        return [Row("", f"{moved} here, which does not show in the result")]
    return [Row("", line(Span("here they part: ", Role.CHANGED), moved))]


def _opening(derivation: Derivation) -> int:
    """Return how many steps come before any arithmetic: operands decoded and promoted."""
    return next(i for i, step in enumerate(derivation.steps) if not isinstance(step, (Decode, Promote)))


def _separate(contrast: Contrast, steps: int | None) -> list[StepGroup]:
    """Return the separate way in stages, from the product's rounding on, which the product's code ends."""
    derivation, end = contrast.separate, product_end(contrast.separate)
    found: list[StepGroup] = []
    for stage in step_groups(derivation, stop=end if steps is None else min(steps, end)):
        step = derivation.steps[stage.index]
        if isinstance(step, Round):
            rows = tuple(rounding_rows(step.rounded, derivation, step.format))
            found.append(StepGroup("round product", rows, stage.index))
        elif isinstance(step, Encode):
            last = found.pop()
            rows = (*last.blocks, Row("product", coded(step.datum)), *_parting(contrast))
            found.append(StepGroup(last.name, rows, last.index))
        elif not isinstance(step, (Decode, Promote, Combine)):
            found.append(stage)
    again = next(
        (i for i, step in enumerate(derivation.steps[end:], end) if not isinstance(step, (Decode, Promote))), end
    )
    return found + step_groups(derivation, again, steps)


def fused_and_separate(contrast: Contrast, steps: int | None = None, strips: bool = True) -> FusedAndSeparate:
    """Return both ways in stages, or the first `steps` steps of each; without `strips` operands are not drawn."""
    fused = contrast.fused
    opening = _opening(fused)
    shared = step_groups(fused, stop=opening, strips=strips)
    first = fused.steps[opening]
    product = isinstance(first, Combine) and first.kind is Combination.PRODUCT
    if product and (steps is None or steps > opening):
        shared += step_groups(fused, opening, opening + 1)
    left = step_groups(fused, opening + product, steps)
    return FusedAndSeparate(tuple(shared), tuple(left), tuple(_separate(contrast, steps)))


def contrast_page(contrast: Contrast, steps: int | None = None, why: bool = False) -> Page:
    """Return the page of both ways; with `steps`, only the first so many of each; with `why`, with their reasons."""
    fused, separate = contrast.fused, contrast.separate
    found = fused_and_separate(contrast, steps)

    def rows(derivation: Derivation, shown: tuple[StepGroup, ...]) -> list[Block]:
        if why:
            return with_reasons(derivation, list(shown))
        return [block for stage in shown for block in stage.blocks]

    title = operation_heading(fused)
    blocks: list[Block] = [title, *rows(fused, found.shared)]
    blocks += [side_by_side(rows(fused, found.fused), rows(separate, found.separate)), Gap()]
    hidden = [max(len(way.steps) - (steps or len(way.steps)), 0) for way in (fused, separate)]
    if any(hidden):
        blocks.append(Row("", Span(f"{hidden[0]} more steps fused, {hidden[1]} separate", Role.HINT)))
    else:
        blocks += verdict_rows(contrast)
        blocks += [Row("why", verdict_reason(contrast))] if why else []
    return Page(tuple(blocks), text_of(title.content))


def side_by_side(fused: list[Block], separate: list[Block]) -> Pair:
    """Put the rows of the two ways beside each other, each under its title."""
    left, right = ([Gap(), heading(title)] for title in (FUSED, SEPARATE))
    return Pair((*left, *fused), (*right, *separate))


def verdict_rows(contrast: Contrast) -> list[Block]:
    """Say whether both ways end in the same bits, and how far apart they are where they do not."""
    fused, separate = contrast.fused.result, contrast.separate.result
    if contrast.same:
        return [Row("together", line(Span("the same bits", Role.GOOD), " both ways: ", *coded(fused)))]

    blocks: list[Block] = [
        Row("together", line(Span("different bits", Role.BAD), ": the rounding of the product shows in the result")),
        Row("fused", coded(fused, equals(fused)), error_words(contrast.fused)),
        Row("separate", coded(separate, equals(separate)), error_words(contrast.separate)),
    ]
    if fused.is_finite and separate.is_finite:
        apart = abs(fused.ordinal - separate.ordinal)
        blocks.append(Row("", f"{apart} {plural(apart, 'number')} of the format apart"))
    return blocks


def contrast_summary(contrast: Contrast) -> Page:
    """Return both ways in two lines."""
    return Page(
        (Note(line("fused     ", *summary(contrast.fused))), Note(line("separate  ", *summary(contrast.separate)))),
        expression(contrast.fused),
    )
