"""The verb `tui`. The options of `tui` stand before the command that the explorer opens."""

from __future__ import annotations

from floatlab.verbs.option import Option, OptionRule, UsageError, grouped, whole
from floatlab.verbs.question import Verb

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.verbs.option import Reader

DEFAULT_HOST, DEFAULT_PORT = "localhost", 8000
_SERVES = "it is a setting of --serve"
VISITORS, _MOST_VISITORS = 8, 1000


def _named(noun: str) -> Reader:
    """Return a function that reads a name, which must not be empty."""

    def read(text: str, flag: str) -> object:
        if not text:
            raise UsageError(f"{flag} needs a {noun}, not an empty text")
        return text

    return read


VERB = Verb(
    name="tui",
    summary="explore numbers with keys and mouse: flip bits, go through steps, compare formats",
    examples=("tui", "tui show 0.1 --fp16", "tui fma 1.0009765625 1.0009765625 -1.001953125 --fp16"),
    explanation=(
        "The explorer opens where the last session ended, or with the command that follows tui. ? lists the keys; "
        "Ctrl+P finds everything by name. Settings: floatlab/explorer.toml in the XDG configuration directory (theme, "
        "slide, animations, [keys])."
    ),
    takes=("[VERB …]", ""),
    options=(
        *grouped(
            "explorer",
            Option("new", "", "start without the last session, and do not save this one"),
            Option("ascii", "", "draw only ASCII characters"),
            Option("theme", "NAME", "floatlab-dark, floatlab-light, floatlab-safe, ansi-dark, …"),
        ),
        *grouped(
            "in a browser",
            Option("serve", "", "run in a browser, not in this terminal (needs floatlab[web])"),
            Option("files", "DIR", "visitors can read the files below DIR (default: no files)", read=_named("folder")),
            Option("host", "NAME", f"the host to listen on ({DEFAULT_HOST})", read=_named("host")),
            Option("port", "N", f"the port to listen on ({DEFAULT_PORT})", read=whole(1, 65535)),
            Option("name", "NAME", "another name by which browsers can reach this host", read=_named("host")),
            Option("visitors", "N", f"at most N explorers at once ({VISITORS})", read=whole(1, _MOST_VISITORS)),
            Option("served"),  # the server passes this option to the explorer of each visitor
        ),
    ),
    rules=(
        OptionRule(("files",), _SERVES, needs=("serve", "served")),
        OptionRule(("host", "port", "name", "visitors"), _SERVES, needs=("serve",)),
    ),
    notes=(
        (
            "in a browser",
            "--serve prints an address with a token; without it, access is refused.\n"
            "Visitors can read files only below --files DIR; they cannot write files or\n"
            "name a module:function.",
        ),
    ),
    needs_values=False,
    also=("gui explore ui → tui",),
)
