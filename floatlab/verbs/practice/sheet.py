"""Exercise sheets: questions about random operations. The same seed gives the same sheet."""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers.random_integers import RandomIntegers
from floatlab.page.model import text_of
from floatlab.record import Record
from floatlab.verbs.arithmetic.answer import answers
from floatlab.verbs.arithmetic.options import VERBS
from floatlab.verbs.practice.exercises import Exercise, exercises, random_operands
from floatlab.verbs.practice.options import DEFAULT_OPERATIONS, DEFAULT_SEED, QUESTIONS, VERB
from floatlab.verbs.question import Question, Scene

_DEFAULT_FORMAT = "e4m3"
_TRIES = 50  # random operations are tried at most this many times
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class ExercisePart(Record):
    """An exercise with its label on the sheet, such as 1a, and the index of the scene that shows the answer.

    A scene is a step of an operation as shown to the user.
    """

    label: str
    exercise: Exercise
    scene: int


class Task(Record):
    """An operation and the exercises about its steps. `shown` is the index of the scene before the first exercise."""

    number: int
    question: Question
    parts: tuple[ExercisePart, ...]
    shown: int

    @property
    def scenes(self) -> tuple[Scene, ...]:
        """The operation step by step."""
        return scenes_of_question(self.question)


class Sheet(Record):
    """An exercise sheet: its tasks, and the `Question` that made it. If `has_key`, its page shows the answers."""

    question: Question
    tasks: tuple[Task, ...]
    has_key: bool = False

    @property
    def parts(self) -> dict[str, ExercisePart]:
        """All questions by their labels."""
        return {part.label: part for task in self.tasks for part in task.parts}

    @property
    def command(self) -> str:
        """The command that makes the sheet."""
        return VERB.command(self.question)

    @property
    def rows(self) -> list[dict[str, object]]:
        """The JSON object of each task."""
        return [_row(task, self.has_key) for task in self.tasks]


def _row(task: Task, has_key: bool) -> dict[str, object]:
    scenes = task.scenes if has_key else ()
    parts: list[dict[str, object]] = []
    for part in task.parts:
        exercise = part.exercise
        row: dict[str, object] = {"label": part.label, "prompt": exercise.prompt, "choices": list(exercise.choices)}
        if has_key:
            row |= {"answers": list(exercise.answers), "reason": text_of(scenes[part.scene].reason)}
        parts.append(row)
    question = task.question
    return {
        "number": task.number, "verb": question.verb, "operands": list(question.values),
        "format": question.formats[0].name, "rounding": question.context.rounding.value,
        "command": VERBS[question.verb].command(question), "parts": parts,
    }  # fmt: skip


def scenes_of_question(question: Question) -> tuple[Scene, ...]:
    """Return the scenes of an operation, with the bits of its operands."""
    return answers(question)[0].scenes(True)


def sheet_of(question: Question) -> Sheet:
    """Return the sheet for a `Question` of `practice`.

    Raises UnsupportedError for formats that are defined by a table, and if no exercises are found.

    >>> sheet = sheet_of(Question("practice", ("add",)).having(seed=7, questions=2))
    >>> [task.question.values for task in sheet.tasks] == [
    ...     task.question.values for task in sheet_of(sheet.question).tasks
    ... ]
    True
    >>> list(sheet.parts)[:2]
    ['1a', '1b']
    """
    formats = question.formats or (parse_format(_DEFAULT_FORMAT),)
    for format in formats:
        if format.is_table:
            raise UnsupportedError(f"practice asks about bits of a significand; {format.name} is given by a table")
    draws = RandomIntegers(question.option("seed", DEFAULT_SEED))
    operations = question.values or DEFAULT_OPERATIONS
    tasks: list[Task] = []
    for number in range(1, question.option("questions", QUESTIONS) + 1):
        tasks.append(_task(number, question, operations, formats, draws, {task.question for task in tasks}))
    return Sheet(question, tuple(tasks), bool(question.option("key")))


def _task(
    number: int,
    question: Question,
    operations: tuple[str, ...],
    formats: tuple[Format, ...],
    draws: RandomIntegers,
    used: set[Question],
) -> Task:
    """Return a task that is not on the sheet yet. If none is found (in a narrow format), return a repeated task."""
    best: Task | None = None
    for _ in range(_TRIES):
        verb, format = operations[draws.below(len(operations))], formats[draws.below(len(formats))]
        values = random_operands(verb, format, draws.below(1 << 30))
        asked = Question(verb, values, (format,), question.context)
        scenes = scenes_of_question(asked)
        found = [(index, each) for index, each in enumerate(exercises(scenes)) if each is not None][: len(_LETTERS)]
        if not found:
            continue
        parts = tuple(
            ExercisePart(f"{number}{letter}", each, index)
            for letter, (index, each) in zip(_LETTERS, found, strict=False)
        )
        best = Task(number, asked, parts, found[0][0] - 1)
        if asked not in used:
            return best
    if best is None:
        names = " or ".join(format.name for format in formats)
        raise UnsupportedError(f"no questions about {' or '.join(operations)} in {names} were found")
    return best
