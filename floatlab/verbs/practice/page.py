"""Pages of exercise sheets, of their keys, and of marks."""

from __future__ import annotations

from floatlab.page.model import Block, Fresh, Gap, Note, Page, Role, Row, Span, Text, heading, hint, line, text_of
from floatlab.page.words import counted
from floatlab.verbs.practice.marking import AnswerMark, AnswerVerdict, Marking
from floatlab.verbs.practice.sheet import ExercisePart, Sheet, Task

_SHOWN = 60  # longer answers are shortened to this many characters
_BLANK = Span("_" * 24, Role.HINT)


def sheet_page(sheet: Sheet) -> Page:
    """Return the page of a sheet: the operations with their questions and, if the sheet has its key, the solutions."""
    count = counted(len(sheet.tasks), "operation")
    title = f"Practice: {'the key, ' if sheet.has_key else ''}{count}, {counted(len(sheet.parts), 'question')}"
    blocks: list[Block] = [heading(title)]
    if not sheet.has_key:
        blocks.append(hint("Write each answer after its label on a line of a text file, such as 1a: 4"))
    for task in sheet.tasks:
        blocks += [Gap(), *_opening(task)]
        scenes = task.scenes if sheet.has_key else ()
        for part in task.parts:
            blocks.append(Row(part.label, part.exercise.prompt))
            if sheet.has_key:
                blocks.append(Row("", Span(part.exercise.answers[0], Role.GOOD)))
                blocks.append(Row("", scenes[part.scene].reason))
            else:
                blocks.append(Row("", _choices(part)))
    return Page(tuple(blocks), title)


def _opening(task: Task) -> tuple[Block, ...]:
    """Return the heading of a task and what is shown before its first question."""
    first, *rest = task.scenes[task.shown].page.blocks
    title = text_of(first.content) if isinstance(first, Note) else ""
    known = [each for block in rest for each in (block.blocks if isinstance(block, Fresh) else (block,))]
    return heading(f"{task.number}.  {title}"), *known


def _choices(part: ExercisePart) -> Text:
    if not part.exercise.choices:
        return _BLANK
    return line("   ".join(f"[ ] {choice}" for choice in part.exercise.choices))


def marking_page(marking: Marking) -> Page:
    """Return the page of marks: the score and, for each task, the answers and the steps up to the first wrong one."""
    title = f"{marking.right} of {counted(marking.asked, 'answer')} right: {marking.source}"
    blocks: list[Block] = [heading(title)]
    blocks += [Row("left out" if place == 0 else "", words) for place, words in enumerate(marking.unread)]
    for task, marks in zip(marking.sheet.tasks, marking.marks, strict=True):
        wrong = [mark for mark in marks if not mark.is_right]
        blocks += [Gap(), *_opening(task)[:1]]
        if not wrong:
            blocks.append(Row("right", Span(f"all {counted(len(marks), 'answer')}", Role.GOOD)))
            continue
        blocks += [row for mark in marks if mark.verdict is not AnswerVerdict.MISSING for row in _mark_rows(mark)]
        if missing := [mark.part.label for mark in wrong if mark.verdict is AnswerVerdict.MISSING]:
            blocks.append(Row("no answer", " ".join(missing)))
        if len(missing) == len(wrong):
            continue
        first = next(mark for mark in wrong if mark.verdict is not AnswerVerdict.MISSING)
        scene = task.scenes[first.part.scene]
        blocks += [hint(f"The steps up to {first.part.label}:"), *scene.page.blocks[1:], Note(scene.reason)]
    return Page(tuple(blocks), title)


def _mark_rows(mark: AnswerMark) -> list[Block]:
    exercise, right = mark.part.exercise, Span(mark.part.exercise.answers[0], Role.GOOD)
    if mark.is_right:
        return [Row(f"{mark.part.label} ✓", Span(_cut(mark.given), Role.GOOD))]
    label, given = f"{mark.part.label} ✗", Span(_cut(mark.given), Role.BAD)
    if mark.verdict is AnswerVerdict.NOT_AN_ANSWER:
        again = f"The question was: {exercise.prompt} Type {exercise.kind}."
        return [Row(label, line(given, " is not an answer")), Row("", again)]
    told = f"; you gave {mark.mistake}" if mark.mistake else ""
    return [Row(label, line(given, " is wrong, ", right, f" is right{told}")), Row("", exercise.prompt)]


def _cut(text: str) -> str:
    """Return an answer, shortened if it is long."""
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
