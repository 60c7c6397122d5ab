"""The page of one update of a weight w: every rounding, and the smallest update that would have moved w.

An update is a series of stages. Each stage is one operation, whose result is rounded to a format.
"""

from __future__ import annotations

from fractions import Fraction
from math import ceil

from floatlab.arrays.recurrences import CONVERT
from floatlab.numbers import Datum, Derivation, Direction, Exact
from floatlab.numbers.datum import shortest
from floatlab.numbers.printing import rounded_decimal
from floatlab.page.datum import coded, datum_strip
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Strip, Table, heading, line
from floatlab.page.number_line import number_line
from floatlab.page.words import bracketed, counted, error_words, signed_text, verdict_line
from floatlab.training.optimizers import is_drawn
from floatlab.training.thresholds import Threshold
from floatlab.training.trace import TracedStage, UpdateTrace, Why
from floatlab.verbs.arithmetic.page import step_groups
from floatlab.verbs.train.words import figures, long_figures, optimizer_words, setup_words

_CELL = 18  # an error with more characters than this is shortened
_PICTURED = 3  # if there are more stages than this, a table replaces their digits
_SIGNS = {"add": "+", "subtract": "−", "multiply": "×", "divide": "/"}
_LONG = {"g": "gradient", "c": "carried"}


def step_page(found: UpdateTrace, brief: bool = False) -> Page:
    """Return the page of one update. The stages are in a table if `brief` is true, or if there are many stages.

    >>> from floatlab.page.text_layout import to_text
    >>> from floatlab.training import step
    >>> print(to_text(step_page(step("1.125", "0.00041999"), brief=True)).partition("Did")[2], end="")
     the update change w?
      moved        no: the update is 0.43017578125 ulp of w, less than half the
                   distance to the next number
      w now        0 01111 0010000000         0x3c80 = 1.125
      update       0.43017578125 ulp of w     0.0003734 of w
      moves up     just above 2^-11, 0.5 ulp  smallest 0x1001 0.0004888
      moves down   just above 2^-11, 0.5 ulp  smallest 0x1001 0.0004888
    """
    program = found.program
    sign = "+" if program.optimizer.adds else "−"
    title = f"{shortest(found.before)} {sign} {bracketed(shortest(found.update))}: {_outcome(found)}"
    blocks: list[Block] = [heading(title), Row("setup", setup_words(program.setup))]
    if not program.optimizer.adds:
        blocks.append(Row("optimizer", optimizer_words(program.optimizer), _scheduled(found)))
    blocks += reading_rows(found)
    whole = len(found.stages) <= _PICTURED and not brief
    if not whole:
        blocks += [Gap(), stage_table(found)]
    for each in found.stages if not brief else ():
        if whole or (each is found.total and each.derivation.flags):
            blocks += [Gap(), *stage_blocks(each, names_of(found))]
    return Page((*blocks, Gap(), *verdict_blocks(found), *([] if brief else _line(found))), title)


def _outcome(found: UpdateTrace) -> str:
    if found.why is Why.IN_MASTER and found.carried is not None:
        return f"w is unchanged; the master copy becomes {figures(found.carried, 8)}"
    stays = found.why is not Why.NOT_FINITE and not found.moved
    return "nothing changes" if stays else f"it becomes {shortest(found.after)}"


def _scheduled(found: UpdateTrace) -> Line:
    """Return, as text, the optimizer's numbers that change from step to step, such as Adam's bias corrections."""
    pairs = (pair for each in found.stages for pair in zip(each.stage.operands, each.derivation.operands, strict=True))
    used = {name: datum for name, datum in pairs if isinstance(datum, Datum)}
    numbers = ", ".join(f"{name} {shortest(used[name])}" for name, _ in reversed(found.program.schedules))
    return line(f"in this step {numbers}" if numbers else "")


def reading_rows(found: UpdateTrace) -> list[Block]:
    """Return rows that show how the given numbers were rounded to their formats."""
    rows: list[Block] = []
    adds = found.program.optimizer.adds
    for name, made in found.readings:
        label = "update" if adds and name == "g" else _LONG.get(name, name)
        words = line(made.result.format.name, ", ", verdict_line(made)) if made.flags else line(made.result.format.name)
        rows += [datum_strip(made.result, label), Row("", words)]
    return rows


def names_of(found: UpdateTrace) -> dict[str, str]:
    """Map the variables of the stages to the names that the page shows, where these differ."""
    return {"g": "u"} if found.program.optimizer.adds else {}


def _formula(each: TracedStage, names: dict[str, str]) -> str:
    """Return a stage as a formula, such as w ← w − u."""
    stage = each.stage
    words = [names.get(name, name) for name in stage.operands]
    if stage.operation in _SIGNS:
        said = f"{words[0]} {_SIGNS[stage.operation]} {words[1]}"
    elif stage.operation == CONVERT:
        said = words[0]
    else:
        said = f"{stage.operation}({', '.join(words)})"
    return f"{names.get(stage.to, stage.to)} ← {said}"


def stage_blocks(each: TracedStage, names: dict[str, str]) -> list[Block]:
    """Return the formula of a stage and, below it, rows with the digits of its operands and result.

    `names` maps the variables of the stages to the names that the page shows, where these differ.
    """
    drawn = " stochastically" if is_drawn(each.stage) else ""
    head = line(Span(_formula(each, names), Role.HEADING), f" in {each.stage.format.name}, rounded once{drawn}")
    called = dict(zip("ab", (names.get(name, name) for name in each.stage.operands), strict=False))
    blocks: list[Block] = [Note(head)]
    if each.stage.operation == CONVERT and each.derivation.result.format == each.derivation.operands[0].format:  # type: ignore[union-attr]
        return [*blocks, Row("as it is", coded(each.derivation.result))]
    for part in step_groups(each.derivation):
        for block in part.blocks:
            if part.name == "operands" and isinstance(block, Strip) and block.label[:1] in called:
                block = block.replace(label=f"{called[block.label[0]]}{block.label[1:]}")
            blocks.append(block)
    return blocks


def stage_table(found: UpdateTrace) -> Table:
    """Return the stages as a table: formula, format, result, and error of the rounding."""
    names = names_of(found)
    rows = []
    for each in found.stages:
        result = coded(each.derivation.result, shortest(each.derivation.result))
        rows.append((_formula(each, names), each.stage.format.name, result, _rounding(each.derivation)))
    return Table(("stage", "format", "becomes", "rounding"), rows)


def _rounding(made: Derivation) -> str:
    """Return the error of a rounding as short text."""
    said, ulps = error_words(made).removeprefix("error "), made.approximate_error_ulps
    if len(said) <= _CELL or not ulps:
        return said
    return f"≈ {signed_text(rounded_decimal(ulps, 4))} ulp"


def verdict_blocks(found: UpdateTrace) -> list[Block]:
    """Return rows that say whether w moved and why, the size of the update, and the smallest updates that move w."""
    blocks: list[Block] = [heading("Did the update change w?")]
    good = found.why in (Why.MOVED, Why.COMPENSATED, Why.IN_MASTER)
    moved = "yes" if found.moved else "no"
    blocks.append(Row("moved", Span(f"{moved}: {why_words(found)}", Role.GOOD if good else Role.BAD)))
    blocks.append(datum_strip(found.after, "w now"))
    if found.carried is not None:
        blocks.append(Row("carried", Span(long_figures(found.carried), Role.VALUE)))
    if found.update_ulps is not None and found.update.exact:
        size = line(f"{figures(found.update_ulps)} ulp of w")
        ratio = found.ratio
        blocks.append(Row("update", size, line(f"{figures(ratio)} of w") if ratio is not None else ()))
    if (steps := steps_to_move(found)) is not None:
        blocks.append(Row("w moves", f"after about {counted(steps, 'such update')}: the master copy adds them up"))
    if found.chance is not None:
        blocks.append(Row("probability", f"{figures(found.chance)} that such a step moves w"))
    for label, each in (("up", found.up), ("down", found.down)):
        blocks.append(Row(f"moves {label}", *threshold_words(each, found.kept, found.program.kept)))
    return blocks


def steps_to_move(found: UpdateTrace) -> int | None:
    """Estimate how many updates like this one must be summed in the master copy until w moves.

    The estimate assumes that each update moves the master copy by the same amount. w moves when the master copy reaches
    the midpoint between w and its neighbour. Returns None if this step moved w or did not move the master copy, if w is
    not rounded to nearest, or if w has no finite neighbour in the direction of the update.

    >>> from floatlab.training import step
    >>> steps_to_move(step("1", "0.0004", weights="fp16", master="fp32")), steps_to_move(step("1", "0.0004"))
    (2, None)
    """
    if found.why is not Why.IN_MASTER or found.carried is None or found.chance is not None:
        return None
    before, w = found.kept.exact.as_fraction(), found.before
    change = found.carried - before
    neighbour = w.next_up if change > 0 else w.next_down
    nearest = found.program.setup.context.rounding in (Direction.RNE, Direction.RNA)
    if not nearest or not neighbour.is_finite:
        return None
    middle = (w.exact.as_fraction() + neighbour.exact.as_fraction()) / 2
    return max(ceil((middle - before) / change), 2)


def why_words(found: UpdateTrace) -> str:
    """Say why w moved or is unchanged."""
    w = found.before.format.name
    ulps = found.update_ulps
    size = f"the update is {figures(ulps)} ulp of w" if ulps is not None else "the update is not finite"
    program = found.program
    return {
        Why.MOVED: size,
        Why.NO_UPDATE: "the update is zero",
        Why.GRADIENT_VANISHED: f"the given number is zero in {program.setup.grads.name}",
        Why.UPDATE_VANISHED: "the update was rounded to zero",
        Why.BELOW_HALF: f"{size}, less than half the distance to the next number",
        Why.TIE: f"{size}, a tie, which is rounded to the even neighbour: w",
        Why.BY_DIRECTION: f"{size}, and the sum is rounded ({program.setup.context.rounding.value}) to w",
        Why.DRAWN: f"{size}, and the sum was stochastically rounded to w",
        Why.CONVERTED: f"the sum differs from w in {program.setup.accumulator.name}, but is rounded to w in {w}",
        Why.COMPENSATED: f"{size}; the rounding error is carried to the next step",
        Why.IN_MASTER: f"{size}; the master copy moved, but is rounded to the same number in {w}",
        Why.AT_THE_END: f"w is the largest number of {w}",
        Why.NOT_FINITE: f"w or the update is not finite any more: {shortest(found.after)}",
    }[found.why]


def threshold_words(each: Threshold, w: Datum, name: str = "w") -> tuple[Line, Line]:
    """Return the bound above which an update moves w (or its master copy), and the smallest such update, as text."""
    of = "" if name == "w" else " of the master copy"
    if each.bound is None:
        return line(Span("no update moves it", Role.HINT)), ()
    ulps = each.bound / w.ulp.as_fraction()
    start = "from" if each.included else "just above"
    first = line(f"{start} {_power(each.bound)}", f", {figures(ulps)} ulp{of}")
    if each.certain is not None:
        first = line(f"possibly {start} {_power(each.bound)}", f", certainly above {_power(each.certain)}")
    if each.least is None:
        return first, line(Span("no number of the update's format moves it", Role.HINT))
    return first, line("smallest ", coded(each.least, shortest(each.least)))


def _power(x: Fraction) -> str:
    """Return a number as text: a power of two below 1 as 2^−k, other numbers in a few digits."""
    n, d = x.numerator, x.denominator
    if n == 1 and d & (d - 1) == 0 and d > 1:
        return f"2^{1 - d.bit_length()}"
    return figures(x)


def _line(found: UpdateTrace) -> list[Block]:
    """Return an empty line, and a number line that shows the exact sum and the numbers next to it.

    The sum is that of the update and w or, if there is a master copy, of the update and the master copy. The list is
    empty if one of these terms or the sum is not finite.
    """
    total, w = found.total, found.kept
    truth = total.derivation.truth
    if not isinstance(truth, Exact) or not w.is_finite:
        return []
    sign = _SIGNS[total.stage.operation]
    axis = number_line(w, total.stage.context, truth, f"{found.program.kept} {sign} update")
    return [] if axis is None else [Gap(), axis]
