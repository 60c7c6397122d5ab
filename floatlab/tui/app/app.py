"""The explorer itself: one mode a screen, themes, the palette, what is kept for the next start, and a clean end."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from functools import partial
from io import TextIOWrapper

from textual.app import App
from textual.binding import Binding
from textual.command import CommandPalette
from textual.worker import WorkerFailed

from floatlab.confinement import confined
from floatlab.errors import FloatlabError, printable, printable_lines, quoted
from floatlab.tui.app.background import beside
from floatlab.tui.app.harmless import HARMLESS
from floatlab.tui.app.palette import Commands, Palette
from floatlab.tui.app.registry import TASKS, Entry, entry_for
from floatlab.tui.app.settings import read_session, read_settings, write_session
from floatlab.tui.app.themes import CYCLE, THEMES, inks, role_colours
from floatlab.tui.screens.task import Task
from floatlab.verbs.registry import words_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from rich.style import Style
    from textual.filter import LineFilter

    from floatlab.page.model import Role
    from floatlab.tui.screens.background_answer import Errand
    from floatlab.verbs.question import Question


class Explorer(App[None]):
    """The explorer. `read_question` turns the words of a command into a question, as the command line does."""

    TITLE = "floatlab"
    PLACE = "Everywhere"
    COMMANDS = {Palette}
    BINDINGS = [
        *(
            Binding(f"f{number}", f"go('{entry.name}')", entry.title, id=f"go.{entry.name}", show=False)
            for number, entry in enumerate(TASKS.values(), 2)
        ),
        Binding("right_square_bracket", "turn(1)", "Next screen", id="go.next", key_display="]", show=False),
        Binding("left_square_bracket", "turn(-1)", "Screen before", id="go.last", key_display="[", show=False),
        Binding("t", "theme", "Theme", id="theme", show=False),
        Binding("question_mark", "keys", "Keys", id="keys", key_display="?"),
        Binding("q", "quit", "Quit", id="quit"),
        Binding("ctrl+z", "suspend_process", "To the shell (fg comes back)", id="suspend", show=False),
    ]

    def __init__(
        self,
        read_question: Callable[[list[str]], Question],
        start: Question | None = None,
        *,
        settings: dict[str, Any] | None = None,
        complaint: str = "",
        theme: str | None = None,
        keep: bool = True,
        errand: Errand | None = None,
    ) -> None:
        """Open at a question, else where the last session ended; `errand` is under way to its answer.

        `complaint` is what is wrong with the settings, `theme` stands above them, and without `keep`
        no session is read or written.
        """
        self.settings = settings or {}
        self._complaint = complaint
        self._keep = keep and not confined()
        self._session = read_session() if self._keep else {}
        self.read_question = read_question
        self.pins: dict[str, str] = {}
        self.opened: dict[str, Task] = {}
        self.failure: Exception | None = None
        self._inks: tuple[str, dict[Role, Style]] = ("", {})
        left = TASKS.get(str(self._session.get("screen"))) or next(iter(TASKS.values()))
        first = (entry_for(start.verb) if start else None) or left
        self._starts = {first.name: start} if start else {}
        self._errand = errand
        self.DEFAULT_MODE = first.name  # type: ignore[misc]
        if not os.environ.get("NO_COLOR", "unset"):
            del os.environ["NO_COLOR"]  # set but empty counts as not set
        # Textual's way without colour is shades of grey; ours is none, as the words on the screen suffice.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        for entry in TASKS.values():
            self.add_mode(entry.name, partial(self._open, entry))
        for each in THEMES:
            self.register_theme(each)
        self.animation_level = "full" if self.settings.get("animations") is True else "none"
        wanted = str(theme or self.settings.get("theme") or self._session.get("theme") or CYCLE[0])
        self.theme = wanted if wanted in self.available_themes else CYCLE[0]
        if self.theme != wanted:
            self._complaint = self.unknown_theme(wanted)
        keys = self.settings.get("keys")
        if isinstance(keys, dict):
            self.set_keymap({str(name): str(key) for name, key in keys.items()})

    def unknown_theme(self, name: str) -> str:
        """Say that there is no such theme, and which there are; nothing where there is."""
        known = self.available_themes
        return "" if name in known else f"there is no theme {quoted(name)}; known: {' '.join(sorted(known))}"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Give the roles of pages a colour in themes that do not know them."""
        theme = self.current_theme
        return role_colours(theme.dark, theme.ansi)

    def _open(self, entry: Entry) -> Task:
        asked = self._starts.pop(entry.name, None)
        task = self.opened[entry.name] = entry.load()(asked or self._start_of(entry))
        task.errand, self._errand = self._errand, None
        views = self._session.get("views")
        if asked is None and isinstance(views, dict) and views.get(entry.name) in dict(task.VIEWS):
            task.set_reactive(Task.view, views[entry.name])
        return task

    def _start_of(self, entry: Entry) -> Question:
        """Return where a screen opens by itself: where it was left, else its own start."""
        left = self._session.get("questions")
        words = left.get(entry.name) if isinstance(left, dict) else None
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            try:
                question = self.read_question(words)
            except FloatlabError:
                pass  # kept by another version, or changed by hand
            else:
                if question.verb in entry.verbs:
                    return question
        return self.read_question(list(entry.start))

    @property
    def inks(self) -> dict[Role, Style]:
        """The style of each role of a page in this theme."""
        if self._inks[0] != self.theme:
            self._inks = (self.theme, inks(self.theme_variables))
        return self._inks[1]

    def on_load(self) -> None:
        """Listen to the signals that end a program, before the screen is taken: it must be left clean."""
        if self.is_headless:
            return
        from asyncio import get_running_loop

        for name, status in (("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", 129)):
            with suppress(AttributeError, NotImplementedError, RuntimeError):  # not on every system; the keys remain
                get_running_loop().add_signal_handler(getattr(signal, name), partial(self.exit, return_code=status))

    def on_mount(self) -> None:
        """Complain about settings that cannot be used."""
        if self._complaint:
            self.notify(self._complaint, severity="warning", timeout=10)

    def _handle_exception(self, error: Exception) -> None:
        """End without Textual's traceback: whoever started the explorer reports the failure."""
        self.failure = self.failure or error
        super()._handle_exception(error)
        self._exit_renderables.clear()

    def notify(self, message: str, *, title: str = "", markup: bool = False, **how: Any) -> None:
        """Say something in a corner, as it is: names in it are neither markup nor anything that a terminal obeys."""
        super().notify(printable_lines(message), title=printable(title), markup=False, **how)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Let no line to the terminal that would do more there than be seen, whichever widget drew it."""
        return [*super().get_line_filters(), HARMLESS]

    # Screens.

    @property
    def shown(self) -> Task | None:
        """The screen of the current mode, below any window that asks something."""
        return self.opened.get(self.current_mode)

    def standing(self, name: str) -> Question:
        """Return the question of a screen: the one that it shows, or would open at."""
        task = self.opened.get(name)
        return task.question if task else self._start_of(TASKS[name])

    def go(self, name: str, question: Question | None = None) -> None:
        """Show a screen, at a question if one is given."""
        opened = self.opened.get(name)
        if question is not None and opened is None:
            self._starts[name] = question
        if name != self.current_mode:
            self.switch_mode(name)
        if question is not None and opened is not None:
            opened.open(question)

    def ask(self, question: Question) -> None:
        """Show the screen that answers a question."""
        entry = entry_for(question.verb)
        if entry is not None:
            self.go(entry.name, question)

    def action_go(self, name: str) -> None:
        """Show a screen."""
        self.go(name)

    def action_turn(self, by: int) -> None:
        """Show the next screen, or the one before."""
        names = list(TASKS)
        self.go(names[(names.index(self.current_mode) + by) % len(names)])

    def action_theme(self) -> None:
        """Go on to the next theme."""
        at = CYCLE.index(self.theme) if self.theme in CYCLE else -1
        self.theme = CYCLE[(at + 1) % len(CYCLE)]
        self.notify(self.theme, timeout=2)

    def action_keys(self) -> None:
        """List the keys that work here."""
        from floatlab.tui.app.keys import keys_page
        from floatlab.tui.widgets.pickers import Help

        self.push_screen(Help("Keys", keys_page(self.screen)))

    def action_command_palette(self) -> None:
        """Open the palette."""
        if not CommandPalette.is_open(self):  # type: ignore[arg-type]
            self.push_screen(Commands(id="--command-palette"))

    def action_help_quit(self) -> None:
        """Say how to leave, to those who press Ctrl+C."""
        self.notify("q quits, outside a box; Ctrl+Q everywhere", timeout=3)

    def copy(self, text: str, words: str) -> None:
        """Copy text, and say what was copied and by whom."""
        self.copy_to_clipboard(text)  # the terminal, and what Ctrl+V inside the explorer pastes

        def say(by: str) -> None:
            shown = text if len(text) <= 60 and "\n" not in text else f"{len(text):,} characters"
            self.notify(shown, title=f"Copied {words}, by {by or 'the terminal, if it can'}")

        if self.is_headless or confined():  # the clipboard of this machine is not the visitor's
            say("")
        else:
            from floatlab.tui.app.clipboard import copy

            beside(self, partial(copy, text), say)

    # The end.

    def session(self) -> dict[str, Any]:
        """Return what the next start needs: the screen, the theme, and each screen's question."""
        kept = self._session.get("questions")
        questions = dict(kept) if isinstance(kept, dict) else {}
        questions |= {name: words_of(task.question) for name, task in self.opened.items()}
        views = {name: task.view for name, task in self.opened.items() if task.VIEWS}
        kept = self._session.get("views")
        views = (kept if isinstance(kept, dict) else {}) | views
        return {"screen": self.current_mode, "theme": self.theme, "questions": questions, "views": views}

    async def on_unmount(self) -> None:
        """Keep the session."""
        if self._keep and self.failure is None:
            write_session(self.session())


def open_explorer(
    read_question: Callable[[list[str]], Question],
    start: Question | None = None,
    *,
    theme: str | None = None,
    keep: bool = True,
    errand: Errand | None = None,
) -> int:
    """Run the explorer in this terminal and return an exit status; what made it fail is raised afterwards."""
    settings, complaint = read_settings()
    if confined():  # what is wrong with the settings, and where they lie, is no business of a visitor's
        complaint = ""
    for stream in (sys.__stdout__, sys.__stderr__):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(encoding="utf-8")  # Textual draws with lines that other encodings lack
    explorer = Explorer(
        read_question, start, settings=settings, complaint=complaint, theme=theme, keep=keep, errand=errand
    )
    if theme and (words := explorer.unknown_theme(theme)):
        raise FloatlabError(f"--theme: {words}")
    explorer.run()
    failure = explorer.failure
    if isinstance(failure, WorkerFailed):
        failure = failure.error if isinstance(failure.error, Exception) else failure
    if isinstance(failure, (FloatlabError, BrokenPipeError)):
        raise RuntimeError(f"{type(failure).__name__}: {failure}") from failure  # a mistake of ours, not of the user's
    if failure is not None:
        raise failure
    return explorer.return_code or 0
