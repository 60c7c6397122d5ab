"""What the laboratory found as JSON, and its numbers as CSV."""

from __future__ import annotations

from fractions import Fraction

from floatlab.formats import Format
from floatlab.numbers import encode
from floatlab.numbers.decimals import fraction_text
from floatlab.wire.encode import SCHEMA, context_to_wire, datum_to_wire, integer, number, to_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from floatlab.training.gradient_check import Check, Point, StepSweep
    from floatlab.training.network.learner import Learning, LearningComparison
    from floatlab.training.run.laboratory import Training, Trajectory
    from floatlab.training.run.training_run import TrainingRun
    from floatlab.training.scaling import Underflow
    from floatlab.training.setup import Setup
    from floatlab.training.update.thresholds import Threshold
    from floatlab.training.update.trace import UpdateTrace

    Wire = dict[str, Any]

_MANY = 64  # weights that are listed


def _fraction(x: Fraction | None) -> str | None:
    return None if x is None else fraction_text(x)


def setup_to_wire(setup: Setup) -> Wire:
    """Return the formats of a setup, and what else it does."""
    scaling = setup.scaling
    return {
        "formats": setup.formats,
        "compensated": setup.compensated,
        "stochastic": setup.stochastic,
        "scaling": None if scaling is None else {
            "scale": scaling.scale, "growth_interval": scaling.growth_interval,
            "growth_factor": scaling.growth_factor, "backoff_factor": scaling.backoff_factor,
        },
        "context": context_to_wire(setup.context),
    }  # fmt: skip


def step_to_wire(found: UpdateTrace) -> Wire:
    """Return an update with the derivation of each stage."""
    return {
        "schema": SCHEMA,
        "operation": "train step",
        "setup": setup_to_wire(found.program.setup),
        "readings": {name: to_wire(made) for name, made in found.readings},
        "stages": [
            {"to": each.stage.to, "operands": list(each.stage.operands), "derivation": to_wire(each.derivation)}
            for each in found.stages
        ],
        "before": datum_to_wire(found.before),
        "update": datum_to_wire(found.update),
        "result": datum_to_wire(found.after),
        "moved": found.moved,
        "why": found.why.value,
        "carried": _fraction(found.carried),
        "update_ulps": _fraction(found.update_ulps),
        "ratio": _fraction(found.ratio),
        "chance": _fraction(found.chance),
        "counts": {"up": _threshold(found.up), "down": _threshold(found.down)},
    }


def _threshold(each: Threshold) -> Wire:
    return {
        "bound": _fraction(each.bound),
        "included": each.included,
        "least": None if each.least is None else datum_to_wire(each.least),
        "certain": _fraction(each.certain),
    }


def training_to_wire(found: Training, seed: int = 0) -> Wire:
    """Return the table of a training: each remedy, where it ends, and why; values step by step are for CSV."""
    first = found.trainers[0]
    return {
        "schema": SCHEMA,
        "operation": "train",
        "steps": integer(found.steps),
        "weights": first.count,
        "optimizer": first.optimizer.name,
        "seed": integer(seed),
        "reference": {"kind": found.reference.kind, "final": _finals(found)},
        "remedies": [_line(*each) for each in zip(found.runs, found.lines, strict=True)],
    }


def _finals(found: Training) -> list[Any]:
    final = found.reference.final(found.steps)[:_MANY]
    return [_fraction(each) if isinstance(each, Fraction) else number(each) for each in final]


def _line(run: TrainingRun, each: Trajectory) -> Wire:
    fmt = run.setup.weights
    final = [float(x) for x in run.values[-1].reshape(-1)[:_MANY]]
    carried = [float(x) for x in run.carried[-1].reshape(-1)[:_MANY]]
    return {
        "name": each.label,
        "setup": setup_to_wire(run.setup),
        "final": [datum_to_wire(encode(x, fmt)) if isinstance(fmt, Format) else number(x) for x in final],
        "carried": None if each.carried_error is None else [number(x) for x in carried],
        "error": number(each.error),
        "carried_error": number(each.carried_error),
        "moves": integer(each.moves),
        "stalled": each.stalled,
        "still": each.still,
        "why": None if each.why is None else each.why.value,
        "skipped": each.skipped,
        "scale": each.scale,
        "diverged": each.diverged,
    }


def learnings_to_wire(learnings: list[list[Learning]], compared: list[LearningComparison], reference: str) -> Wire:
    """Return what was learned in each configuration: losses seed by seed, and the comparison."""
    first = learnings[0][0]
    return {
        "schema": SCHEMA,
        "operation": "train network",
        "problem": first.problem.name,
        "parameters": first.problem.parameters,
        "layers": list(first.problem.layers),
        "steps": first.steps,
        "seeds": [each.problem.seed for each in learnings[0]],
        "reference": reference,
        "configurations": [
            {
                "name": each.label,
                "setup": setup_to_wire(row[0].configuration.setup),
                **{name: getattr(row[0].configuration, name).name
                   for name in ("forward", "backward", "outputs", "accumulator")},
                "losses": [number(loss) for loss in each.finals],
                "ratio": number(each.ratio),
                "spread": number(each.spread),
                "worse": each.worse,
                "diverged": each.diverged,
                "unmoved": [one.unmoved for one in row],
                "skipped": [len(one.skipped) for one in row],
            }
            for row, each in zip(learnings, compared, strict=True)
        ],
    }  # fmt: skip


def underflow_to_wire(found: Underflow) -> Wire:
    """Return what a format does to gradients."""
    return {
        "schema": SCHEMA,
        "operation": "train underflow",
        "format": found.format.name,
        "scale": found.scale,
        "total": found.total,
        "nonzero": found.nonzero,
        "not_finite": found.not_finite,
        "zero": found.flushed,
        "subnormal": found.subnormal,
        "overflow": found.overflowed,
        "safe_scale": found.safe_scale,
        "least_scale": found.least_scale,
        "zero_at_safe_scale": found.flushed_by_safe_scale,
        "histogram": [list(each) for each in found.histogram],
    }


def check_to_wire(name: str, curves: list[StepSweep], check: Check | None) -> Wire:
    """Return a gradient check."""
    return {
        "schema": SCHEMA,
        "operation": "train check",
        "function": name,
        "x": curves[0].x,
        "format": curves[0].format.name,
        "derivative": curves[0].derivative,
        "differences": [
            {
                "way": each.way,
                "advised": each.advised,
                "best": _point(each.best),
                "points": [_point(point) for point in each.points],
            }
            for each in curves
        ],
        "check": None if check is None else _point(check),
    }


def _point(point: Point | Check) -> Wire:
    values = {name: getattr(point, name) for name in point._fields}
    return {name: each if isinstance(each, str) else number(each) for name, each in values.items()}


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
