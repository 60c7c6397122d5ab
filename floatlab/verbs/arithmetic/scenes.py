"""An operation as an animation: a scene for each step, with all rows so far and the reason for the new rows."""

from __future__ import annotations

from floatlab.arith import Comparison, Contrast
from floatlab.numbers import Datum, Derivation, Flags
from floatlab.numbers.derivation import Align, Combination, Combine, Integral, Round, Special, Step
from floatlab.page.datum import significand_row
from floatlab.page.model import Block, Fresh, Gap, Line, Page, Row, Strip, line, text_of
from floatlab.verbs.arithmetic import relations
from floatlab.verbs.arithmetic.outcomes import comparison_reason, integer_reason, verdict_reason
from floatlab.verbs.arithmetic.page import (
    TAIL,
    StepGroup,
    align_blocks,
    closing_rows,
    operation_heading,
    step_groups,
)
from floatlab.verbs.arithmetic.reasons import reason
from floatlab.verbs.question import Scene

Blocks = tuple[Block, ...]
_PRODUCT_ROUNDED = "round product"


def scenes_of(result: relations.Result, *, draw_bits: bool = True) -> tuple[Scene, ...]:
    """Return the scenes of an operation's result. The last scene has the whole page.

    For `fma`, each scene advances both fma and multiply-then-add; the last scene compares their results. `draw_bits`
    says whether to draw the bits of the operands.

    >>> from floatlab.arith import add, contrast, fma, multiply_then_add
    >>> film = scenes_of(add("1.125", "0.12457275390625", "fp16"))
    >>> [(scene.name, len(scene.frames), scene.flags.names) for scene in film]
    [('operands', 0, []), ('align', 4, []), ('sum', 0, []), ('round', 0, ['inexact']), ('result', 0, ['inexact'])]
    >>> values = ("0.1", "10", "-1", "fp16")
    >>> [scene.name for scene in scenes_of(contrast(fma(*values), multiply_then_add(*values)))]
    ['operands', 'product', 'round product', 'align', 'sum', 'rule', 'round', 'result', 'verdict']
    """
    match result:
        case Derivation():
            stages = step_groups(result, draw_bits=draw_bits)
            return tuple(_scenes(result, stages, _distinct([stage.name for stage in stages]), draw_bits))
        case Contrast():
            return _contrast_scenes(result, draw_bits)
        case Comparison():
            name, why = "compare", comparison_reason(result)
        case _:
            name, why = "to integer", integer_reason(result)
    return (_whole_scene(name, relations.page_of(result), why, result.flags, draw_bits),)


def _scenes(derivation: Derivation, stages: list[StepGroup], names: list[str], draw_bits: bool) -> list[Scene]:
    """Return a scene for each group of steps of a derivation; `names` are the names of the scenes."""
    seen, title = _opening(derivation, draw_bits), text_of(operation_heading(derivation).content)
    scenes = []
    for stage, name in zip(stages, names, strict=False):
        frames = tuple(Page((*seen, Fresh(each)), title) for each in _frames(derivation, stage))
        last = tuple(closing_rows(derivation)) if stage is stages[-1] else ()
        fields = () if draw_bits or stage.name != "operands" else _fields(derivation)
        page = Page((*seen, *_fresh((*fields, *stage.blocks, *last))), title)
        seen = (*seen, *stage.blocks)
        why, raised = reason(derivation, stage.index), _raised(derivation, stage.index)
        scenes.append(Scene(name, page, why, raised, frames, ((derivation, stage.index),)))
    return scenes


def _fields(derivation: Derivation) -> Blocks:
    """Return the significands and the exponents of the operands, for a view that draws the bits itself."""
    named = zip("abc", derivation.operands, strict=False)
    return tuple(significand_row(datum, name) for name, datum in named if isinstance(datum, Datum) and datum.is_finite)


def _opening(derivation: Derivation, draw_bits: bool) -> Blocks:
    return (operation_heading(derivation),) if draw_bits else ()


def _fresh(blocks: Blocks) -> Blocks:
    return (Fresh(blocks),) if blocks else ()


def _distinct(names: list[str]) -> list[str]:
    """Append numbers to repeated names. The bar that lists the steps needs distinct names."""
    return [
        name if name not in names[:index] else f"{name} {names[:index].count(name) + 1}"
        for index, name in enumerate(names)
    ]


def _frames(derivation: Derivation, stage: StepGroup | None) -> list[Blocks]:
    """Return the frames in which the smaller term moves to its final position, or out of view.

    The list is empty unless the group of steps aligns two terms.
    """
    step = None if stage is None else derivation.steps[stage.index]
    if not isinstance(step, Align):
        return []
    fmt = derivation.rounding_format
    return [tuple(align_blocks(step, fmt, moved)) for moved in range(min(step.shift, fmt.precision + TAIL + 1))]


def _raised(derivation: Derivation, index: int) -> Flags:
    """Return the flags raised up to and including a step."""
    if index + 1 == len(derivation.steps):
        return derivation.flags
    raised = Flags.NONE
    for step in derivation.steps[: index + 1]:
        if isinstance(step, Round | Integral):
            raised |= step.rounded.flags
        elif isinstance(step, Special):
            raised |= step.flags
    # Rounding to an integer without `exact` does not signal inexact.
    return raised & derivation.flags


# The rank of each group of steps. Groups of fma and of multiply-then-add with the same rank are shown together.
_RANKS = {"flush": 0, "product": 1, "align": 2, "sum": 3, "rule": 4, "round product": 5, "round": 5, "result": 6}


def _paired_groups(sides: list[list[StepGroup]], ends: tuple[int, int]) -> list[list[StepGroup | None]]:
    """Pair each group of steps of fma with a group of multiply-then-add that has the same rank in `_RANKS`.

    If only one computation has a group of this rank, the other element of the pair is None. The groups that compute the
    product come first. `ends` says, for each computation, how many steps compute the product.
    """
    placed: list[dict[tuple[int, int, int], StepGroup]] = [{}, {}]
    for side, places, end in zip(sides, placed, ends, strict=True):
        for stage in side:
            key = (int(stage.index >= end), _RANKS[stage.name])
            places[*key, sum(other[:2] == key for other in places)] = stage
    return [[places.get(key) for places in placed] for key in sorted({key for places in placed for key in places})]


def _contrast_scenes(contrast: Contrast, draw_bits: bool) -> tuple[Scene, ...]:
    ways = fused, separate = contrast.fused, contrast.separate
    shared, *sides = relations.fused_and_separate(contrast, draw_bits=draw_bits)
    product = next((i + 1 for i, step in enumerate(fused.steps) if _is_product(step)), 0)
    pairs = _paired_groups(sides, (product, relations.product_end(separate)))
    named = [*shared, *(next(filter(None, pair)) for pair in pairs)]
    names = _distinct([stage.name for stage in named])
    made = [scene.replace(separate_flags=Flags.NONE) for scene in _scenes(fused, shared, names, draw_bits)]
    top, title = _opening(fused, draw_bits), text_of(operation_heading(fused).content)
    top += tuple(block for stage in shared for block in stage.blocks)
    seen: list[Blocks] = [(), ()]
    raised = [Flags.NONE, Flags.NONE]
    for pair, name in zip(pairs, names[len(shared) :], strict=True):
        moving = [_frames(way, stage) for way, stage in zip(ways, pair, strict=True)]
        new = [() if stage is None else stage.blocks for stage in pair]
        frames = []
        for moved in range(max(len(each) for each in moving)):
            now = [each[moved] if moved < len(each) else blocks for each, blocks in zip(moving, new, strict=True)]
            frames.append(Page((*top, _both_sides(seen, now)), title))
        steps = tuple((way, stage.index) for way, stage in zip(ways, pair, strict=True) if stage is not None)
        for side, (way, stage) in enumerate(zip(ways, pair, strict=True)):
            raised[side] |= Flags.NONE if stage is None else _raised(way, stage.index)
        page = Page((*top, _both_sides(seen, new)), title)
        made.append(Scene(name, page, _both_reasons(steps), raised[0], tuple(frames), steps, raised[1]))
        seen = [(*old, *more) for old, more in zip(seen, new, strict=True)]
    verdict = Fresh(tuple(relations.verdict_rows(contrast)))
    whole = Page((*top, relations.side_by_side(*map(list, seen)), Gap(), verdict), title)
    why = verdict_reason(contrast)
    if fused.result != separate.result and _PRODUCT_ROUNDED in names:
        why = line(why, f" They differ from step {names.index(_PRODUCT_ROUNDED) + 1} ({_PRODUCT_ROUNDED}) on.")
    return (*made, Scene("verdict", whole, why, raised[0], separate_flags=raised[1]))


def _both_sides(seen: list[Blocks], more: list[Blocks]) -> Block:
    """Return the rows of fma and of multiply-then-add side by side.

    `seen` are the rows shown before; `more` are the new rows, which are marked.
    """
    return relations.side_by_side(*([*old, *_fresh(new)] for old, new in zip(seen, more, strict=True)))


def _is_product(step: Step) -> bool:
    return isinstance(step, Combine) and step.kind is Combination.PRODUCT


def _both_reasons(steps: tuple[tuple[Derivation, int], ...]) -> Line:
    """Return the reason for each of two steps. If both reasons are the same, return this reason once."""
    sides = [("Fused" if way.operation == "fma" else "Separate", reason(way, index)) for way, index in steps]
    if len(sides) == 2 and sides[0][1] == sides[1][1]:
        return sides[0][1]
    return line(*(part for i, (name, words) in enumerate(sides) for part in (" " * (i > 0), f"{name}: ", words)))


def _whole_scene(name: str, page: Page, reason: Line, flags: Flags, draw_bits: bool) -> Scene:
    """Return a page without steps as a single scene.

    Unless `draw_bits` is true, the operands' bits and the title are omitted.
    """
    if draw_bits:
        return Scene(name, Page((Fresh(page.blocks),), page.title), reason, flags)
    shown, whose = [], ""
    for block in page.blocks[1:]:
        if isinstance(block, Strip):
            whose = block.label
        else:
            shown.append(block.replace(label=whose) if isinstance(block, Row) and whose and not block.label else block)
            whose = ""
    return Scene(name, Page((Fresh(tuple(shown)),), page.title), reason, flags)
