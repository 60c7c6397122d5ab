"""Navigation between screens: tabs, the key that goes back, the history of questions, and the first steps."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress

from floatlab.errors import FloatlabError
from floatlab.tui.app.help_windows import Example, Welcome
from floatlab.tui.app.registry import SCREENS, ScreenRow, screen_for
from floatlab.tui.base import ExplorerBase
from floatlab.tui.screens.task import TaskScreen
from floatlab.tui.screens.way_back import Questions, Trail
from floatlab.tui.widgets import Choice, KeyBar, Picker
from floatlab.verbs.question import Question
from floatlab.verbs.registry import command_of

_KEPT = 50  # at most this many questions of the history are saved


class Navigation(ExplorerBase):
    """The part of the app that switches screens, and remembers visited places and questions.

    `opened` maps names to the screens opened so far. `starts` and `start_views` map the names of screens that are not
    open yet to the questions and views with which they will open.
    """

    opened: dict[str, TaskScreen]
    starts: dict[str, Question]
    start_views: dict[str, str]

    def start_navigation(self, earlier: object) -> None:
        """Start with no place to go back to.

        `earlier` is the history in the file of the last session, which has not been validated yet.
        """
        self._trail, self._questions = Trail(), Questions(lambda: self._read_history(earlier))

    def question_left(self, row: ScreenRow) -> Question:
        """Return the last question of a screen in the last session or, if there is none, its default question."""
        raise NotImplementedError

    def _read_history(self, earlier: object) -> Iterator[tuple[str, Question]]:
        """Yield the name of the screen and the question, for each valid entry of the history."""
        for words in earlier if isinstance(earlier, list) else ():
            if isinstance(words, list) and all(isinstance(word, str) for word in words):
                with suppress(FloatlabError):
                    question = self.read_question(words)
                    if row := screen_for(question.verb):
                        yield row.name, question

    def questions_to_keep(self) -> list[Question]:
        """Return the newest questions of the history, the newest one last."""
        return [question for _, question in self._questions.newest_first[_KEPT - 1 :: -1]]

    @property
    def shown(self) -> TaskScreen | None:
        """The current screen, even if a window is in front of it."""
        return self.opened.get(self.current_mode)

    def default_question(self, name: str) -> Question:
        """Return the default question of a screen."""
        return self.read_question(list(SCREENS[name].start))

    def standing(self, name: str) -> Question:
        """Return the question that a screen shows, or would show when it is opened."""
        task = self.opened.get(name)
        return task.question if task else self.question_left(SCREENS[name])

    def go(self, name: str, question: Question | None = None) -> None:
        """Show a screen. If a question is given, the screen shows this question."""
        opened = self.opened.get(name)
        if question is not None or name != self.current_mode:
            self.leave_place()
            self.has_drilled = question is not None
        if question is not None and opened is None:
            self.starts[name] = question
        if name != self.current_mode:
            with self._announced(name) if opened is None else nullcontext():
                self.switch_mode(name)
        if question is not None and opened is not None:
            opened.show_question(question)
        self.tell_address()

    @contextmanager
    def _announced(self, name: str) -> Iterator[None]:
        """Context manager that marks the tab of a screen before the screen opens; opening may take a second."""
        left = self.shown
        # After two quick clicks on tabs, the current screen may have no widgets yet.
        bar = next(iter(left.query(KeyBar)), None) if left is not None and left.is_current else None
        if left is None or bar is None:
            yield
            return
        left.head.current, bar.said = name, "…"
        # Textual would draw only after the screen has opened.
        left._compositor.update_widgets({left.head, bar})
        self._display(left, left._compositor.render_update())
        try:
            yield
        finally:
            left.head.current, bar.said = left.NAME, ""

    def leave_place(self) -> None:
        """Remember the current place, so that `go_back` can return to it."""
        if self.shown is not None:
            self._trail.leave(self.shown.shown_place)
            self.has_drilled = True
            self.shown.refresh_bindings()

    def action_go_back(self) -> None:
        """Go back to the place that was left last."""
        place = self._trail.back(self.shown.shown_place if self.shown is not None else None)
        if place is not None:
            if place.screen != self.current_mode:
                self.switch_mode(place.screen)
            self.has_drilled = bool(self._trail)
            self.opened[place.screen].come_back(place)
            self.tell_address()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide the action `go_back` while there is no place to go back to."""
        return bool(self._trail) if action == "go_back" else super().check_action(action, parameters)

    def note_question(self, question: Question, replaces: bool) -> None:
        """Add a question to the history.

        With `replaces`, the last question is removed if it belongs to the same screen.
        """
        if row := screen_for(question.verb):
            self._questions.note(row.name, question, replaces=replaces)

    def action_history(self) -> None:
        """Open the list of earlier questions, and show the chosen one."""
        rows = self._questions.newest_first
        asked = {command_of(question).removeprefix("floatlab "): (name, question) for name, question in reversed(rows)}
        width = max(map(len, SCREENS))
        choices = [Choice(words, f"{name:<{width}} {words}") for words, (name, _) in reversed(asked.items())]

        def taken(words: str | None) -> None:
            if words is not None:
                self.go(*asked[words])

        now = command_of(self.shown.question).removeprefix("floatlab ") if self.shown is not None else ""
        self.push_screen(Picker("Questions asked before, the newest first", choices, (now,)), taken)

    def ask(self, question: Question) -> None:
        """Show the screen that answers a question."""
        if row := screen_for(question.verb):
            self.go(row.name, question)

    action_go = go

    def action_turn(self, by: int) -> None:
        """Show the next or the previous screen."""
        names = list(SCREENS)
        self.go(names[(names.index(self.current_mode) + by) % len(names)])

    def action_welcome(self) -> None:
        """Show what the screens are for, and examples to begin with."""

        def taken(chosen: Example | str | None) -> None:
            if isinstance(chosen, Example):
                self.show_example(chosen)
            elif chosen is not None:
                self.go(chosen)

        self.push_screen(Welcome(), taken)

    def show_example(self, example: Example) -> None:
        """Show an example of the first steps."""
        question = self.read_question(list(example.words))
        row = screen_for(question.verb)
        opened = self.opened.get(row.name) if row is not None else None
        if row is not None and opened is None and example.view:
            self.start_views[row.name] = example.view
        self.ask(question)
        if opened is not None and example.view:
            opened.choose_view(example.view)
