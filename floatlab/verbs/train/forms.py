"""The subcommands of `train`, and the parts of a question that the explorer shows in boxes."""

from __future__ import annotations

from floatlab.record import Record
from floatlab.verbs.question import Question
from floatlab.verbs.train.options import form_of

# The title and the default question of each subcommand.
FORMS: dict[str, tuple[str, tuple[str, ...]]] = {
    "run": ("many steps", ("train", "1.125", "--update", "0.00041999", "--steps", "101")),
    "step": ("one update", ("train", "step", "1.125", "0.00041999", "--fp16")),
    "network": ("networks", ("train", "network", "--configs", "fp32,fp16,bf16,bf16+stochastic", "--steps", "200")),
    "underflow": ("underflow", ("train", "underflow", "random:lognormal:1000:seed=1:mean=-14:sigma=3", "--fp16")),
    "check": ("differences", ("train", "check", "x^3", "1.5", "--reported", "6.8")),
}
_STEP_OPTIONS = (
    "update", "grad", "lr", "optimizer", "remedies", "weights", "grads", "update_format", "accumulator", "state",
)  # fmt: skip


class FormPart(Record):
    """A part of a question, shown in a box: its name, and the subcommands (`forms`) that have it.

    `place` is the index of the part among the values of the question. The word `step` is not counted there, but the
    words `underflow` and `check` are. If `place` is None, the part is an option. `none` is the placeholder of the box.
    If `is_array` is true, the value may be a file. `label` replaces the name on the screen.
    """

    name: str
    forms: tuple[str, ...]
    place: int | None = None
    none: str = ""
    is_array: bool = False
    label: str = ""


PARTS = (
    FormPart("weight", ("run", "step"), 0, is_array=True),
    FormPart("update", ("run", "step"), is_array=True),
    FormPart("grad", ("run", "step"), is_array=True, label="gradient"),
    FormPart("gradients", ("underflow",), 1, is_array=True),
    FormPart("function", ("check",), 1),
    FormPart("x", ("check",), 2),
    FormPart("lr", ("run", "step", "network")),
    FormPart("steps", ("run", "network")),
    FormPart("seeds", ("network",), none="1"),
    FormPart("hidden", ("network",), none="56"),
    FormPart("scale", ("underflow",), none="1"),
    FormPart("reported", ("check",), none="none"),
    FormPart("h", ("check",), none="by theory"),
)


def has(question: Question, part: FormPart) -> bool:
    """Return whether a part belongs to a question.

    A question about updates has either an update, or a gradient and a learning rate. A gradient check has the step `h`
    only if a derivative is reported.
    """
    form = form_of(question)
    if form in ("run", "step") and part.name in ("grad", "lr", "update"):
        return (question.option("grad") is None) == (part.name == "update")
    if part.name == "h":
        return form == "check" and question.option("reported") is not None
    return form in part.forms


def text_in(question: Question, part: FormPart) -> str:
    """Return the text that the box of a part shows for a question; empty if the question does not have the part.

    >>> text_in(Question("train", ("step", "1.125", "0.1")), PARTS[1])
    '0.1'
    """
    value = question.option(part.name)
    if part.place is not None:
        place = part.place + (form_of(question) == "step")
        value = question.values[place] if place < len(question.values) else None
    elif part.name == "update" and value is None and form_of(question) == "step":
        value = question.values[2] if len(question.values) > 2 else None
    return "" if value is None else str(value)


def with_text(question: Question, part: FormPart, text: str) -> Question:
    """Return the question with one part set to `text`.

    If the part is an option that has a default, an empty text resets the option to this default.

    >>> from floatlab.verbs.registry import command_of
    >>> command_of(with_text(Question("train", ("step", "1.125", "0.1")), PARTS[1], "0.2"))
    'floatlab train step 1.125 0.2'
    """
    text = text.strip()
    values = list(question.values)
    if part.place is not None:
        values[part.place + (form_of(question) == "step")] = text
        return question.replace(values=tuple(values))
    if part.name == "update" and form_of(question) == "step":
        return question.replace(values=(*values[:2], text)).having(update=None)
    # An empty required part is set, too, so that the error is reported.
    return question.having(**{part.name: text if text or part.name in ("update", "grad") else None})


def turned(question: Question, rate: str) -> Question:
    """Switch a question from an update to a gradient with the learning rate `rate`, or from a gradient to an update."""
    grad = question.option("grad")
    if grad is None:
        given = text_in(question, next(each for each in PARTS if each.name == "update"))
        return question.replace(values=question.values[:2]).having(update=None, grad=given, lr=rate)
    return question.having(update=grad, grad=None, lr=None, optimizer=None)


def in_form(question: Question, form: str, remedy: str) -> Question | None:
    """Convert a question about many updates (`run`) to a question about one update (`step`), or the reverse.

    `form` is the subcommand of the new question. A question about one update uses the remedy `remedy`. Returns None for
    other subcommands.

    >>> many = Question("train", ("1.125",)).having(update="0.1", steps=5, remedies=("plain", "kahan"))
    >>> from floatlab.verbs.registry import command_of
    >>> command_of(in_form(many, "step", "kahan"))
    'floatlab train step 1.125 --remedies kahan --update 0.1'
    """
    if {form_of(question), form} != {"run", "step"}:
        return None
    kept = {name: question.option(name) for name in _STEP_OPTIONS}
    values = question.values[1:2]
    if form == "step":
        values = ("step", *question.values)
        kept["remedies"] = None if remedy == "plain" else (remedy,)
    else:
        kept["update"] = text_in(question, PARTS[1]) or None
        words = question.option("remedies", ())
        kept["remedies"] = ("plain", "+".join(words)) if words else None
    return Question("train", values, question.formats, question.context).having(**kept)
