"""Every verb, one entry each: its folder, what answers its questions, and the screen of the explorer that shows them.

An entry imports only when it is asked: a command loads the folder of its own verb and no other.
"""

from __future__ import annotations

from importlib import import_module

from floatlab.errors import FloatlabError
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from floatlab.verbs.answer import Answer, Started
    from floatlab.verbs.question import Question, Verb

    Answers: TypeAlias = Callable[[Question, Started | None], list[Answer]]


class Entry(Record):
    """A verb: one function imports what it takes, another what answers its questions.

    A verb without `answers` asks no question; the command line runs it by itself. `screen` is the name of the
    explorer's screen that shows the answers, empty for a verb of the command line only.
    """

    verb: Callable[[str], Verb]
    answers: Callable[[], Answers] | None = None
    screen: str = ""


def entry(folder: str, screen: str = "", answer: str = "answer") -> Entry:
    """Return the entry of the verbs of a folder: `VERB` or `VERBS` of its `options`, and `answers` of `answer`."""

    def verb(name: str) -> Verb:
        options = import_module(f"{folder}.options")
        chosen: Verb = options.VERBS[name] if hasattr(options, "VERBS") else options.VERB
        return chosen

    def answers() -> Answers:
        imported: Answers = import_module(f"{folder}.{answer}").answers
        return imported

    return Entry(verb, answers if answer else None, screen)


_OPERATIONS = ("add", "sub", "mul", "div", "rem", "sqrt", "fma", "cmp", "toint", "rint")
VERBS: dict[str, Entry] = {
    "show": entry("floatlab.verbs.show", "inspect"),
    "convert": entry("floatlab.verbs.convert", "inspect"),
    "formats": entry("floatlab.verbs.formats", "formats"),
    **dict.fromkeys(_OPERATIONS, entry("floatlab.verbs.arithmetic", "arithmetic")),
    "block": entry("floatlab.verbs.block"),
    "vectors": entry("floatlab.verbs.vectors", answer=""),
    **dict.fromkeys(("sum", "dot", "matmul"), entry("floatlab.verbs.reduce", "reduce", "dispatch")),
    "reveal": entry("floatlab.verbs.reveal", "reduce"),
    "compare": entry("floatlab.verbs.compare", "compare"),
    "train": entry("floatlab.verbs.train", "train"),
    "completion": entry("floatlab.verbs.completion", answer=""),
    "tui": entry("floatlab.verbs.tui", answer=""),
}


def verb_named(name: str) -> Verb:
    """Return a verb by its name.

    >>> verb_named("show").examples[0]
    'show 1.12156456132 --fp16'
    """
    return VERBS[name].verb(name)


def answer_question(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question: one answer a value where values stand alone, else one for all.

    Parameters
    ----------
    started
        Called where the work is long, with how much there is and of what; returns what counts the work done.

    Raises
    ------
    FloatlabError
        What the question asks has no answer, or its verb asks no question.

    >>> from floatlab.verbs.question import Question
    >>> answer_question(Question("show", ("1.5",)))[0].codes()
    ['0x3e00', '0x3fc00000']
    """
    return answers_of(question.verb)(question, started)


def asks(name: str) -> bool:
    """Return whether a verb asks questions; the command line runs the others by itself."""
    return name in VERBS and VERBS[name].answers is not None


def answers_of(name: str) -> Answers:
    """Import and return what answers the questions of a verb; raises FloatlabError for a verb that asks none."""
    entry = VERBS.get(name)
    if entry is None or entry.answers is None:
        raise FloatlabError(f"{name} is not a question")
    return entry.answers()


def words_of(question: Question) -> list[str]:
    """Return the words of the command that asks a question."""
    return verb_named(question.verb).words(question)


def command_of(question: Question) -> str:
    """Return the command line that asks a question, to be pasted into a shell."""
    return verb_named(question.verb).command(question)
