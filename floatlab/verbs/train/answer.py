"""`train`: one update digit by digit, many under remedies, networks in formats, and what becomes of gradients."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout

from floatlab.errors import FloatlabError, UnsupportedError
from floatlab.files import open_array
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Datum, encode, parse_literal
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.decimals import shortest
from floatlab.record import Record
from floatlab.training import (
    Setup,
    Training,
    UpdateTrace,
    check_gradient,
    compare_learnings,
    learn,
    measure_underflow,
    parse_optimizer,
    parse_remedy,
    step,
    sweep_steps,
    train,
)
from floatlab.training.gradient_check import WAYS
from floatlab.training.gradients import Gradients
from floatlab.training.network.networks import parse_configurations
from floatlab.training.run.trainer import MAX_VALUES
from floatlab.training.validation import checked_number, exactly
from floatlab.verbs.answer import Answer, written
from floatlab.verbs.train.check_functions import function_of
from floatlab.verbs.train.forms import form_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from floatlab.page.model import Chart, Page
    from floatlab.training import Check, Comparison, Configuration, Curve, Learning
    from floatlab.verbs.answer import Started
    from floatlab.verbs.question import Question

STEPS, NETWORK_STEPS = 100, 500  # what is done unless told
NETWORKS = ("fp32", "fp16", "fp16+master+dynamic", "bf16", "bf16+stochastic", "fp8+master")
_FORMATS = ("grads", "accumulator", "state", "master", "update_format")
_RECORDED = 1 << 20  # numbers that a run keeps of its weights


class Learnings(Record):
    """What networks learned: a row for each configuration, with one for each seed, compared with the reference."""

    rows: list[list[Learning]]
    compared: list[Comparison]
    reference: str


class GradientCheck(Record):
    """Curves of one function at one point, and what a reported derivative was found to be, if one was."""

    function: str
    curves: tuple[Curve, ...]
    check: Check | None = None


@in_default_mode
def numbers_named(word: str) -> Any:
    """Return what a word names: a number as text, so that nothing rounds it before its format does, or an array.

    A list of numbers stays text, VALUE@FORMAT is read into that format, and a file or `random:…` is read as it is.
    Raises FloatlabError.

    >>> numbers_named("1/3"), numbers_named("0.1,2^-24"), numbers_named("0.1@fp16")
    ('1/3', ['0.1', '2^-24'], Datum(binary16 0x2e66 = 0.1))
    """
    if _is_number(word):
        return word
    text, at, format = word.rpartition("@")
    if at and _is_number(text):
        return encode(text, format)
    parts = [each.strip() for each in word.split(",")]
    if len(parts) > 1 and all(_is_number(each) for each in parts):
        return parts
    with open_array(word, "binary64") as source:
        return source.whole()


def _is_number(text: str) -> bool:
    try:
        parse_literal(text)
    except FloatlabError:
        return False
    return True


@in_default_mode
def setup_of(question: Question) -> Setup:
    """Return the setup of a question, before any remedy."""
    formats = _formats_of(question)
    formats["update"] = formats.pop("update_format", None)  # its name where there is no update beside it
    return Setup(**formats, context=question.context)


def _formats_of(question: Question) -> dict[str, Any]:
    """Return the formats of a setup as the question has them."""
    options = {name: question.option(name) for name in _FORMATS if question.option(name) is not None}
    return {"weights": question.option("weights") or next(iter(question.formats), "binary16"), **options}


@in_default_mode
def trace_step(question: Question) -> UpdateTrace:
    """Return the update that a question asks for; raises FloatlabError.

    >>> from floatlab.verbs.question import Question
    >>> trace_step(Question("train", ("step", "1.125", "0.00041999"))).why.value
    'below half'
    """
    _, weight, *rest = question.values
    grad, update = question.option("grad"), question.option("update", rest[0] if rest else None)
    setup = setup_of(question)
    for word in question.option("remedies", ()):
        setup = parse_remedy(word)(setup)
    optimizer = None if grad is None else parse_optimizer(question.option("optimizer"), question.option("lr"), False)
    return step(_single(weight), _single(update), grad=_single(grad), optimizer=optimizer, setup=setup)


def _single(word: str | None) -> Any:
    found = None if word is None else numbers_named(word)
    if found is not None and not isinstance(found, str) and hasattr(found, "__len__"):
        raise UnsupportedError(f"a step is of one number, and {word} names {len(found)}")
    return found


def _step_answer(question: Question) -> Answer:
    found = trace_step(question)

    def page() -> Page:
        from floatlab.verbs.train.step_page import step_page

        return step_page(found, bool(question.option("brief", False)))

    words, codes = (lambda: [shortest(found.after)]), (lambda: [hexadecimal_code(found.after)])
    return Answer(page, written(found), words, codes, results=(found.after,), found=found)


@in_default_mode
def train_question(question: Question, started: Started | None = None) -> Training:
    """Return the steps that a question asks for, done; raises FloatlabError.

    >>> from floatlab.verbs.question import Question
    >>> asked = Question("train", ("1.125",)).having(update="0.00041999", steps=101, remedies=("plain", "fp32"))
    >>> [line.final for line in train_question(asked).lines]
    [1.125, 1.1674174070358276]
    """
    grad, update = question.option("grad"), question.option("update")
    start, given = numbers_named(question.values[0]), numbers_named(str(update if grad is None else grad))
    _check_size(start, "start")
    _check_size(given, "update" if grad is None else "gradient")
    count = len(start) if not isinstance(start, str) and hasattr(start, "__len__") else 0
    steps = question.option("steps")
    if steps is None:
        steps = Gradients(given, max(count, 1), not count, "update" if grad is None else "gradient").length or STEPS
    every = question.option("every") or max(1, -(-steps * max(count, 1) // _RECORDED))
    if (kept := (steps // every + 1) * max(count, 1)) > max(MAX_VALUES, 2 * count):
        raise UnsupportedError(f"recording every {every:,} steps keeps {kept:,} numbers; at most {MAX_VALUES:,} are")
    found = train(
        start,
        given if grad is not None else None,
        update=given if grad is None else None,
        steps=0,
        lr=question.option("lr"),
        optimizer=question.option("optimizer"),
        remedies=question.option("remedies"),
        context=question.context,
        every=every,
        **_formats_of(question),
    )
    more = 0 if found.reference.is_exact else 1
    found.advance(steps, None if started is None else started(steps * (len(found.trainers) + more), "steps"))
    return found


def _check_size(numbers: Any, name: str) -> None:
    """Refuse numbers beyond binary64, which holds all those of a run; raises UnsupportedError."""
    one = isinstance(numbers, str | Datum)
    for each in (numbers,) if one else numbers if isinstance(numbers, list) else ():
        try:
            float(exactly(each, name))
        except OverflowError:
            raise UnsupportedError(f"{name}, {each}, is beyond binary64, which holds the numbers of a run") from None


@in_default_mode
def training_answer(question: Question, found: Training) -> Answer:
    """Return the answer to a question about many steps, as far as they are done; what it shows is as of then."""
    given = question.option("update") or question.option("grad")

    def page() -> Page:
        from floatlab.verbs.train.run_page import training_page

        return training_page(found, str(given), question.values[0])

    def table() -> str:
        from floatlab.verbs.train.csv import training_table

        return training_table(found)

    def chart() -> Chart:
        from floatlab.verbs.train.run_page import values_chart

        return values_chart(found)

    def final(word: Any) -> list[str]:
        lines = []
        for run in found.runs:
            fmt, values = run.setup.weights, run.values[-1].reshape(-1).tolist()
            lines.append(",".join(word(encode(x, fmt)) if isinstance(fmt, Format) else f"{x!r}" for x in values))
        return lines

    return Answer(
        page,
        written(found),
        lambda: final(shortest),
        lambda: final(hexadecimal_code),
        found=found,
        table=table,
        chart=chart,
    )


@in_default_mode
def learn_question(
    question: Question, started: Started | None = None
) -> tuple[list[list[Learning]], list[Comparison], str]:
    """Return what networks learned, how they compare, and beside which of them; raises FloatlabError."""
    chosen = parse_configurations(question.option("configs", NETWORKS))
    seeds, steps = question.option("seeds", 1), question.option("steps", NETWORK_STEPS)
    first = question.context.seed
    found = learn(
        question.option("problem", "network"),
        chosen,
        seeds=range(first, first + seeds),
        steps=steps,
        lr=question.option("lr"),
        optimizer=question.option("optimizer"),
        every=max(steps // 100, 1),
        tick=None if started is None else started(steps * seeds * len(chosen), "steps"),
        **shape_of(question),
    )
    reference = reference_of(chosen)
    return found, compare_learnings(found, reference), reference


def shape_of(question: Question) -> dict[str, Any]:
    """Return what a question says of a network and its data."""
    names = ("samples", "features", "hidden", "noise", "weight")
    shape = {name: question.option(name) for name in names if question.option(name) is not None}
    if "noise" in shape:
        shape["noise"] = checked_number(shape["noise"], "noise", at_least=0)
    return shape


def reference_of(configurations: Iterable[Configuration]) -> str:
    """Return which configuration the others stand beside: fp32, else the first."""
    labels = [each.label for each in configurations]
    return "fp32" if "fp32" in labels else labels[0]


def _network_answer(question: Question, started: Started | None) -> Answer:
    return learned_answer(*learn_question(question, started))


@in_default_mode
def learned_answer(found: list[list[Learning]], compared: list[Comparison], reference: str) -> Answer:
    """Return the answer that shows what networks learned."""

    def page() -> Page:
        from floatlab.verbs.train.network_page import learnings_page

        return learnings_page(found, compared, reference)

    def table() -> str:
        from floatlab.verbs.train.csv import learnings_table

        return learnings_table(found)

    def chart() -> Chart:
        from floatlab.verbs.train.network_page import losses_chart

        return losses_chart(found)

    def words() -> list[str]:
        return [",".join(f"{loss:.6g}" for loss in each.finals) for each in compared]

    return Answer(
        page, written(Learnings(found, compared, reference)), words, words, found=found, table=table, chart=chart
    )


def _underflow_answer(question: Question) -> Answer:
    word = question.values[1]
    gradients = numbers_named(word)
    if isinstance(gradients, str | list):
        with open_array(word, "binary64") as source:
            gradients = source.whole()
    format = question.option("grads") or next(iter(question.formats), "binary16")
    found = measure_underflow(gradients, format, question.option("scale", 1), rounding=question.context.rounding.value)

    def page() -> Page:
        from floatlab.verbs.train.gradients_page import underflow_page

        return underflow_page(found, word)

    def table() -> str:
        from floatlab.verbs.train.csv import underflow_table

        return underflow_table(found)

    said = ["none" if found.safe_scale is None else f"{found.safe_scale:.17g}"]
    return Answer(page, written(found), lambda: said, lambda: said, found=found, table=table)


def _check_answer(question: Question) -> Answer:
    _, name, x = question.values
    format = next(iter(question.formats), None)
    target = function_of(name, x, format)
    call, fmt, own = target.call, target.format, target.own
    reported, derivative = question.option("reported"), question.option("derivative")
    curves = [target.checked(sweep_steps(call, x, fmt, way, derivative=derivative, own=own)) for way in WAYS]
    check = None if reported is None else check_gradient(call, x, reported, fmt, h=question.option("h"), own=own)

    def page() -> Page:
        from floatlab.verbs.train.gradients_page import check_page

        return check_page(curves, check, name)

    def table() -> str:
        from floatlab.verbs.train.csv import check_table

        return check_table(curves)

    def chart() -> Chart:
        from floatlab.verbs.train.gradients_page import errors_chart

        return errors_chart(curves)

    records = written(GradientCheck(name, tuple(curves), check))
    words = [f"{curves[-1].best.h:.6g}" if check is None else check.verdict]
    status = 1 if check is not None and check.verdict == "a bug" else 0
    return Answer(
        page,
        records,
        lambda: words,
        lambda: words,
        found=(curves, check),
        status=status,
        table=table,
        chart=chart,
    )


@in_default_mode
def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question: in the form that its first value names, else many steps."""
    form = form_of(question)
    if form == "step":
        return [_step_answer(question)]
    if form == "network":
        return [_network_answer(question, started)]
    if form == "underflow":
        return [_underflow_answer(question)]
    if form == "check":
        with redirect_stdout(sys.stderr):  # what functions print is no answer
            return [_check_answer(question)]
    return [training_answer(question, train_question(question, started))]
