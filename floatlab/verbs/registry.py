"""Every verb, one entry each: its folder, and the screen of the explorer that shows its answers.

A folder's `options.py` has the verb, its `answer.py` what answers questions. Each is imported only when it is asked: a
command loads the folder of its own verb and no other.
"""

from __future__ import annotations

from importlib import import_module

from floatlab.errors import FloatlabError
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from floatlab.verbs.question import Answer, Question, Started, Verb

    Answers: TypeAlias = Callable[[Question, Started | None], list[Answer]]


class Entry(Record):
    """A verb: its folder below `floatlab.verbs`, and the name of the explorer's screen that shows its answers.

    `screen` is empty for a verb of the command line only. A verb that does not ask is no question: the command line
    runs it by itself.
    """

    folder: str
    screen: str = ""
    asks: bool = True


_OPERATIONS = ("add", "sub", "mul", "div", "rem", "sqrt", "fma", "cmp", "toint", "rint")
VERBS: dict[str, Entry] = {
    "show": Entry("show", "inspect"),
    "convert": Entry("convert", "inspect"),
    "formats": Entry("formats", "formats"),
    **dict.fromkeys(_OPERATIONS, Entry("arithmetic", "arithmetic")),
    "block": Entry("block"),
    "vectors": Entry("vectors", asks=False),
    **dict.fromkeys(("sum", "dot", "matmul"), Entry("reduce", "reduce")),
    "reveal": Entry("reveal", "reduce"),
    "compare": Entry("compare", "compare"),
    "train": Entry("train", "train"),
    "completion": Entry("completion", asks=False),
    "tui": Entry("tui", asks=False),
}


def verb_named(name: str) -> Verb:
    """Import and return a verb by its name.

    >>> verb_named("show").examples[0]
    'show 1.12156456132 --fp16'
    """
    options = vars(import_module(f"floatlab.verbs.{VERBS[name].folder}.options"))
    verb: Verb = options["VERBS"][name] if "VERBS" in options else options["VERB"]  # several verbs may share a folder
    return verb


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
    return name in VERBS and VERBS[name].asks


def answers_of(name: str) -> Answers:
    """Import and return what answers the questions of a verb; raises FloatlabError for a verb that asks none."""
    if not asks(name):
        raise FloatlabError(f"{name} is not a question")
    answers: Answers = import_module(f"floatlab.verbs.{VERBS[name].folder}.answer").answers
    return answers


def words_of(question: Question) -> list[str]:
    """Return the words of the command that asks a question."""
    return verb_named(question.verb).words(question)


def command_of(question: Question) -> str:
    """Return the command line that asks a question, to be pasted into a shell."""
    return verb_named(question.verb).command(question)
