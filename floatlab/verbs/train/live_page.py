"""The chart and the table of a training session in progress, and its values at any step.

A *line* stands for all weights that are trained with one remedy, or for the networks (one per seed) in one
configuration. Each line has a row in the table, and a curve in the chart, which is drawn with a letter. When the remedy
of the line changes, the letter changes its case. Even before the first step, the axis of the chart extends to the last
step (the goal).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from floatlab.arrays.types import Array
from floatlab.page.chart import curve, mark_of, role_of, thinned
from floatlab.page.model import Chart, Curve, Line, Page, Role, Span, Table, line
from floatlab.record import Record
from floatlab.training.learner import Learning
from floatlab.training.trainer import TrainingRun
from floatlab.training.trajectories import Training, Trajectory
from floatlab.verbs.train.network_page import Learnings, losses_chart, network_page
from floatlab.verbs.train.run_page import error_text, value_text, values_chart
from floatlab.verbs.train.words import CAUSES, figures

_NOWHERE = math.nan  # a point with this value is invisible, but extends the horizontal scale to its step


class Switch(Record):
    """A change of remedy during the run: the step after which it happens, the index of the line, and the new remedy."""

    step: int
    place: int
    word: str


class Look(Record):
    """A snapshot: the chart, the table, and the function `reading`, which returns the values at a step as text."""

    steps: int
    goal: int
    chart: Chart
    table: Table
    reading: Callable[[int], Line]


def look_at_weights(found: Training, goal: int, switches: Sequence[Switch] = ()) -> Look:
    r"""Return a snapshot of weights with several remedies. The axis of its chart extends to step `goal`.

    >>> from floatlab import train
    >>> from floatlab.page.model import text_of
    >>> look = look_at_weights(train("1.125", update="0.00041999", steps=51, remedies="plain master"), 101)
    >>> text_of(look.reading(50)).replace("\N{NO-BREAK SPACE}", " ")
    'step 50  a 1.125  b 1.146  · 1.146'
    >>> [text_of(cell) for cell in look.table.rows[0]]
    ['a plain', '1.125', '0', '−2.14e-2', '0', 'the update is under half an ulp']
    """
    runs, chart = found.runs, values_chart(found)
    several, steps = found.trainers[0].count > 1, found.steps
    curves = list(chart.curves)
    truth = [] if several else [curves.pop(0)]
    if truth and found.reference.is_exact:
        every = runs[0].every
        at = every * np.array(thinned(goal // every + 1))
        truth = [curve(None, found.reference.kind, at.tolist(), found.reference.curve(at).tolist())]

    def reading(step: int) -> Line:
        step = min(max(step, 0), steps)
        values = [_weight(found, run, step, several) for run in runs]
        own = [] if several else [("·", figures(float(found.reference.curve(_recorded(runs[0], step))[0])), Role.HINT)]
        return _reading_line(step, zip(range(len(runs)), values, strict=True), switches, own)

    rows = tuple(
        (_name(i, each.label, switches), *_cells_of(each, run, several))
        for i, (each, run) in enumerate(zip(found.lines, runs, strict=True))
    )
    header = ("remedy", "largest error" if several else "value", "still since", "error", "moves", "next step")
    places = (0, 1, 2, 4, 5) if several else (*range(6),)  # several weights have no single value to show
    cells = [tuple(row[i] for i in places) for row in rows]
    table = Table(tuple(header[i] for i in places), cells, right=(*range(1, len(places) - 1),))
    return Look(steps, goal, _extend(chart, truth, curves, goal, switches), table, reading)


def look_at_losses(learnings: Learnings, goal: int, switches: Sequence[Switch] = ()) -> Look:
    """Return a snapshot of networks in several configurations. The axis of its chart extends to step `goal`."""
    chart = losses_chart(learnings.rows)
    steps = max(each.steps for row in learnings.rows for each in row)

    def reading(step: int) -> Line:
        step = min(max(step, 0), steps)
        return _reading_line(step, ((i, _loss(row, step)) for i, row in enumerate(learnings.rows)), switches, [])

    table = next(block for block in network_page(learnings).blocks if isinstance(block, Table))
    rows = tuple(
        (_name(i, each.label, switches), *row[1:])
        for i, (each, row) in enumerate(zip(learnings.compared, table.rows, strict=True))
    )
    return Look(steps, goal, _extend(chart, [], list(chart.curves), goal, switches), table.replace(rows=rows), reading)


def without_chart(page: Page) -> Page:
    """Return a page without its charts, for a screen that shows them elsewhere."""
    return page.replace(blocks=tuple(block for block in page.blocks if not isinstance(block, Chart)))


def letter(place: int, switches: Iterable[Switch], step: int | None = None) -> str:
    """Return the letter of a line at a step (None: now). At each change of remedy, the letter changes its case.

    >>> letter(1, (Switch(50, 1, "master"),), 49), letter(1, (Switch(50, 1, "master"),))
    ('b', 'B')
    """
    mark = mark_of(place)
    turns = sum(each.place == place and (step is None or each.step <= step) for each in switches)
    return mark.upper() if turns % 2 else mark


def _name(place: int, label: str, switches: Sequence[Switch]) -> Line:
    """Return the letter and the remedy of a line, and the step of its last change of remedy."""
    last = [each.step for each in switches if each.place == place]
    since = Span(f" from {last[-1]:,}", Role.HINT) if last else ""
    return line(Span(letter(place, switches), role_of(place)), " ", Span(label, Role.VALUE), since)


def _extend(chart: Chart, before: list[Curve], curves: list[Curve], goal: int, switches: Sequence[Switch]) -> Chart:
    """Return the chart with each curve divided at changes of remedy, and with an axis up to step `goal`."""
    parts = [part for i, each in enumerate(curves) for part in _split_at_changes(each, i, switches)]
    room = Curve(" ", "", ((0.0, _NOWHERE), (float(goal), _NOWHERE)))
    return chart.replace(curves=(*before, *parts, room))


def _split_at_changes(whole: Curve, place: int, switches: Sequence[Switch]) -> list[Curve]:
    """Divide the curve of a line at each change of its remedy. Each part of the curve has its own letter and label."""
    own = [each for each in switches if each.place == place]
    parts, start = [], 0.0
    for i in range(len(own) + 1):
        end = float(own[i].step) if i < len(own) else math.inf
        points = [(x, y) for x, y in whole.points if start <= x <= end]
        if end < math.inf:
            points.append((end, _NOWHERE))  # an invisible last point, so that no label is drawn there
        label = whole.label
        if own:
            word = whole.label if i == len(own) else own[i - 1].word
            label = f"{word} from step {own[i - 1].step:,}" if i else f"before step {own[0].step:,}"
        parts.append(whole.replace(points=tuple(points), mark=letter(place, own[:i]), label=label))
        start = end
    return parts


def _cells_of(each: Trajectory, run: TrainingRun, several: bool) -> tuple[Line, ...]:
    """Return the table cells for one remedy: value, last step before a stall, error, number of moves, and cause.

    If the weight has stalled, the second cell has the last step that moved the weight. For several weights, the first
    cell repeats the error, and the second cell has the number of stalled weights.
    """
    error = line("" if each.error is None else error_text(each.error))
    still = "" if each.stalled is None else f"{each.stalled:,}"
    if several and each.stalled is not None:
        still = f"{each.still:,} of {len(run.last_moves):,}"
    if each.diverged is not None:
        what = line(Span(each.diverged, Role.BAD))
    else:
        role = Role.BAD if each.stalled is not None else Role.PLAIN
        what = line(Span(CAUSES[each.why] if each.why is not None else "", role))
    value = error if several else line(value_text(float(run.final), run))
    return value, line(Span(still, Role.BAD)), error, line(f"{each.moves:,}"), what


def _recorded(run: TrainingRun, step: int) -> Array:
    return np.array([step // run.every * run.every])


def _weight(found: Training, run: TrainingRun, step: int, several: bool) -> str | None:
    """Return, as text, the weight of one remedy at the last recorded step up to `step`.

    If the remedy trains several weights, the text is the mean error of the weights. The result is None if the run ended
    before `step`.
    """
    place = step // run.every
    if place >= len(run.at):
        return None
    if not several:
        return value_text(float(run.values[place]), run)
    with np.errstate(all="ignore"):
        off = np.abs(run.values[place] - found.reference.curve(_recorded(run, step))[0]).mean()
    return f"{off:.3g}"


def _loss(row: list[Learning], step: int) -> str | None:
    """Return, as text, the geometric mean of one loss for each seed: the last loss recorded up to this step.

    Return None if a seed has no loss yet, or if a loss is not positive.
    """
    there = [each.losses[each.at <= step] for each in row]
    last = [losses[-1] for losses in there if len(losses) and losses[-1] > 0]
    if len(last) < len(row):
        return None
    return f"{math.exp(sum(math.log(each) for each in last) / len(last)):.3g}"


def _reading_line(
    step: int, values: Iterable[tuple[int, str | None]], switches: Sequence[Switch], more: list[tuple[str, str, Role]]
) -> Line:
    """Return, as text, the number of a step and the value of each line after this step."""
    runs: list[Span | str] = [Span(f"step {step:,}", Role.LABEL)]
    for place, value in values:
        if value is not None:
            mark = Span(letter(place, switches, step), role_of(place))
            runs += ["  ", mark, "\N{NO-BREAK SPACE}", Span(value, Role.VALUE)]
    for mark_, value, role in more:
        runs += ["  ", Span(f"{mark_}\N{NO-BREAK SPACE}{value}", role)]
    return line(*runs)
