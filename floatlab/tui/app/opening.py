"""Open the explorer in this terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable
from io import TextIOWrapper

from textual.worker import WorkerFailed

from floatlab.errors import FloatlabError
from floatlab.sandbox import confined
from floatlab.tui.app import terminal
from floatlab.tui.app.app import Explorer
from floatlab.tui.app.settings import read_settings
from floatlab.tui.screens.background_answer import BackgroundAnswer
from floatlab.verbs.question import Question


def open_explorer(
    read_question: Callable[[list[str]], Question],
    start: Question | None = None,
    *,
    theme: str | None = None,
    keep: bool = True,
    is_ascii: bool = False,
    pending: BackgroundAnswer | None = None,
    excuse: str = "",
) -> int:
    """Run the explorer in this terminal, and return the exit status; see `Explorer` for the parameters.

    `excuse` says why the explorer cannot open at the requested question; it is empty otherwise.

    Raises FloatlabError for an unknown theme, and any exception that ended the explorer. If a FloatlabError or
    BrokenPipeError ended it, RuntimeError is raised instead, so that it is not taken for an error of the user.
    """
    settings, complaint = read_settings()
    if confined():  # browser users must not see paths on this machine
        complaint = ""
    complaint = excuse or complaint
    for stream in (sys.__stdout__, sys.__stderr__):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # Textual draws characters that are not in every encoding
    explorer = Explorer(
        read_question, start, settings=settings, complaint=complaint, theme=theme, keep=keep, pending=pending,
        is_ascii=is_ascii, usual=terminal.usual_theme(),
    )  # fmt: skip
    if theme and (unknown := explorer.unknown_theme(theme)):
        raise FloatlabError(f"--theme: {unknown}")
    explorer.run()
    failure = explorer.failure
    if isinstance(failure, WorkerFailed):
        failure = failure.error if isinstance(failure.error, Exception) else failure
    if isinstance(failure, (FloatlabError, BrokenPipeError)):
        raise RuntimeError(f"{type(failure).__name__}: {failure}") from failure  # the user did not cause it
    if failure is not None:
        raise failure
    return explorer.return_code or 0
