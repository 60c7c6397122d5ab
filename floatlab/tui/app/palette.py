"""The command palette: formats, rules, examples, edits, copies and screens, each from the table it is defined in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from shlex import split

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider

from floatlab.formats import CATALOG
from floatlab.tui.app.registry import screen_for
from floatlab.tui.base import ExplorerBase
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.themes import CYCLE
from floatlab.verbs.option import RULES
from floatlab.verbs.registry import VERBS, verb_named


class Palette(Provider):
    """All that can be done in the explorer, by name."""

    def _rows(self) -> Iterator[Command]:
        app = self.app
        assert isinstance(app, ExplorerBase)
        task = next((screen for screen in reversed(app.screen_stack) if isinstance(screen, TaskScreen)), None)
        if task is not None:
            yield from task.commands()
            for name, (description, _) in task.copies().items():
                yield f"Copy {description}", "to the clipboard", partial(task.action_copy, name)
            for row in CATALOG:
                yield f"Format: {row.format.name}", row.purpose, partial(task.take_format, row.format.name)
            for rule in RULES if task.ROUNDS else ():
                yield f"{rule.group}: {rule.words}", "how numbers are rounded", partial(task.take_rule, rule.name)
        for verb in map(verb_named, VERBS):
            if screen_for(verb.name):
                for example in verb.examples:
                    yield f"Example: {example}", verb.summary, partial(self._ask, app, example)
        for name, title in app.titles:
            yield f"Screen: {title}", "go there", partial(app.go, name)
        for theme in (*CYCLE, *sorted(set(app.available_themes) - set(CYCLE))):
            yield f"Theme: {theme}", "change the colours", partial(setattr, app, "theme", theme)
        yield "Keys", "list the keys that work here", partial(app.run_action, "app.keys")
        yield "Quit", "leave; the screens are kept", app.action_quit

    @staticmethod
    def _ask(app: ExplorerBase, example: str) -> None:
        app.ask(app.read_question(split(example)))

    async def discover(self) -> Hits:
        """Offer everything while nothing is typed."""
        for name, words, do in self._rows():
            yield DiscoveryHit(name, do, help=words)

    async def search(self, query: str) -> Hits:
        """Offer what matches."""
        matcher = self.matcher(query)
        for name, words, do in self._rows():
            score = matcher.match(name)
            if score > 0:
                yield Hit(score, matcher.highlight(name), do, help=words)


class Commands(CommandPalette):
    """Textual's palette, without its failure at a page key that comes before the list is drawn."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError, IndexError):
            super()._action_command_list(action)
