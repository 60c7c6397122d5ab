"""The list of keys, and the command palette."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from shlex import split

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.screen import Screen

from floatlab.formats import CATALOG
from floatlab.formats.table_catalog import TABLES
from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, line
from floatlab.tui.app.registry import screen_for
from floatlab.tui.base import ExplorerBase
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.themes import CYCLE
from floatlab.verbs.registry import VERBS, verb_named

_HIDDEN = ("scroll_", "page_", "app.focus", "focus_", "screen.copy_text", "help_quit", "copy_text")


def keys_page(screen: Screen[object]) -> Page:
    """Return a page with the keys that are active now, first those of the focused widget, and the help texts."""
    groups: dict[str, dict[str, list[str]]] = {}
    seen: set[tuple[str, str]] = set()
    for key, active in screen.active_bindings.items():
        binding = active.binding
        if binding.description and not binding.action.startswith(_HIDDEN) and (key, binding.action) not in seen:
            seen.add((key, binding.action))
            name = getattr(active.node, "NAME", "").capitalize() or type(active.node).__name__.lower()
            owner = getattr(active.node, "PLACE", f"In {name}")
            rows = groups.setdefault(owner, {})
            rows.setdefault(binding.tooltip or binding.description, []).append(screen.app.get_key_display(binding))
    blocks: list[Block] = []
    for owner, rows in groups.items():
        blocks += [Gap()] if blocks else []
        blocks.append(Note(line(Span(owner, Role.HEADING))))
        blocks += [Row(" ".join(keys), line(words)) for words, keys in rows.items()]
    texts = [widget.HELP for widget in (screen.focused, screen) if widget is not None and widget.HELP]
    for text in texts:
        blocks += [Gap(), Note(line(text))]
    blocks += [
        Gap(),
        Note(line("Ctrl+P opens the command palette, which finds formats, rules, examples and all actions by name.")),
    ]
    return Page(tuple(blocks), "keys")


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
