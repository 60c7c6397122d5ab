"""The command palette."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from shlex import split

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider

from floatlab.formats import CATALOG
from floatlab.formats.table_catalog import TABLES
from floatlab.tui.app.registry import screen_for
from floatlab.tui.base import ExplorerBase
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.themes import CYCLE
from floatlab.verbs.registry import VERBS, verb_named


class Palette(Provider):
    """A provider for the command palette with all actions of the explorer."""

    def _rows(self) -> Iterator[Command]:
        app = self.app
        assert isinstance(app, ExplorerBase)
        task = next((screen for screen in reversed(app.screen_stack) if isinstance(screen, TaskScreen)), None)
        if task is not None:
            yield from task.commands()
            for name, (description, _) in task.copies().items():
                yield f"Copy {description}", "to the clipboard", partial(task.action_copy, name)
            for row in (*CATALOG, *TABLES):
                yield f"Format: {row.format.name}", row.purpose, partial(task.take_format, row.format.name)
            for rule in task.rules:
                yield f"{rule.group}: {rule.words}", "how numbers are rounded", partial(task.take_rule, rule.name)
        for verb in map(verb_named, VERBS):
            if screen_for(verb.name):
                for example in verb.examples:
                    yield f"Example: {example}", verb.summary, partial(self._ask, app, example)
        for name, title in app.titles:
            yield f"Screen: {title}", "go there", partial(app.go, name)
        for theme in (*CYCLE, *sorted(set(app.available_themes) - set(CYCLE))):
            yield f"Theme: {theme}", "change the colours", partial(setattr, app, "theme", theme)
        yield "First steps", "what the screens are for, and examples", partial(app.run_action, "app.welcome")
        yield "History", "return to a question that was asked before", partial(app.run_action, "app.history")
        yield "Keys", "list the keys that work here", partial(app.run_action, "app.keys")
        yield "Quit", "quit; the session is saved", app.action_quit

    @staticmethod
    def _ask(app: ExplorerBase, example: str) -> None:
        app.ask(app.read_question(split(example)))

    async def discover(self) -> Hits:
        """Yield all actions while nothing is typed."""
        for name, words, do in self._rows():
            yield DiscoveryHit(name, do, help=words)

    async def search(self, query: str) -> Hits:
        """Yield the actions that match the typed text."""
        matcher = self.matcher(query)
        for name, words, do in self._rows():
            score = matcher.match(name)
            if score > 0:
                yield Hit(score, matcher.highlight(name), do, help=words)


class Commands(CommandPalette):
    """Textual's command palette, without its exception if a page key is pressed before the list is drawn."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError, IndexError):
            super()._action_command_list(action)
