"""Table of all verbs: the definition of each, its `answers` function, and its screen in the explorer.

The functions of an entry import their modules when they are called. So a command loads only the folder of its verb.
"""

from __future__ import annotations

from floatlab.errors import FloatlabError
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from floatlab.verbs.question import Answer, Question, Started, Verb

    Answers: TypeAlias = Callable[[Question, Started | None], list[Answer]]


class Entry(Record):
    """A verb: a function that imports its definition, and a function that imports its `answers` function.

    A verb without `answers`, such as `completion`, is run directly by the command line. `screen` is the name of the
    explorer's screen that shows the answers; the name is empty if no screen shows them.
    """

    verb: Callable[[str], Verb]
    answers: Callable[[], Answers] | None = None
    screen: str = ""


def _show(name: str) -> Verb:
    from floatlab.verbs.show.options import VERB

    return VERB


def _answer_show() -> Answers:
    from floatlab.verbs.show.answer import answers

    return answers


def _convert(name: str) -> Verb:
    from floatlab.verbs.convert.options import VERB

    return VERB


def _answer_convert() -> Answers:
    from floatlab.verbs.convert.answer import answers

    return answers


def _formats(name: str) -> Verb:
    from floatlab.verbs.formats.options import VERB

    return VERB


def _answer_formats() -> Answers:
    from floatlab.verbs.formats.answer import answers

    return answers


def _arithmetic(name: str) -> Verb:
    from floatlab.verbs.arithmetic.options import VERBS

    return VERBS[name]


def _answer_arithmetic() -> Answers:
    from floatlab.verbs.arithmetic.answer import answers

    return answers


def _block(name: str) -> Verb:
    from floatlab.verbs.block.options import VERB

    return VERB


def _answer_block() -> Answers:
    from floatlab.verbs.block.answer import answers

    return answers


def _practice(name: str) -> Verb:
    from floatlab.verbs.practice.options import VERB

    return VERB


def _answer_practice() -> Answers:
    from floatlab.verbs.practice.answer import answers

    return answers


def _vectors(name: str) -> Verb:
    from floatlab.verbs.vectors.options import VERB

    return VERB


def _reduce(name: str) -> Verb:
    from floatlab.verbs.reduce.options import VERBS

    return VERBS[name]


def _answer_reduce() -> Answers:
    from floatlab.verbs.reduce.answer import answers

    return answers


def _reveal(name: str) -> Verb:
    from floatlab.verbs.reveal.options import VERB

    return VERB


def _answer_reveal() -> Answers:
    from floatlab.verbs.reveal.answer import answers

    return answers


def _compare(name: str) -> Verb:
    from floatlab.verbs.compare.options import VERB

    return VERB


def _answer_compare() -> Answers:
    from floatlab.verbs.compare.answer import answers

    return answers


def _audit(name: str) -> Verb:
    from floatlab.verbs.audit.options import VERB

    return VERB


def _answer_audit() -> Answers:
    from floatlab.verbs.audit.answer import answers

    return answers


def _dequantize(name: str) -> Verb:
    from floatlab.verbs.dequantize.options import VERB

    return VERB


def _answer_dequantize() -> Answers:
    from floatlab.verbs.dequantize.answer import answers

    return answers


def _train(name: str) -> Verb:
    from floatlab.verbs.train.options import VERB

    return VERB


def _answer_train() -> Answers:
    from floatlab.verbs.train.answer import answers

    return answers


def _completion(name: str) -> Verb:
    from floatlab.verbs.completion.options import VERB

    return VERB


def _tui(name: str) -> Verb:
    from floatlab.verbs.tui.options import VERB

    return VERB


_OPERATIONS = ("add", "sub", "mul", "div", "rem", "sqrt", "fma", "cmp", "toint", "rint")
_SELECTIONS = ("min", "max", "minnum", "maxnum", "minmag", "maxmag", "minmagnum", "maxmagnum")
_SIGNS = ("negate", "abs", "copysign", "scaleb", "logb", "nextup", "nextdown")
VERBS: dict[str, Entry] = {
    "show": Entry(_show, _answer_show, "inspect"),
    "convert": Entry(_convert, _answer_convert, "inspect"),
    "formats": Entry(_formats, _answer_formats, "formats"),
    **dict.fromkeys((*_OPERATIONS, *_SELECTIONS, *_SIGNS), Entry(_arithmetic, _answer_arithmetic, "arithmetic")),
    "practice": Entry(_practice, _answer_practice),
    "block": Entry(_block, _answer_block, "block"),
    "vectors": Entry(_vectors),
    **dict.fromkeys(("sum", "dot", "matmul"), Entry(_reduce, _answer_reduce, "reduce")),
    "reveal": Entry(_reveal, _answer_reveal, "reduce"),
    "compare": Entry(_compare, _answer_compare, "compare"),
    "audit": Entry(_audit, _answer_audit, "audit"),
    "dequantize": Entry(_dequantize, _answer_dequantize),
    "train": Entry(_train, _answer_train, "train"),
    "completion": Entry(_completion),
    "tui": Entry(_tui),
}


def verb_named(name: str) -> Verb:
    """Return a verb by its name.

    >>> verb_named("show").examples[0]
    'show 1.12156456132 --fp16'
    """
    return VERBS[name].verb(name)


def answer_question(question: Question, started: Started | None = None) -> list[Answer]:
    """Return the answers to a question.

    Verbs such as `show` give one answer per value. Verbs such as `add` give one answer for all values.

    Parameters
    ----------
    started
        Function that is called at the start of a long computation with the total amount of work and its unit. It
        returns the function that receives the amount done.

    Raises
    ------
    FloatlabError
        If the question cannot be answered, or its verb has no `answers` function.

    >>> from floatlab.verbs.question import Question
    >>> answer_question(Question("show", ("1.5",)))[0].codes()
    ['0x3e00', '0x3fc00000']
    """
    return answers_of(question.verb)(question, started)


def asks(name: str) -> bool:
    """Return whether a verb has an `answers` function."""
    return name in VERBS and VERBS[name].answers is not None


def answers_of(name: str) -> Answers:
    """Import and return the `answers` function of a verb; raises FloatlabError if the verb has no such function."""
    entry = VERBS.get(name)
    if entry is None or entry.answers is None:
        raise FloatlabError(f"{name} has no answers: it can only be run on the command line")
    return entry.answers()


def words_of(question: Question) -> list[str]:
    """Return the arguments of the command for a question."""
    return verb_named(question.verb).words(question)


def command_of(question: Question) -> str:
    """Return the command line for a question, to be pasted into a shell."""
    return verb_named(question.verb).command(question)
