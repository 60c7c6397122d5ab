"""`tui`: the explorer in this terminal, or in a browser."""

from __future__ import annotations

import os
import sys

from floatlab.cli.output import put
from floatlab.cli.parser import Parser, read_question
from floatlab.errors import FloatlabError, quoted
from floatlab.sandbox import confine
from floatlab.tui.app.collector import pause_collector, resume_collector
from floatlab.tui.app.registry import screen_for
from floatlab.tui.screens.background_answer import BackgroundAnswer
from floatlab.verbs.option import UsageError
from floatlab.verbs.question import Question
from floatlab.verbs.registry import VERBS, answers_of, verb_named
from floatlab.verbs.tui.options import DEFAULT_HOST, DEFAULT_PORT, VERB, VISITORS

_PATIENCE = 0.1  # seconds to wait for an error in the question before the screen opens
_BROWSER = {"TERM": "xterm-256color", "COLORTERM": "truecolor"}  # the environment for the terminal in a visitor's page


def _split_options(words: list[str]) -> tuple[list[str], list[str]]:
    """Separate the explorer's own options from the command to open."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        flag, equals, _ = words[at].partition("=")
        option = next((option for option in VERB.options if flag in option.spellings), None)
        if option is None and flag not in ("-h", "--help"):
            break
        at += 2 if option is not None and option.metavar and not equals else 1
    return words[:at], words[at:]


def run(words: list[str]) -> int:
    """Open or serve the explorer; return the exit status."""
    pause_collector()  # the explorer resumes the garbage collector after its first frame
    try:
        return _run(words)
    finally:
        resume_collector()


def _run(words: list[str]) -> int:
    own, question = _split_options(words)
    options = Parser(VERB).parse(own)
    if question and question[0] in VERBS and screen_for(question[0]) is None:
        screens = " ".join(verb for verb in VERBS if screen_for(verb) is not None)
        raise UsageError(f"tui has no screen for {question[0]}; it has screens for {screens}")
    if {"-h", "--help", "help"} & set(question[:1]) or {"-h", "--help"} & set(question):
        Parser(VERB).print_help()
        return 0
    # Under Textual's web driver, users are untrusted, so the process is sandboxed whichever server started it.
    if "web_driver" in os.environ.get("TEXTUAL_DRIVER", ""):
        options.served = True
        os.environ.update(_BROWSER)  # replaces the settings of the terminal in which the server was started
        os.environ.pop("NO_COLOR", None)
    chosen = VERB.question((), vars(options))
    here, excuse = os.getcwd(), ""
    if chosen.option("serve") or chosen.option("served"):
        _confine(chosen.option("files"))
    start: Question | None = None
    pending: BackgroundAnswer | None = None
    try:
        start, pending = _asked(question)
    except FloatlabError as error:
        if not chosen.option("served"):
            raise
        excuse = str(error)  # the explorer shows the message to a visitor with a bad link
    if chosen.option("serve"):
        if pending is not None:
            pending.stop()  # each visitor's explorer computes its own answer
        _serve(chosen, here, question)
        return 0
    if "TEXTUAL_DRIVER" not in os.environ:  # under a driver, Textual draws in the visitor's browser
        _check_terminal()
    from floatlab.tui.app.opening import open_explorer  # this import is slow; the answer may fail meanwhile

    if pending is not None and pending.ends(0) and not chosen.option("served"):
        pending.result()
    return open_explorer(
        read_question, start, theme=chosen.option("theme"), keep=not chosen.option("new"), pending=pending,
        excuse=excuse, is_ascii=chosen.option("ascii") or "--ascii" in question,
    )  # fmt: skip


def _asked(question: list[str]) -> tuple[Question | None, BackgroundAnswer | None]:
    """Read the question that the explorer opens with, if there is one, and begin to answer it; raises FloatlabError."""
    if not question:
        return None, None
    try:
        start = read_question(question)
    except UsageError as error:
        if question[0].startswith("--"):
            raise UsageError(
                f"{quoted(question[0])} is not an option of tui; floatlab tui --help lists them"
            ) from error
        raise
    if not start.values and verb_named(start.verb).needs_values:
        example = verb_named(start.verb).examples[0]
        raise UsageError(f"{start.verb} needs a value, as in floatlab tui {example}")
    return start, _begun(start)


def _confine(folder: str | None) -> None:
    """Sandbox this process before it answers a visitor's question."""
    try:
        confine(folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        flag = VERB.option("files").flag
        raise UsageError(f"{flag} {quoted(str(folder))} is not a folder that can be read: {reason}") from None


def _serve(chosen: Question, here: str, question: list[str]) -> None:
    """Serve explorers that are sandboxed like this process, until interrupted."""
    from floatlab.tui.app.browser import Address, serve

    resume_collector()
    files = None if chosen.option("files") is None else os.getcwd()
    os.chdir(here)  # the child processes import floatlab from this folder, not from the one that visitors can read
    visitor = Question(VERB.name).having(
        served=True, files=files, theme=chosen.option("theme"), ascii=chosen.option("ascii")
    )
    host, port = chosen.option("host", DEFAULT_HOST), chosen.option("port", DEFAULT_PORT)
    address = Address(host, port, chosen.option("name", ""))
    options, visitors = VERB.words(visitor)[1:], chosen.option("visitors", VISITORS)
    serve(address, options, visitors, lambda words: put(f"{words}\n"), question)


def _begun(start: Question) -> BackgroundAnswer:
    """Start computing the answer. Raise errors found within 0.1 seconds, before the terminal switches to full screen.

    On a screen whose answers can take long, the computation runs on a background thread. If it takes longer than 0.1
    seconds, it is paused at its next progress report, until the screen is drawn.
    """
    answers_of(start.verb)  # imports the verb's modules, before the wait of _PATIENCE seconds begins
    pending = BackgroundAnswer(start)
    row = screen_for(start.verb)
    if row is not None and row.slow:
        pending.start()
    else:
        pending.run()
    if pending.ends(_PATIENCE):
        pending.result()
    pending.hold()
    return pending


def _check_terminal() -> None:
    """Raise UsageError if there is no terminal that Textual can draw on (it draws on standard error)."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        serve = VERB.option("serve").flag
        raise UsageError(f"tui needs a terminal; use floatlab VERB … in a pipe, or tui {serve} for a browser")
    if os.environ.get("TERM") in ("dumb", "unknown"):
        raise UsageError(f"tui cannot draw on a terminal of type {quoted(os.environ['TERM'])}")
