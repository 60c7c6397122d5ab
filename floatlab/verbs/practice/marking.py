"""Marks the answers in a text file, and finds the probable mistake behind a wrong result."""

from __future__ import annotations

import re
from enum import Enum

from floatlab.errors import FileFormatError, FloatlabError, quoted
from floatlab.files.safe_open import named, open_file, read_start
from floatlab.numbers.derivation import Combine
from floatlab.numbers.rounding import IN_WORDS, Direction
from floatlab.record import Record
from floatlab.verbs.practice.exercises import Exercise, exercises
from floatlab.verbs.practice.sheet import ExercisePart, Sheet, Task, scenes_of_question

_MOST_BYTES = 1 << 20
_LINE = re.compile(r"([0-9]{1,4}) ?([a-z])\s*[:.)=]?\s*(.*)", re.IGNORECASE | re.DOTALL)
_SHOWN = 60  # a message repeats up to this many characters of an answer


class AnswerVerdict(Enum):
    """The verdict on an answer."""

    RIGHT = "right"
    WRONG = "wrong"
    NOT_AN_ANSWER = "not an answer"
    MISSING = "missing"


class AnswerMark(Record):
    """The mark of one question: the answer given, the verdict, and the probable mistake (empty if none is known)."""

    part: ExercisePart
    given: str
    verdict: AnswerVerdict
    mistake: str = ""

    @property
    def is_right(self) -> bool:
        """Whether the answer is right."""
        return self.verdict is AnswerVerdict.RIGHT


class Marking(Record):
    """The marks of all questions, grouped by task. `unread` are messages about lines that could not be read."""

    sheet: Sheet
    source: str
    marks: tuple[tuple[AnswerMark, ...], ...]
    unread: tuple[str, ...] = ()

    @property
    def command(self) -> str:
        """The command that marks the answers."""
        return self.sheet.command

    @property
    def rows(self) -> list[dict[str, object]]:
        """The JSON object of each mark."""
        return [
            {
                "label": mark.part.label, "given": mark.given, "verdict": mark.verdict.value,
                "answer": mark.part.exercise.answers[0], "mistake": mark.mistake,
            }
            for marks in self.marks
            for mark in marks
        ]  # fmt: skip

    @property
    def right(self) -> int:
        """The number of right answers."""
        return sum(mark.is_right for marks in self.marks for mark in marks)

    @property
    def asked(self) -> int:
        """The number of questions."""
        return sum(map(len, self.marks))


def read_answers(path: str, labels: list[str]) -> tuple[dict[str, str], list[str]]:
    """Return the answers in a text file, by the labels of their questions, and messages about lines in error.

    A line is a label and an answer, such as `1a: 4`. Empty lines and lines that begin with # are skipped. Lines
    without a label on the sheet, and second answers to a question, are errors. Raises FileFormatError if there are
    errors but no answer, or if the file is too long or not in UTF-8.
    """
    with open_file(path) as file, named(path):
        data = read_start(file, _MOST_BYTES + 1)
        if len(data) > _MOST_BYTES:
            raise FileFormatError(f"is too long for answers: at most {_MOST_BYTES:,} bytes")
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise FileFormatError("is not a text in UTF-8") from None
        found: dict[str, str] = {}
        unread: list[str] = []
        for number, line in enumerate(text.splitlines(), 1):
            words = line.strip()
            if not words or words.startswith("#"):
                continue
            match = _LINE.fullmatch(words)
            label = f"{int(match[1])}{match[2].lower()}" if match is not None else ""
            if match is None:
                unread.append(f"line {number}: {quoted(words, _SHOWN)} is not an answer such as 1a: 4")
            elif label not in labels:
                unread.append(
                    f"line {number}: {label} is not on this sheet, whose questions are {labels[0]} to {labels[-1]}; "
                    "--mark needs the other options of the sheet, too"
                )
            elif label in found:
                unread.append(f"line {number}: {label} has an answer already")
            else:
                found[label] = match[3].strip()
        if unread and not found:
            raise FileFormatError(unread[0])
        return found, unread


def mark_file(sheet: Sheet, path: str) -> Marking:
    """Mark the answers in a text file; raises the errors of `read_answers`."""
    answers, unread = read_answers(path, list(sheet.parts))
    marks = tuple(tuple(_mark(task, part, answers.get(part.label, "")) for part in task.parts) for task in sheet.tasks)
    return Marking(sheet, path, marks, tuple(unread))


def _mark(task: Task, part: ExercisePart, given: str) -> AnswerMark:
    exercise = part.exercise
    if not given:
        return AnswerMark(part, "", AnswerVerdict.MISSING)
    if exercise.is_right(given):
        return AnswerMark(part, given, AnswerVerdict.RIGHT)
    if not exercise.is_answer(given):
        return AnswerMark(part, given, AnswerVerdict.NOT_AN_ANSWER)
    return AnswerMark(part, given, AnswerVerdict.WRONG, "" if exercise.choices else mistake_of(task, part, given))


def mistake_of(task: Task, part: ExercisePart, given: str) -> str:
    """Return the probable mistake behind a wrong answer: other rounding, no rounding, or wrong sign; empty if unknown.

    >>> from floatlab.verbs.practice.sheet import sheet_of
    >>> from floatlab.verbs.question import Question
    >>> from floatlab import parse_format
    >>> sheet = sheet_of(Question("practice", ("div",), (parse_format("fp16"),)).having(questions=1))
    >>> task = sheet.tasks[0].replace(question=sheet.tasks[0].question.replace(values=("2", "3")))
    >>> part = ExercisePart("1a", Exercise("What is the result?", (), ("0.66650390625",)), 3)
    >>> mistake_of(task, part, "0.6669921875"), mistake_of(task, part, "-0.66650390625")
    ('the result rounded toward +∞', 'the wrong sign')
    """
    minus, plain = given.startswith(("-", "\N{MINUS SIGN}")), given.lstrip("-+\N{MINUS SIGN}")
    if part.exercise.is_right(plain if minus else f"-{plain}"):
        return "the wrong sign"
    steps = task.scenes[part.scene].steps
    derivation = steps[0][0] if steps else None
    if derivation is None or derivation.rounded is None:
        return ""
    for step in derivation.steps:
        if isinstance(step, Combine) and _is(given, step.exact.as_fraction()):
            return f"the exact {step.kind.value}, which is not rounded"
    for direction in Direction:
        if direction.is_stochastic or direction is task.question.context.rounding:
            continue
        try:
            other = _exercise_at(task, part.scene, direction)
        except FloatlabError:
            continue
        if other is not None and other.is_right(given):
            return f"the result rounded {IN_WORDS[direction]}"
    return ""


def _is(given: str, number: object) -> bool:
    return Exercise("", (), (str(number),)).is_right(given)


def _exercise_at(task: Task, scene: int, direction: Direction) -> Exercise | None:
    """Return the exercise that a scene (a step as shown) would have if the operation were rounded in `direction`.

    Return None if the operation would then not have this scene, or if the scene would have no exercise.
    """
    scenes = scenes_of_question(task.question.replace(context=task.question.context.replace(rounding=direction)))
    found = exercises(scenes)
    return found[scene] if scene < len(found) else None
