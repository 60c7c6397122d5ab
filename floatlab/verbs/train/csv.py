"""What the laboratory found as CSV."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from floatlab.training.gradient_check import StepSweep
    from floatlab.training.laboratory import Training
    from floatlab.training.learner import Learning
    from floatlab.training.underflow import Underflow


def _csv(header: Iterable[str], rows: Iterable[Iterable[Any]]) -> str:
    from csv import writer
    from io import StringIO

    out = StringIO()
    table = writer(out, lineterminator="\n")
    table.writerow(header)
    table.writerows(rows)
    return out.getvalue()


def training_table(found: Training) -> str:
    """Return the weights step by step as CSV: the reference, each remedy, and what it stands for where that differs.

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

    def rows() -> Iterable[list[Any]]:
        for i, at in enumerate(longest.at.tolist()):
            cells = [values[i].tolist() if i < len(values) else None for _, values in columns]
            if not several:
                yield [at, *cells]
                continue
            for element in range(found.trainers[0].count):
                yield [at, element, *(None if each is None else each[element] for each in cells)]

    return _csv(header, rows())


def learnings_table(learnings: list[list[Learning]]) -> str:
    """Return the losses as CSV, one line for each configuration, seed and recorded step."""
    rows = (
        (each.configuration.label, each.problem.seed, at, loss)
        for row in learnings
        for each in row
        for at, loss in zip(each.at.tolist(), each.losses.tolist(), strict=True)
    )
    return _csv(("configuration", "seed", "step", "loss"), rows)


def underflow_table(found: Underflow) -> str:
    """Return the histogram as CSV: exponents of the gradients as they were given, and counts."""
    return _csv(("exponent", "gradients"), found.histogram)


def check_table(curves: list[StepSweep]) -> str:
    """Return the points of the curves as CSV."""
    names = curves[0].points[0]._fields
    rows = ((each.way, *(getattr(point, name) for name in names)) for each in curves for point in each.points)
    return _csv(("difference", *names), rows)
