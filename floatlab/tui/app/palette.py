"""The command palette: formats, rules, examples, edits, copies and screens, all from the tables they live in."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from shlex import split

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider

from floatlab.formats import CATALOG
from floatlab.tui.app.registry import TASKS, entry_for
from floatlab.tui.app.themes import CYCLE
from floatlab.verbs.registry import VERBS, verb_named
from floatlab.verbs.rules import RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from floatlab.tui.app.app import Explorer
    from floatlab.tui.screens.task import Task


class Palette(Provider):
    """Everything that can be asked of the explorer, by name."""

    def _rows(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        app: Explorer = self.app  # type: ignore[assignment]
        task: Task | None = app.shown
        if task is not None:
            yield from task.commands()
            for name, (words, _) in task.copies().items():
                yield f"Copy {words}", "to the clipboard", partial(task.action_copy, name)
            for row in CATALOG:
                yield f"Format: {row.format.name}", row.purpose, partial(task.picked_format, row.format.name)
            for rule in RULES if task.ROUNDS else ():
                yield f"{rule.group}: {rule.words}", "how numbers are rounded", partial(task.set_rule, rule.name)
        for verb in map(verb_named, VERBS):
            if entry_for(verb.name):
                for example in verb.examples:
                    yield f"Example: {example}", verb.summary, partial(self._ask, example)
        for entry in TASKS.values():
            yield f"Screen: {entry.title}", "go there", partial(app.go, entry.name)
        for theme in (*CYCLE, *sorted(set(app.available_themes) - set(CYCLE))):
            yield f"Theme: {theme}", "change the colours", partial(setattr, app, "theme", theme)
        yield "Keys", "list the keys that work here", app.action_keys
        yield "Quit", "leave; the screens are kept", app.action_quit

    def _ask(self, example: str) -> None:
        app: Explorer = self.app  # type: ignore[assignment]
        app.ask(app.read_question(split(example)))

    async def discover(self) -> Hits:
        """Offer all, while nothing is typed."""
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
    """Textual's palette, which fails where a page key comes before the list has been drawn."""

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError, IndexError):
            super()._action_command_list(action)
