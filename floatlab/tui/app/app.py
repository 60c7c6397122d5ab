"""The app: it switches screens and themes, opens the command palette, and saves the session for the next start."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from shlex import join
from typing import Literal

from rich.console import RenderableType
from textual.binding import Binding
from textual.command import CommandPalette
from textual.css.query import NoMatches
from textual.driver import Driver
from textual.events import Event, Key
from textual.filter import LineFilter
from textual.timer import Timer
from textual.widget import MountError
from textual.worker import WorkerFailed

from floatlab.errors import FloatlabError, printable, printable_lines, quoted
from floatlab.sandbox import confined
from floatlab.tui.app import terminal
from floatlab.tui.app.browser_page import MOST_ASKED, SHOWN
from floatlab.tui.app.collector import resume_collector
from floatlab.tui.app.driver import read_all_bytes
from floatlab.tui.app.help_windows import KeysWindow, keys_page
from floatlab.tui.app.input_queue import InputQueue
from floatlab.tui.app.navigation import Navigation
from floatlab.tui.app.palette import Commands, Palette
from floatlab.tui.app.registry import SCREENS, ScreenRow, screen_for
from floatlab.tui.app.settings import read_session, write_session
from floatlab.tui.app.terminal import ASCII, CONSOLE, HARMLESS
from floatlab.tui.base import bytes_of, run_once
from floatlab.tui.glyphs import is_console
from floatlab.tui.screens.background_answer import BackgroundAnswer
from floatlab.tui.screens.task import TaskScreen
from floatlab.tui.themes import CYCLE, THEMES, role_colours
from floatlab.tui.widgets import KeyBar
from floatlab.verbs.question import Question
from floatlab.verbs.registry import words_of

# Least number of seconds between two updates of the address in a browser: each key may change the question.
_TELLING = 0.3


_PAUSE = 0.1  # computations pause for this many seconds after a key
_MESSAGE = 4.0  # seconds for which a message is shown


class Explorer(Navigation):
    """The explorer, with a Textual mode for each row of SCREENS.

    Parameters
    ----------
    read_question
        Parses the arguments of a command into a question, as the command line does.
    start
        The first question. The default is to open where the last session ended.
    settings
        The valid settings.
    complaint
        A message to show at the start, for instance about invalid settings. An empty text shows none.
    theme
        The name of a theme, which overrides the settings.
    usual
        The theme that suits this terminal; it is used if the user has chosen none.
    keep
        Whether to read the last session at the start and to write this session at the end. False in the
        explorers of a server.
    is_ascii
        Whether only ASCII characters are drawn.
    pending
        The computation of the answer to `start`, which began before the explorer was imported.
    """

    TITLE = "floatlab"
    SUSPENDED_SCREEN_CLASS = "-screen-suspended"  # with sixteen colours, this CSS class dims the screen behind a window
    PLACE = "Everywhere"  # the heading in the list of keys
    COMMANDS = {Palette}
    BINDINGS = [
        *(
            Binding(f"f{number}", f"go('{name}')", name.capitalize(), id=f"go.{name}", show=False)
            for number, name in enumerate(SCREENS, 2)
        ),
        Binding("right_square_bracket", "turn(1)", "Next screen", id="go.next", key_display="]", show=False),
        Binding("left_square_bracket", "turn(-1)", "Previous screen", id="go.last", key_display="[", show=False),
        Binding("f1", "welcome", "First steps", id="go.welcome", show=False),
        Binding("H", "history", "History", id="go.history", tooltip="Questions that were asked before", show=False),
        Binding("t", "theme", "Theme", id="theme", show=False),
        Binding("question_mark", "keys", "Keys", id="keys", key_display="?"),
        Binding("q", "quit", "Quit", id="quit"),
        Binding("ctrl+z", "suspend_process", "To the shell (back with fg)", id="suspend", show=False),
    ]

    def __init__(
        self,
        read_question: Callable[[list[str]], Question],
        start: Question | None = None,
        *,
        settings: dict[str, object] | None = None,
        complaint: str = "",
        theme: str | None = None,
        usual: str = CYCLE[0],
        keep: bool = True,
        is_ascii: bool = False,
        pending: BackgroundAnswer | None = None,
    ) -> None:
        """Store the arguments, and read the last session."""
        self.settings, self.is_ascii = settings or {}, is_ascii
        self._complaint = complaint
        self._keep = keep and not confined()
        self._session = read_session() if self._keep else {}
        self._is_first = start is None and (confined() or (self._keep and not self._session))
        self.start_navigation(self._session.get("history"))
        self.read_question = read_question
        self.pins: dict[str, str] = {}
        self.opened: dict[str, TaskScreen] = {}
        self.failure: Exception | None = None
        self.titles = tuple((name, name.capitalize()) for name in SCREENS)
        last = SCREENS.get(str(self._session.get("screen"))) or next(iter(SCREENS.values()))
        first = (screen_for(start.verb) if start else None) or last
        self.starts = {first.name: start} if start else {}
        self.start_views = {}
        self._pending = pending
        self._resuming: Timer | None = None  # computations that a key paused resume when this timer ends
        self.input_queue = InputQueue(self)
        self._telling = False  # whether a timer will send the address to the browser
        self.DEFAULT_MODE = first.name  # type: ignore[misc]
        if not os.environ.get("NO_COLOR", "unset"):
            del os.environ["NO_COLOR"]  # an empty NO_COLOR means that it is not set
        # With NO_COLOR, Textual draws shades of grey. floatlab draws no colour at all; its text is complete without
        # colours.
        super().__init__(ansi_color=True if "NO_COLOR" in os.environ else None)
        for row in SCREENS.values():
            self.add_mode(row.name, partial(self._open, row))
        for known in THEMES:
            self.register_theme(known)
        self.animation_level = "full" if self.settings.get("animations") is True else "none"
        # The theme of the last session may need more colours than this terminal has.
        last_theme = self._session.get("theme") if usual == CYCLE[0] else None
        self._usual = usual
        wanted = str(theme or self.settings.get("theme") or last_theme or usual)
        self.theme = wanted if wanted in self.available_themes else usual
        if self.theme != wanted:
            self._complaint = self.unknown_theme(wanted)
        keys = self.settings.get("keys")
        if isinstance(keys, dict):
            self.set_keymap({str(name): str(key) for name, key in keys.items()})

    def unknown_theme(self, name: str) -> str:
        """Return an error message for the name of an unknown theme; empty for a known one."""
        known = self.available_themes
        return "" if name in known else f"there is no theme {quoted(name)}; known: {' '.join(sorted(known))}"

    def get_theme_variable_defaults(self) -> dict[str, str]:
        """Return the colours of page roles, for themes that do not define them."""
        theme = self.current_theme
        return role_colours(theme.dark, theme.ansi)

    def _open(self, row: ScreenRow) -> TaskScreen:
        start = self.starts.pop(row.name, None)
        task = self.opened[row.name] = row.load()(start or self.question_left(row))
        task.NAME, task.slow = row.name, row.slow
        task.pending, self._pending = self._pending, None
        view: object = self.start_views.pop(row.name, None)
        if view is None and start is None:
            view = self._session_part("views").get(row.name)
        if view in dict(task.VIEWS):
            task.set_reactive(TaskScreen.view, view)
        return task

    def _session_part(self, name: str) -> dict[str, object]:
        part = self._session.get(name)
        return part if isinstance(part, dict) else {}

    def question_left(self, row: ScreenRow) -> Question:
        """Return the last question of a screen in the last session, or the screen's default question."""
        words = self._session_part("questions").get(row.name)
        if isinstance(words, list) and all(isinstance(word, str) for word in words):
            with suppress(FloatlabError):  # the session was written by another version, or edited by hand
                question = self.read_question(words)
                if question.verb in row.verbs:
                    return question
        return self.default_question(row.name)

    def on_load(self) -> None:
        """Make the app exit in order, so that it restores the terminal, after a signal or when the terminal is closed.

        Also make asyncio start tasks as in Python 3.11. From 3.12 on, Textual lets tasks start at once: an Input of the
        first screen would then be mounted before this screen is on the stack, and fail.
        """
        from asyncio import get_running_loop

        loop = get_running_loop()
        loop.set_task_factory(None)
        if self.is_headless:
            return
        for name, status in (("SIGINT", 130), ("SIGTERM", 143), ("SIGHUP", terminal.HUNG_UP)):
            with suppress(AttributeError, NotImplementedError, RuntimeError):  # not on every system
                loop.add_signal_handler(getattr(signal, name), partial(self.exit, return_code=status))
        with suppress(AttributeError, OSError, ValueError):  # no standard input, or one without a file descriptor
            leave = partial(self.exit, return_code=terminal.HUNG_UP)
            terminal.on_hangup(sys.stdin.fileno(), partial(loop.call_soon_threadsafe, leave))

    def on_mount(self) -> None:
        """Show the message `complaint`, if there is one, and show the first steps to a new user.

        The first steps are shown if `start` is None, and if no session has been saved yet or the explorer runs in a
        browser.
        """
        self.call_after_refresh(resume_collector)
        if self._complaint:
            self.notify(self._complaint, severity="warning", timeout=10)
        if self._is_first:
            self.call_after_refresh(self.action_welcome)

    def _handle_exception(self, error: Exception) -> None:
        """Exit without Textual's traceback: `open_explorer` raises the exception."""
        cause = error.error if isinstance(error, WorkerFailed) else error
        if self._exit and isinstance(cause, (NoMatches, MountError)):
            # While the app exits, Textual mounts no widgets, so missing widgets are expected.
            return
        self.failure = self.failure or error
        super()._handle_exception(error)
        self._exit_renderables.clear()

    def panic(self, *renderables: RenderableType) -> None:
        """After an error in the thread that reads the terminal, exit without Textual's traceback."""
        traces = [each.trace for each in renderables if hasattr(each, "trace")]  # of rich.traceback, a slow import
        cause = "; ".join(f"{trace.stacks[0].exc_type}: {trace.stacks[0].exc_value}" for trace in traces)
        self.failure = self.failure or RuntimeError(f"the terminal cannot be read: {cause}")
        super().panic()

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: Literal["information", "warning", "error"] = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message in the key bar, in place of the list of keys. The message covers nothing else.

        On a screen without a key bar, Textual shows a notification. Markup is not interpreted.
        """
        message, title = printable_lines(message), printable(title)
        bars = self.shown.query(KeyBar) if self.shown is not None and self.shown.is_mounted else ()
        for bar in bars:
            words = " ".join(": ".join(filter(None, (title, message))).split())
            bar.say(words if severity == "information" else f"! {words}", timeout or _MESSAGE)
            return
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    def get_driver_class(self) -> type[Driver]:
        """Return Textual's driver for the terminal, changed to accept bytes that are not UTF-8."""
        driver = super().get_driver_class()
        read_all_bytes(driver)
        return driver

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Add the filters that replace control characters, and characters that the terminal lacks."""
        lacking = [ASCII] if self.is_ascii else [CONSOLE] if is_console() else []
        return [*super().get_line_filters(), HARMLESS, *lacking]

    # Keys come before answers.

    async def on_event(self, event: Event) -> None:
        """Pass on keys and clicks one at a time. A key takes effect fast, since it pauses computations for a moment."""
        if isinstance(event, Key):
            for pending in (working := self._working()):
                pending.hold()
            if self._resuming is not None:
                self._resuming.stop()
            self._resuming = self.set_timer(_PAUSE, self._resume) if working else None
        if not self.input_queue.keeps(event):
            await super().on_event(event)

    def _resume(self) -> None:
        for pending in self._working():
            pending.release()

    def _working(self) -> list[BackgroundAnswer]:
        return [task.pending for task in self.opened.values() if task.pending is not None]

    # Actions.

    def action_theme(self) -> None:
        """Switch to the next theme."""
        at = CYCLE.index(self.theme) if self.theme in CYCLE else -1
        self.theme = CYCLE[(at + 1) % len(CYCLE)]
        self.notify(self.theme, timeout=2)

    def action_keys(self) -> None:
        """List the keys that are active now."""
        self.push_screen(KeysWindow(keys_page(self.screen)))

    def action_command_palette(self) -> None:
        """Open the command palette."""
        if not CommandPalette.is_open(self):  # type: ignore[arg-type]
            # No id: an earlier palette may still exist, on another screen or because Textual is removing it.
            self.push_screen(Commands())

    def action_help_quit(self) -> None:
        """After Ctrl+C, show how to quit."""
        self.notify("q quits outside a box; Ctrl+Q quits everywhere", timeout=3)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy text through the terminal (OSC 52). File names that are not UTF-8 keep their bytes."""
        self._clipboard = text
        if self._driver is not None:
            from base64 import b64encode

            self._driver.write(f"\x1b]52;c;{b64encode(bytes_of(text)).decode()}\a")

    def copy(self, text: str, what: str) -> None:
        """Copy text, then say what was copied (`what`) and by which program."""
        self.copy_to_clipboard(text)  # this also makes Ctrl+V work inside the explorer

        def report(program: str) -> None:
            shown = text if len(text) <= 60 and "\n" not in text else f"{len(text):,} characters"
            self.notify(shown, title=f"Copied {what}, by {program or 'the terminal, if it can'}")

        # The clipboard programs of this machine are of no use to a user in a browser.
        if self.is_headless or confined():
            report("")
        else:
            run_once(self, partial(terminal.copy, text), report)

    # The address in a browser.

    def tell_address(self) -> None:
        """If the explorer runs in a browser, send the current command to the page, so that the address contains it."""
        if self.is_web and not self._telling:
            self._telling = True
            self.set_timer(_TELLING, self._tell_address)

    def _tell_address(self) -> None:
        self._telling = False
        if self.shown is not None:
            command = join(words_of(self.shown.question))
            self.open_url(SHOWN + (command if len(command) <= MOST_ASKED else ""), new_tab=False)

    # Exit.

    def session(self) -> dict[str, object]:
        """Return what is saved for the next start: screen, theme, history, and the question and view of each screen."""
        questions = {name: words_of(task.question) for name, task in self.opened.items()}
        views = {name: task.view for name, task in self.opened.items() if task.VIEWS}
        return {
            "screen": self.current_mode,
            "theme": self.theme if self.theme != self._usual else self._session.get("theme"),
            "questions": self._session_part("questions") | questions,
            "views": self._session_part("views") | views,
            "history": [words_of(question) for question in self.questions_to_keep()],
        }

    async def on_unmount(self) -> None:
        """Write the session if sessions are kept, unless an exception ended the app."""
        if self._keep and self.failure is None:
            write_session(self.session())
