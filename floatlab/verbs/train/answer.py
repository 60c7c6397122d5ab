"""The answers of `train`: one update, many updates with remedies, networks, underflow, and gradient checks."""

from __future__ import annotations

from collections.abc import Callable, Sized
from typing import TYPE_CHECKING, Any

from floatlab.arrays.sources import Source
from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Datum, encode, parse_literal
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.page.csv_text import as_csv
from floatlab.training.setup import Setup, parse_remedy
from floatlab.training.validation import checked_number, exactly
from floatlab.verbs.option import can_read
from floatlab.verbs.question import Answer, Question, Started, plain_answer
from floatlab.verbs.standard_output import printing_aside
from floatlab.verbs.train.options import form_of

if TYPE_CHECKING:
    from floatlab.training.learner import Learning
    from floatlab.training.networks import Configuration
    from floatlab.training.trace import UpdateTrace
    from floatlab.training.trajectories import Training

STEPS = 100  # default number of steps
NETWORK_STEPS = 500
NETWORKS = ("fp32", "fp16", "fp16+master+dynamic", "bf16", "bf16+stochastic", "fp8+master")
# An argument; a number stays text until it is rounded, once, to its format.
Numbers = str | list[str] | Datum | Array | Source
_RECORDED = 1 << 20  # without --every, a run records at most about this many numbers


@in_default_mode
def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question; raises FloatlabError.

    The first value of the question may name a subcommand. If it does not, the question is about many updates.
    """
    forms = {"run": _run, "step": _step, "network": _network, "underflow": _underflow, "check": _check}
    return [forms[form_of(question)](question, started)]


# The arguments of a question.


@in_default_mode
def numbers_named(word: str) -> Numbers:
    """Return the value of an argument.

    A number stays text, and a list becomes a list of texts, so that each number is rounded only once. VALUE@FORMAT is
    rounded to FORMAT and becomes a Datum. A file or `random:…` becomes an array. Raises FloatlabError.

    >>> numbers_named("1/3"), numbers_named("0.1,2^-24"), numbers_named("0.1@fp16")
    ('1/3', ['0.1', '2^-24'], Datum(binary16 0x2e66 = 0.1))
    """
    if can_read(word, parse_literal):
        return word
    text, at, format = word.rpartition("@")
    if at and can_read(text, parse_literal):
        return encode(text, format)
    parts = [part.strip() for part in word.split(",")]
    is_list = len(parts) > 1 and all(can_read(part, parse_literal) for part in parts)
    return parts if is_list else _array_named(word)


def _array_named(word: str) -> Array | Source:
    from floatlab.files import open_array

    with open_array(word, "binary64") as source:
        return source.whole()


@in_default_mode
def setup_of(question: Question) -> Setup:
    """Return the setup of a question without its remedies: the context, and the format of each stage of an update."""
    formats = _formats_of(question)
    formats["update"] = formats.pop("update_format", None)  # `Setup` calls it `update`
    return Setup(**formats, context=question.context)


def _formats_of(question: Question) -> dict[str, Any]:
    """Return the format of the weights (default binary16), and the other formats that the question names."""
    names = ("grads", "accumulator", "state", "master", "update_format")
    options = {name: question.option(name) for name in names if question.option(name) is not None}
    return {"weights": question.option("weights") or next(iter(question.formats), "binary16"), **options}


# Many steps.


@in_default_mode
def train_question(question: Question, started: Started | None = None) -> Training:
    """Do the training that a question describes, and return the result; raises FloatlabError.

    >>> from floatlab.verbs.question import Question
    >>> asked = Question("train", ("1.125",)).having(update="0.00041999", steps=101, remedies=("plain", "fp32"))
    >>> [line.final for line in train_question(asked).lines]
    [1.125, 1.1674174070358276]
    """
    from floatlab.training.gradients import Gradients
    from floatlab.training.trainer import MAX_VALUES
    from floatlab.training.trajectories import train

    name = "update" if question.option("grad") is None else "gradient"
    start, given = numbers_named(question.values[0]), numbers_named(_given(question))
    _check_size(start, "start")
    _check_size(given, name)
    length = len(start) if isinstance(start, Sized) and not isinstance(start, str) else 0
    count, steps = max(length, 1), question.option("steps")
    if steps is None:
        steps = Gradients(given, count, not length, name).length or STEPS
    every = question.option("every") or max(1, -(-steps * count // _RECORDED))
    if (kept := (steps // every + 1) * count) > max(MAX_VALUES, 2 * count):
        raise UnsupportedError(
            f"recording every {every:,} steps would store {kept:,} numbers; at most {MAX_VALUES:,} are stored"
        )
    training = train(
        start, given if name == "gradient" else None, update=given if name == "update" else None, steps=0,
        lr=question.option("lr"), optimizer=question.option("optimizer"), remedies=question.option("remedies"),
        context=question.context, every=every, **_formats_of(question),
    )  # fmt: skip
    many = len(training.trainers) + (not training.reference.is_exact)
    training.advance(steps, None if started is None else started(steps * many, "steps"))
    return training


def _given(question: Question) -> str:
    grad = question.option("grad")
    return str(question.option("update") if grad is None else grad)


def _check_size(numbers: Numbers, name: str) -> None:
    """Raise UnsupportedError for numbers beyond the range of binary64, because runs are recorded in binary64."""
    exact = [numbers] if isinstance(numbers, str | Datum) else numbers if isinstance(numbers, list) else []
    for number in exact:
        try:
            float(exactly(number, name))
        except OverflowError:
            raise UnsupportedError(f"{name}, {number}, is beyond binary64, in which runs are recorded") from None


@in_default_mode
def training_answer(question: Question, training: Training) -> Answer:
    """Return the answer for a training, which may be unfinished."""
    from floatlab.verbs.train.run_page import training_page, training_table, values_chart

    def final(word: Callable[[Datum], str]) -> list[str]:
        lines = []
        for run in training.runs:
            fmt, values = run.setup.weights, run.values[-1].reshape(-1).tolist()
            lines.append(",".join(word(encode(x, fmt)) if isinstance(fmt, Format) else f"{x!r}" for x in values))
        return lines

    answer = plain_answer(training, lambda: training_page(training, _given(question), question.values[0]))
    table, chart = lambda: training_table(training), lambda: values_chart(training)
    words, codes = lambda: final(shortest), lambda: final(hexadecimal_code)
    return answer.replace(words=words, codes=codes, table=table, chart=chart)


def _run(question: Question, started: Started | None) -> Answer:
    return training_answer(question, train_question(question, started))


# One step.


@in_default_mode
def trace_step(question: Question) -> UpdateTrace:
    """Return the traced update that a question describes; raises FloatlabError.

    >>> from floatlab.verbs.question import Question
    >>> trace_step(Question("train", ("step", "1.125", "0.00041999"))).why.value
    'below half'
    """
    from floatlab.training.optimizers import parse_optimizer
    from floatlab.training.trace import step

    _, weight, *rest = question.values
    grad, update = question.option("grad"), question.option("update", rest[0] if rest else None)
    setup = setup_of(question)
    for word in question.option("remedies", ()):
        setup = parse_remedy(word)(setup)
    optimizer = None if grad is None else parse_optimizer(question.option("optimizer"), question.option("lr"), False)
    return step(_single(weight), _single(update), grad=_single(grad), optimizer=optimizer, setup=setup)


def _single(word: str | None) -> object:
    number = None if word is None else numbers_named(word)
    if isinstance(number, Sized) and not isinstance(number, str):
        raise UnsupportedError(f"a step takes one number, but {word} has {len(number)}")
    return number


def _step(question: Question, started: Started | None) -> Answer:
    from floatlab.verbs.train.step_page import step_page

    trace = trace_step(question)
    answer = plain_answer(trace, lambda: step_page(trace, question.option("brief", False)), shortest(trace.after))
    return answer.replace(codes=lambda: [hexadecimal_code(trace.after)], results=(trace.after,))


# Networks.


def _network(question: Question, started: Started | None) -> Answer:
    from floatlab.training.learner import learn

    chosen, seeds, steps, shape = network_of(question)
    rows = learn(
        question.option("problem", "network"), chosen, seeds=seeds, steps=steps, lr=question.option("lr"),
        optimizer=question.option("optimizer"), every=max(steps // 100, 1),
        tick=None if started is None else started(steps * len(seeds) * len(chosen), "steps"), **shape,
    )  # fmt: skip
    return network_answer(rows)


def network_of(question: Question) -> tuple[list[Configuration], range, int, dict[str, Any]]:
    """Return the arguments of a question about networks: configurations, seeds, steps, and options of the problem."""
    from floatlab.training.networks import parse_configurations

    first, seeds = question.context.seed, question.option("seeds", 1)
    chosen = parse_configurations(question.option("configs", NETWORKS))
    names = ("samples", "features", "hidden", "noise", "weight")
    shape = {name: question.option(name) for name in names if question.option(name) is not None}
    if "noise" in shape:
        shape["noise"] = checked_number(shape["noise"], "noise", at_least=0)
    return chosen, range(first, first + seeds), question.option("steps", NETWORK_STEPS), shape


@in_default_mode
def network_answer(rows: list[list[Learning]]) -> Answer:
    """Return the answer for trained networks. `rows` has a row for each configuration, with an entry for each seed."""
    from floatlab.verbs.train.network_page import Learnings, losses_chart, network_page

    learnings = Learnings.of(rows)
    finals = [",".join(f"{loss:.6g}" for loss in each.finals) for each in learnings.compared]
    lines = (
        (each.configuration.label, each.problem.seed, at, loss)
        for row in rows
        for each in row
        for at, loss in zip(each.at.tolist(), each.losses.tolist(), strict=True)
    )
    return plain_answer(learnings, lambda: network_page(learnings), *finals).replace(
        found=rows,
        table=lambda: as_csv(("configuration", "seed", "step", "loss"), lines),
        chart=lambda: losses_chart(rows),
    )


# Gradients.


def _underflow(question: Question, started: Started | None) -> Answer:
    from floatlab.training.underflow import measure_underflow
    from floatlab.verbs.train.gradients_page import underflow_page

    word = question.values[1]
    gradients = numbers_named(word)
    if isinstance(gradients, str | list):
        gradients = _array_named(word)
    format = question.option("grads") or next(iter(question.formats), "binary16")
    found = measure_underflow(gradients, format, question.option("scale", 1), rounding=question.context.rounding.value)
    words = ["none" if found.safe_scale is None else f"{found.safe_scale:.17g}"]
    answer = plain_answer(found, lambda: underflow_page(found, word), *words)
    return answer.replace(table=lambda: as_csv(("exponent", "gradients"), found.histogram))


def _check(question: Question, started: Started | None) -> Answer:
    from floatlab.training.gradient_check import WAYS, check_gradient, sweep_steps
    from floatlab.verbs.train.functions import function_of
    from floatlab.verbs.train.gradients_page import GradientCheck, check_page, errors_chart

    _, name, x = question.values
    reported, derivative = question.option("reported"), question.option("derivative")
    with printing_aside():
        target = function_of(name, x, next(iter(question.formats), None))
        call, fmt, every = target.call, target.format, target.round_all
        curves = [
            target.checked(sweep_steps(call, x, fmt, way, derivative=derivative, round_all=every)) for way in WAYS
        ]
        check = (
            None
            if reported is None
            else check_gradient(call, x, reported, fmt, h=question.option("h"), round_all=every)
        )
    found = GradientCheck(name, tuple(curves), check)
    words = [f"{curves[-1].best.h:.6g}" if check is None else check.verdict]
    columns = curves[0].points[0]._fields
    rows = ((curve.way, *(getattr(point, name) for name in columns)) for curve in curves for point in curve.points)
    return plain_answer(found, lambda: check_page(found), *words).replace(
        found=(curves, check),
        status=1 if check is not None and check.verdict == "a bug" else 0,
        table=lambda: as_csv(("difference", *columns), rows),
        chart=lambda: errors_chart(curves),
    )
