"""The page of `fma`: fused beside separate, with the place where they part."""

from __future__ import annotations

from floatlab.arith import Contrast
from floatlab.numbers import Derivation
from floatlab.numbers.steps import Combination, Combine, Decode, Encode, Promote, Round, Special, Step
from floatlab.views.derivations import expression, rounding_rows, step_blocks, summary
from floatlab.views.numbers import coded
from floatlab.views.page import Block, Gap, Note, Page, Pair, Role, Row, Run, line
from floatlab.views.words import equals, error_words


def _blocks(derivation: Derivation, steps: tuple[Step, ...]) -> list[Block]:
    """Return the rows of these steps."""
    return [block for i, step in enumerate(steps) for block in step_blocks(step, derivation, list(steps[:i]))]


def _first_round(steps: tuple[Step, ...]) -> int:
    """Return how many steps of the separate way make the product, its encoding included."""
    return next((i + 1 for i, step in enumerate(steps) if isinstance(step, Encode)), len(steps))


def _parting(contrast: Contrast) -> list[Block]:
    """Say where the two ways part: at the product's rounding, if that lost anything."""
    rounded, product = contrast.parting, contrast.product
    if product is None or not product.is_finite:
        return []
    if rounded is None:
        return [Row("", line(Run("the product is exact in this format: the ways do not part here", Role.HINT)))]
    moved = f"the separate way rounds the product {'up' if rounded.increment else 'down'}"
    if contrast.same:
        return [Row("", line(f"{moved} here, which does not show in the result"))]
    return [Row("", line(Run("here they part: ", Role.CHANGED), moved))]


def _opening(derivation: Derivation) -> tuple[Step, ...]:
    """Return the steps before any arithmetic: operands decoded and promoted."""
    steps = []
    for step in derivation.steps:
        if not isinstance(step, (Decode, Promote)):
            break
        steps.append(step)
    return tuple(steps)


def _separate(contrast: Contrast, steps: tuple[Step, ...]) -> list[Block]:
    """Return these steps of the separate way, from the product's rounding on."""
    derivation = contrast.separate
    end = _first_round(steps)
    first, second = steps[:end], steps[end:]
    blocks: list[Block] = []
    for step in first:
        if isinstance(step, Round):
            blocks += rounding_rows(step.rounded, derivation, step.format)
        elif isinstance(step, Special):
            blocks += step_blocks(step, derivation, [])
        elif isinstance(step, Encode):
            blocks.append(Row("product", coded(step.datum)))
    if any(isinstance(step, Encode) for step in first):
        blocks += _parting(contrast)
    rest = tuple(step for step in second if not isinstance(step, (Decode, Promote)))
    return blocks + _blocks(derivation, rest)


def contrast_page(contrast: Contrast, steps: int | None = None) -> Page:
    """Return the page of both ways; with `steps`, only the first so many of each."""
    fused, separate = contrast.fused, contrast.separate
    title = f"{expression(fused)} in {fused.result.format.name}"
    opening = _opening(fused)
    blocks: list[Block] = [Note(line(Run(title, Role.HEADING)))]
    blocks += _blocks(fused, opening)
    rest = fused.steps[len(opening) : steps]
    if rest and isinstance(rest[0], Combine) and rest[0].kind is Combination.PRODUCT:
        blocks += step_blocks(rest[0], fused, [])
        rest = rest[1:]
    left: list[Block] = [Gap(), Note(line(Run("fused: the product keeps all its digits", Role.HEADING)))]
    left += _blocks(fused, rest)
    right: list[Block] = [Gap(), Note(line(Run("separate: the product is rounded first", Role.HEADING)))]
    right += _separate(contrast, separate.steps[:steps])
    blocks += [Pair(tuple(left), tuple(right)), Gap()]
    hidden = [max(len(way.steps) - (steps or len(way.steps)), 0) for way in (fused, separate)]
    if any(hidden):
        blocks.append(Row("", line(Run(f"{hidden[0]} more steps fused, {hidden[1]} separate", Role.HINT))))
    else:
        blocks += _verdict(contrast)
    return Page(tuple(blocks), title)


def _verdict(contrast: Contrast) -> list[Block]:
    fused, separate = contrast.fused.result, contrast.separate.result
    if contrast.same:
        return [Row("together", line(Run("the same bits", Role.GOOD), " both ways: ", *coded(fused)))]

    blocks: list[Block] = [
        Row("together", line(Run("different bits", Role.BAD), ": the rounding of the product shows in the result")),
        Row("fused", coded(fused, equals(fused)), line(error_words(contrast.fused))),
        Row("separate", coded(separate, equals(separate)), line(error_words(contrast.separate))),
    ]
    if fused.is_finite and separate.is_finite:
        apart = abs(fused.ordinal - separate.ordinal)
        blocks.append(Row("", line(f"{apart} number{'s' * (apart != 1)} of the format apart")))
    return blocks


def contrast_summary(contrast: Contrast) -> Page:
    """Return both ways in two lines."""
    return Page(
        (
            Note(line("fused     ", *summary(contrast.fused))),
            Note(line("separate  ", *summary(contrast.separate))),
        ),
        expression(contrast.fused),
    )
