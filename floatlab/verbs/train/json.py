"""The JSON schemas of the answers of `train`.

Updates, gradients lost to underflow, and single curves of gradient checks can be read back. Runs and networks are
written as summaries, which cannot be read back.
"""

from __future__ import annotations

from fractions import Fraction
from operator import itemgetter

from floatlab.errors import FileFormatError
from floatlab.formats import Format
from floatlab.numbers import Datum, Derivation, encode
from floatlab.training.gradient_check import Check, Point, StepSweep
from floatlab.training.learner import Learning, LearningComparison
from floatlab.training.networks import Configuration
from floatlab.training.optimizers import SGD, Adam, Optimizer, Program, Updates
from floatlab.training.setup import Setup
from floatlab.training.thresholds import Threshold
from floatlab.training.trace import TracedStage, UpdateTrace
from floatlab.training.trainer import TrainingRun
from floatlab.training.trajectories import Training, Trajectory
from floatlab.training.underflow import Underflow
from floatlab.wire.codecs import FORMAT, FRACTION, INTEGER, NUMBER, TEXT, Codec, list_of, mapping, optional, tuple_of
from floatlab.wire.derivations import DATUM, DERIVATION
from floatlab.wire.schema import (
    Member,
    common_members,
    derived,
    field,
    field_codecs,
    flattened,
    schema,
    schema_of,
    variant,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.verbs.train.network_page import Learnings
    from floatlab.wire.codecs import Scope

_MANY = 64  # at most this many weights are listed
_LINE = ("error", "carried_error", "moves", "stalled", "still", "why", "skipped", "scale", "diverged")
_PRODUCTS = ("forward", "backward", "outputs", "accumulator")
_FRACTION = optional(FRACTION)
_NUMBERS = list_of(NUMBER)


_SETUP = schema(
    lambda formats, **rules: Setup(**formats, **rules),
    formats=mapping(TEXT),
    **field_codecs(Setup, "compensated", "stochastic", "scaling", "context"),
)


# One update.

_STAGE = schema(
    lambda derivation: derivation,
    to=derived("stage.to"),
    operands=derived(lambda traced: [*traced.stage.operands]),
    derivation=DERIVATION,
)
_OPTIMIZER = variant("optimizer", {kind.__name__.lower(): schema_of(kind) for kind in (Updates, SGD, Adam)})


def _update(
    setup: Setup, optimizer: Optimizer, readings: dict[str, Derivation], stages: list[Derivation], **fields: Any
) -> UpdateTrace:
    program = Program.of(setup, optimizer)
    if len(program.stages) != len(stages):
        raise FileFormatError(f"the program has {len(program.stages)} stages, not {len(stages)}")
    traced = tuple(TracedStage(*pair) for pair in zip(program.stages, stages, strict=True))
    return UpdateTrace(program=program, readings=tuple(readings.items()), stages=traced, **fields)


UPDATE = schema(
    _update,
    **common_members("train step"),
    setup=Member(_SETUP, lambda trace: trace.program.setup, "setup"),
    optimizer=Member(_OPTIMIZER, lambda trace: trace.program.optimizer, "optimizer"),
    readings=Member(mapping(DERIVATION), lambda trace: dict(trace.readings), "readings"),
    stages=list_of(_STAGE),
    **field_codecs(UpdateTrace, "before", "update"),
    result=field(DATUM, "after"),
    moved=derived("moved"),
    **field_codecs(UpdateTrace, "why", "exact_update", "carried"),
    update_ulps=derived("update_ulps", _FRACTION),
    ratio=derived("ratio", _FRACTION),
    chance=derived("chance", _FRACTION),
    counts={name: derived(name, schema_of(Threshold)) for name in ("up", "down")},
)


# Many steps: the final weight of each remedy, and why it has stalled. Only the CSV has the values of all steps.


def _rows_of_remedies(training: Training) -> list[tuple[Trajectory, TrainingRun]]:
    return list(zip(training.lines, training.runs, strict=True))


def _final(row: tuple[Trajectory, TrainingRun]) -> list[Datum] | list[float]:
    fmt, final = row[1].setup.weights, row[1].values[-1].reshape(-1)[:_MANY].tolist()
    return [encode(x, fmt) for x in final] if isinstance(fmt, Format) else final


def _carried(row: tuple[Trajectory, TrainingRun]) -> list[float] | None:
    return None if row[0].carried_error is None else row[1].carried[-1].reshape(-1)[:_MANY].tolist()


def _write_final(x: Fraction | Datum | float, scope: Scope) -> object:
    return (FRACTION if isinstance(x, Fraction) else DATUM if isinstance(x, Datum) else NUMBER).write(x, scope)


_FINALS = list_of(Codec(_write_final, lambda wire, _: wire))
_REMEDY = schema(
    **flattened(itemgetter(0), {"name": field(TEXT, "label")}),
    setup=derived(lambda row: row[1].setup, _SETUP),
    final=derived(_final, _FINALS),
    carried=derived(_carried, optional(_NUMBERS)),
    **flattened(itemgetter(0), field_codecs(Trajectory, *_LINE)),
)


TRAINING = schema(
    **common_members("train"),
    steps=INTEGER,
    weights=derived(lambda training: training.trainers[0].count),
    optimizer=derived(lambda training: training.trainers[0].optimizer.name),
    seed=INTEGER,
    reference={
        "kind": derived("reference.kind"),
        "final": derived(lambda run: run.reference.final(run.steps)[:_MANY], _FINALS),
    },
    remedies=derived(_rows_of_remedies, list_of(_REMEDY)),
)


# Networks: the losses of all seeds, and the comparison of the configurations.


def _first(learnings: Learnings) -> Learning:
    return learnings.rows[0][0]


def _rows_of_configurations(learnings: Learnings) -> list[tuple[LearningComparison, list[Learning]]]:
    return list(zip(learnings.compared, learnings.rows, strict=True))


_CONFIGURATION = schema(
    **flattened(itemgetter(0), {"name": field(TEXT, "label")}),
    **flattened(lambda row: row[1][0].configuration, {"setup": _SETUP, **field_codecs(Configuration, *_PRODUCTS)}),
    **flattened(itemgetter(0), {"losses": field(_NUMBERS, "finals")}),
    **flattened(itemgetter(0), field_codecs(LearningComparison, "ratio", "spread", "worse", "diverged")),
    unmoved=derived(lambda row: [learning.unmoved for learning in row[1]]),
    skipped=derived(lambda row: [len(learning.skipped) for learning in row[1]]),
)
LEARNINGS = schema(
    **common_members("train network"),
    problem=derived(lambda learnings: _first(learnings).problem.name),
    parameters=derived(lambda learnings: _first(learnings).problem.parameters),
    layers=derived(lambda learnings: list(_first(learnings).problem.layers)),
    steps=derived(lambda learnings: _first(learnings).steps),
    seeds=derived(lambda learnings: [learning.problem.seed for learning in learnings.rows[0]]),
    reference=TEXT,
    configurations=derived(_rows_of_configurations, list_of(_CONFIGURATION)),
)


# Gradients: underflow in a format, and the errors of difference quotients.


def _underflow(histogram: tuple[tuple[int, int], ...], **fields: Any) -> Underflow:
    exponents, counts = zip(*histogram, strict=True) if histogram else ((), ())
    return Underflow(exponents=exponents, counts=counts, **fields)


UNDERFLOW = schema(
    _underflow,
    **common_members("train underflow"),
    **field_codecs(Underflow, "format", "scale", "total", "nonzero", "not_finite"),
    zero=field(INTEGER, "flushed"),
    subnormal=INTEGER,
    overflow=field(INTEGER, "overflowed"),
    **field_codecs(Underflow, "safe_scale", "least_scale"),
    zero_at_safe_scale=field(optional(INTEGER), "flushed_by_safe_scale"),
    histogram=list_of(tuple_of(INTEGER, INTEGER)),
)


_POINT = schema_of(Point)
_CURVE = schema(dict, way=TEXT, advised=NUMBER, best=derived("best", _POINT), points=list_of(_POINT))


def _curve(function: str, curves: Any, check: Check | None, **fields: Any) -> StepSweep:
    """Return the curve of a document with a single curve and no check; other documents cannot be read back."""
    if len(curves) != 1 or check is not None:
        raise FileFormatError("only a document with one curve and without a check can be read back")
    return StepSweep(**curves[0], **fields)


GRADIENT_CHECK = schema(
    _curve,
    **common_members("train check"),
    function=TEXT,
    x=Member(NUMBER, lambda check: check.curves[0].x, "x"),
    format=Member(FORMAT, lambda check: check.curves[0].format, "format"),
    derivative=Member(NUMBER, lambda check: check.curves[0].derivative, "derivative"),
    differences=field(list_of(_CURVE), "curves"),
    check=optional(schema_of(Check)),
)
