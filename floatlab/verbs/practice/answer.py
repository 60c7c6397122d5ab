"""`practice`: exercise sheets with or without the solutions (the key), and the marks of answers."""

from __future__ import annotations

from floatlab.fpmode import in_default_mode
from floatlab.page.model import Page
from floatlab.page.svg import to_html
from floatlab.verbs.practice.marking import Marking, mark_file
from floatlab.verbs.practice.page import marking_page, sheet_page
from floatlab.verbs.practice.sheet import Sheet, sheet_of
from floatlab.verbs.question import Answer, Question, Started, written

_HTML_WIDTH = 90


def answer_of(found: Sheet | Marking) -> Answer:
    """Return the answer for a sheet or for marks.

    For a sheet, `--quiet` prints the labels of the questions and, if the sheet has its key (the solutions), the right
    answers. For marks, `--quiet` prints the score.
    """

    def page() -> Page:
        return marking_page(found) if isinstance(found, Marking) else sheet_page(found)

    def words() -> list[str]:
        if isinstance(found, Marking):
            return [f"{found.right}/{found.asked}"]
        return [f"{label}: {part.exercise.answers[0] if found.has_key else ''}" for label, part in found.parts.items()]

    def document(command: str) -> str:
        # The command is not shown: it has the seed, with which readers could make the key.
        shows = isinstance(found, Marking) or found.has_key
        return to_html(page(), _HTML_WIDTH, command if shows else "")

    status = int(isinstance(found, Marking) and found.right < found.asked)
    return Answer(page, written(found), words, words, found=found, status=status, document=document)


@in_default_mode
def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Return the exercise sheet or, with `--mark FILE`, the marks of the answers in the file; raises FloatlabError."""
    sheet, path = sheet_of(question), question.option("mark")
    return [answer_of(sheet if path is None else mark_file(sheet, path))]
