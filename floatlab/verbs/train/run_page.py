"""The page of many steps: the weight with each remedy as a chart and a table, and when and why the weight stalled."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from floatlab.formats import Format
from floatlab.numbers import encode
from floatlab.numbers.datum import exact_text, hexadecimal_code, shortest
from floatlab.page.chart import curve, named, thinned
from floatlab.page.csv_text import as_csv
from floatlab.page.model import Block, Chart, Gap, Line, Page, Role, Row, Span, Table, heading, line, text_of
from floatlab.page.words import counted, plural
from floatlab.training.trainer import TrainingRun
from floatlab.training.trajectories import Training, Trajectory
from floatlab.verbs.train.words import CAUSES, figures, long_figures, optimizer_words, remedy_words, setup_words

_EXACT = 26  # a value with more characters than this is rounded


def training_page(found: Training, given: str = "", start: str = "") -> Page:
    """Return the page of weights trained with several remedies.

    `given` is the update or gradient as typed, and `start` is the starting weight as typed.

    >>> from floatlab import train
    >>> from floatlab.page.text_layout import to_text
    >>> page = training_page(train("1.125", update="0.00041999", steps=101, remedies="plain master"))
    >>> print(to_text(page).partition("Outcome of")[0].rpartition("remedy")[2].rstrip())
        after 1        2       51      101     error  moves
      a plain     1.125    1.125    1.125    1.125  −4.24e-2      0
      b master    1.125    1.126    1.146    1.167  −4.27e-4    101
      · exact   1.12542  1.12584  1.14642  1.16742
    """
    first = found.trainers[0]
    many = first.count
    what = start if start and many == 1 else f"{many:,} weights" if many > 1 else "a weight"
    steps = f"{counted(found.steps, 'update')}" if first.optimizer.adds else f"{counted(found.steps, 'step')}"
    title = f"{what} through {steps}, {counted(len(found.trainers), 'remedy', 'remedies')}"
    blocks: list[Block] = [heading(title)]
    if given:
        blocks.append(Row("update" if first.optimizer.adds else "gradient", given))
    blocks += _read(found)
    if not first.optimizer.adds:
        blocks.append(Row("optimizer", optimizer_words(first.optimizer)))
    blocks += [Gap(), values_chart(found), Gap(), _table(found), Gap(), *_outcomes(found), *_carried(found)]
    return Page(tuple(blocks), title)


def values_chart(found: Training) -> Chart:
    """Return a chart with a curve for each remedy.

    For a single weight, the curve shows the weight, and a further curve shows the reference: the weight in exact
    arithmetic or, if updates depend on earlier steps, in binary64. For several weights, the curve shows the mean of
    |weight − reference|, on a logarithmic scale.
    """
    several = found.trainers[0].count > 1
    runs = found.runs
    longest = max(runs, key=lambda run: run.steps)
    at = longest.at[thinned(len(longest.at))]
    kind, truth = found.reference.kind, [] if several else found.reference.curve(at).tolist()
    curves = [] if several else [curve(None, kind, at.tolist(), truth)]
    for i, run in enumerate(runs):
        places = thinned(len(run.at))
        at, values = run.at[places], run.values[places]
        if several:
            with np.errstate(all="ignore"):
                values = np.abs(values - found.reference.curve(at)).mean(axis=1)
        curves.append(curve(i, run.label, at.tolist(), values.tolist()))
    up = f"mean |weight − {kind}|" if several else "weight"
    return Chart(tuple(curves), "step", up, log_up=several, reference=not several)


def _read(found: Training) -> list[Block]:
    """Return a row for each format that remedies use for the gradient or update: the number rounded to this format.

    The list is empty unless there is a single weight whose gradient or update is constant.
    """
    first = found.trainers[0]
    exact = first.gradients.exact
    if len(exact) != 1 or not first.gradients.is_constant:
        return []
    rows: list[Block] = []
    formats = dict.fromkeys(each.setup.grads for each in found.trainers)
    for i, each in enumerate(formats):
        datum = encode(exact[0], each)
        size = ""
        if isinstance(first.setup.weights, Format) and each == first.setup.grads and datum.is_finite:
            start = encode(float(found.runs[0].values.reshape(-1)[0]), first.setup.weights)
            if first.optimizer.adds and start.exact:
                share = abs(datum.exact.as_fraction()) / start.ulp.as_fraction()
                size = f"{figures(share)} ulp of the starting weight"
        text = exact_text(datum) if len(exact_text(datum)) <= _EXACT else f"≈ {shortest(datum)}"
        words = line(Span(hexadecimal_code(datum), Role.CODE), f" {text}")
        rows.append(Row(f"in {each.name}" if i or len(f"in {each.name}") < 13 else each.name, words, size))
    return rows


def shown_steps(run: TrainingRun) -> list[int]:
    """Return the indices of the first two recorded steps, a middle one and the last.

    Index 0, the start, is returned only if nothing else is recorded.

    >>> from floatlab import train
    >>> shown_steps(train("1.125", update="0.00041999", steps=101, remedies="plain").runs[0])
    [1, 2, 51, 101]
    """
    last = len(run.at) - 1
    return sorted({each for each in (1, 2, (last + 1) // 2, last) if 0 < each <= last}) or [0]


def value_text(value: float, run: TrainingRun) -> str:
    """Return a weight as text, in the fewest digits that distinguish it from the neighbouring numbers of its format.

    Weights in a block format have up to six digits.
    """
    fmt = run.setup.weights
    if not isinstance(fmt, Format) or not np.isfinite(value):
        return f"{value:.6g}"
    return shortest(encode(float(value), fmt))


def _table(found: Training) -> Table:
    runs, lines = found.runs, found.lines
    longest = max(runs, key=lambda run: len(run.at))
    places = shown_steps(longest)
    several = found.trainers[0].count > 1
    heads = [f"{'after ' if not i else ''}{int(longest.at[place]):,}" for i, place in enumerate(places)]
    header = ("remedy", "largest error", "moves") if several else ("remedy", *heads, "error", "moves")
    rows = []
    for i, (run, each) in enumerate(zip(runs, lines, strict=True)):
        cells = [] if several else [_cell(run, place) for place in places]
        error = line(Span("none", Role.HINT)) if each.error is None else line(error_text(each.error))
        rows.append((named(i, each.label), *cells, error, line(f"{each.moves:,}")))
    if not several and found.reference.is_exact:
        truth = found.reference.curve(longest.at[places]).tolist()
        texts = ("· exact", *(f"{x:.6g}" for x in truth), "", "")
        rows.append(tuple(line(Span(text, Role.HINT)) for text in texts))
    return Table(header, rows, right=tuple(range(1, len(header))))


def _cell(run: TrainingRun, place: int) -> Line:
    if place >= len(run.at):
        return line(Span("ended", Role.HINT))
    return line(value_text(float(run.values[place]), run))


def error_text(error: float) -> str:
    """Return an error with three digits, or 0."""
    return "0" if not error else f"{error:.2e}".replace("e-0", "e-").replace("e+0", "e+").replace("-", "−", error < 0)


def _outcomes(found: Training) -> list[Block]:
    """Return a row for each remedy: its description, and what became of the weight."""
    blocks: list[Block] = [heading("Outcome of each remedy")]
    for i, (trainer, each) in enumerate(zip(found.trainers, found.lines, strict=True)):
        what = setup_words(trainer.setup) if each.label == "plain" else remedy_words(each.label)
        outcome = _outcome(each, trainer.count) if trainer.steps else line("no step done")
        blocks.append(Row(text_of(named(i, each.label)), line(outcome, " (", what, ")")))
    return blocks


def _outcome(each: Trajectory, count: int) -> Line:
    """Say what became of the `count` weights of one remedy: diverged, stalled or moving."""
    why = f": {CAUSES[each.why]}" if each.why is not None else ""
    extra = f"; {counted(each.skipped, 'step')} skipped, loss scale {each.scale:g}" if each.skipped else ""
    if each.diverged is not None:
        return line(Span(f"diverged: {each.diverged}{extra}", Role.BAD))
    if each.stalled is not None and count > 1:
        still = f"{each.still:,} of {count:,} {plural(count, 'weight')} stalled"
        return line(Span(f"{still}, the last one after step {each.stalled:,}{why}{extra}", Role.BAD))
    if each.stalled is not None:
        when = "it never moved" if not each.stalled else f"stalled after step {each.stalled:,}"
        return line(Span(f"{when}{why}{extra}", Role.BAD))
    if not each.moves:
        return line(Span(f"it did not move{why}{extra}", Role.HINT))
    return line(Span(f"{'they move' if count > 1 else 'it moves'}{extra}", Role.GOOD))


def _carried(found: Training) -> list[Block]:
    """Return a row for each remedy with a master copy or a compensation.

    For a single weight, the row has the exact final value (see `carried_exactly`) and the error of this value. For
    several weights, the row has only the largest error.
    """
    blocks: list[Block] = []
    for i, (run, each) in enumerate(zip(found.runs, found.lines, strict=True)):
        if each.carried_error is None:
            continue
        name = text_of(named(i, each.label))
        if run.carried.ndim > 1:
            blocks.append(Row(name, f"largest error {error_text(each.carried_error)}"))
            continue
        text = long_figures(carried_exactly(run))
        blocks.append(Row(name, Span(text, Role.VALUE), f"error {error_text(each.carried_error)}"))
    if not blocks:
        return []
    head = "Exact values: the master copy (or else the weight) minus the compensation"
    return [Gap(), heading(head), *blocks]


def carried_exactly(run: TrainingRun) -> Fraction:
    """Return the exact final value of a single weight.

    The value is the master copy, or the weight if there is no master copy. With Kahan summation, the compensation is
    subtracted.
    """
    exact = Fraction(float(run.carrier[-1]))
    return exact if run.compensation is None else exact - Fraction(float(run.compensation[-1]))


def training_table(found: Training) -> str:
    """Return the recorded weights as CSV, with a column for the reference (exact or binary64) and one for each remedy.

    A remedy with a master copy or a compensation has a second column, which has the exact value (see
    `carried_exactly`).

    >>> from floatlab import train
    >>> print(training_table(train("1.125", update="0.00041999", steps=2, remedies="plain master")), end="")
    step,exact,plain,master,master carried
    0,1.125,1.125,1.125,1.125
    1,1.12541999,1.125,1.125,1.125420093536377
    2,1.12583998,1.125,1.1259765625,1.125840187072754
    """
    runs = found.runs
    longest = max(runs, key=lambda run: len(run.at))
    several = found.trainers[0].count > 1
    columns = [(found.reference.kind, found.reference.curve(longest.at))]
    for run in runs:
        columns.append((run.label, run.values))
        if run.kept is not None or run.compensation is not None:
            columns.append((f"{run.label} carried", run.carried))
    header = ["step", *(["weight"] if several else []), *(name for name, _ in columns)]

    def rows() -> Iterator[list[object]]:
        for i, at in enumerate(longest.at.tolist()):
            cells = [values[i].tolist() if i < len(values) else None for _, values in columns]
            if not several:
                yield [at, *cells]
                continue
            for element in range(found.trainers[0].count):
                yield [at, element, *(None if values is None else values[element] for values in cells)]

    return as_csv(header, rows())
