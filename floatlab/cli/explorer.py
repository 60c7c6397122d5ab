"""`tui`: the explorer in this terminal, or in a browser."""

from __future__ import annotations

import argparse
import os
import sys
from importlib import import_module

from floatlab.cli.parser import Parser, UsageError, whole_number
from floatlab.cli.streams import put
from floatlab.cli.verbs import VERBS, read_question
from floatlab.confinement import confine
from floatlab.errors import quoted
from floatlab.tui.app.registry import screen_for
from floatlab.tui.screens.background_answer import BackgroundAnswer
from floatlab.verbs.registry import ACTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.verbs.question import Question

_ALONE = ("--serve", "--new", "--served")
_VALUED = ("--host", "--port", "--theme", "--files", "--name", "--visitors")
DEFAULT_HOST, DEFAULT_PORT = "localhost", 8000
_SERVING = {"host": "host", "port": "port", "name": "host", "visitors": "number", "files": "folder"}
_VISITORS, _MOST_VISITORS = 8, 1000
_PATIENCE = 0.3  # seconds to wait for what may be wrong with a question


def explorer_parser() -> Parser:
    """Return the parser of the explorer's own options, which stand before the verb."""
    parser = Parser(ACTIONS["tui"])
    parser.usage = "floatlab tui [options] [VERB …]"
    group = parser.add_argument_group("explorer")
    group.add_argument("--new", action="store_true", help="start afresh, and keep nothing for the next start")
    group.add_argument("--theme", metavar="NAME", help="floatlab-dark, floatlab-light, floatlab-safe, ansi-dark, …")
    group = parser.add_argument_group(
        "in a browser",
        "--serve prints an address with a token; nobody gets in without it.\n"
        "Visitors read files only below --files DIR, write none, and ask no\n"
        "module:function.",
    )
    group.add_argument("--serve", action="store_true", help="in a browser instead of this terminal (extra web)")
    group.add_argument("--files", metavar="DIR", help="visitors read the files below DIR (default: none)")
    group.add_argument("--host", metavar="NAME", help=f"the host to listen on ({DEFAULT_HOST})")
    group.add_argument("--port", metavar="N", help=f"the port to listen on ({DEFAULT_PORT})")
    group.add_argument("--name", metavar="NAME", help="another name by which browsers reach this host")
    group.add_argument("--visitors", metavar="N", help=f"at most N explorers at once ({_VISITORS})")
    group.add_argument("--served", action="store_true", help=argparse.SUPPRESS)  # how --serve starts each of them
    return parser


def _parted(words: list[str]) -> tuple[list[str], list[str]]:
    """Part the explorer's own options from the command that it opens at."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        name, equals, _ = words[at].partition("=")
        if name in _VALUED:
            at += 1 if equals else 2
        elif name in (*_ALONE, "-h", "--help"):
            at += 1
        else:
            break
    return words[:at], words[at:]


def run_explorer(words: list[str]) -> int:
    """Open the explorer, and return its exit status when it is left."""
    own, question = _parted(words)
    options = explorer_parser().parse(own)
    if question and question[0] in ACTIONS and screen_for(question[0]) is None:
        screens = " ".join(verb for verb in VERBS if screen_for(verb) is not None)
        raise UsageError(f"tui has no screen for {question[0]}; it opens {screens}")
    if {"-h", "--help", "help"} & set(question[:1]) or {"-h", "--help"} & set(question):
        explorer_parser().print_help()
        return 0
    try:
        start = read_question(question) if question else None
    except UsageError as error:
        if question[0].startswith("--"):
            raise UsageError(f"{quoted(question[0])} is no option of tui; floatlab tui --help lists them") from error
        raise
    # Textual's driver for browsers confines, too, whoever started it: visitors of other servers are strangers as well.
    served = options.served or "web_driver" in os.environ.get("TEXTUAL_DRIVER", "")
    _check_serving(options, served)
    here = os.getcwd()
    if options.serve or served:
        _confine(options.files)
    pending = None
    if start is not None:
        if VERBS[start.verb].needs_values and not start.values:
            raise UsageError(f"{start.verb} needs a value, as in floatlab tui {ACTIONS[start.verb].examples[0]}")
        if "-" in start.values:
            raise UsageError("tui opens at values on the line; - is for pipes")
        pending = _begun(start)
    if options.serve:
        if pending is not None:
            pending.stop()  # each visitor's explorer asks by itself
        _serve(options, here, question)
        return 0
    if "TEXTUAL_DRIVER" not in os.environ:  # a server draws in the visitor's browser
        _check_terminal()
    from floatlab.tui.app.app import open_explorer  # takes a while, in which more may have come to light

    if pending is not None and pending.ends(0):
        pending.result()
    return open_explorer(read_question, start, theme=options.theme, keep=not options.new, pending=pending)


def _check_serving(options: argparse.Namespace, served: bool) -> None:
    """Refuse options of a server that is not asked for, and those that make none."""
    for name, noun in _SERVING.items():
        value = getattr(options, name)
        if value is not None and not (options.serve or (served and name == "files")):
            raise UsageError(f"--{name} says how --serve serves, and --serve was not given")
        if value == "":
            raise UsageError(f"--{name} '' names no {noun}")
    whole_number(options.port, "--port", 1, 65535)
    whole_number(options.visitors, "--visitors", 1, _MOST_VISITORS)


def _confine(folder: str | None) -> None:
    """Confine this process before a visitor's question is asked."""
    try:
        confine(folder)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"--files {quoted(str(folder))} is no folder that can be read: {reason}") from None


def _serve(options: argparse.Namespace, here: str, question: list[str]) -> None:
    """Serve explorers that are confined as this process is, until it is interrupted."""
    from floatlab.tui.app.browser import Address, serve

    files = [] if options.files is None else ["--files", os.getcwd()]
    os.chdir(here)  # explorers import their code from where this process did, not from among the files
    theme = ["--theme", options.theme] if options.theme else []
    port = whole_number(options.port, "--port", 1, 65535) or DEFAULT_PORT
    address = Address(options.host or DEFAULT_HOST, port, options.name or "")
    visitors = whole_number(options.visitors, "--visitors", 1, _MOST_VISITORS) or _VISITORS
    serve(address, ["--served", *files, *theme, *question], visitors, lambda words: put(f"{words}\n"))


def _begun(start: Question) -> BackgroundAnswer:
    """Begin to answer the question: what is wrong with it is said here, before the screen is taken, if it shows soon.

    What takes longer goes on, and the screen waits for it.
    """
    import_module(f"floatlab.verbs.{ACTIONS[start.verb].home}.answer")  # NumPy's import would use the patience up
    pending = BackgroundAnswer(start)
    row = screen_for(start.verb)
    if row is not None and row.slow:
        pending.start()
    else:
        pending.run()
    if pending.ends(_PATIENCE):
        pending.result()
    return pending


def _check_terminal() -> None:
    """Refuse where there is nothing to draw on. Textual draws on standard error."""
    if not all(stream is not None and stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise UsageError("tui needs a terminal to draw on; floatlab VERB … answers in pipes, tui --serve in a browser")
    if os.environ.get("TERM") in ("dumb", "unknown"):
        raise UsageError(f"tui cannot draw on a terminal of type {quoted(os.environ['TERM'])}")
