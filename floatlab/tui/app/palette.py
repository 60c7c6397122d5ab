"""The command palette."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from shlex import split

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.events import Mount

from floatlab.errors import FloatlabError
from floatlab.formats import CATALOG, Format
from floatlab.formats.catalog import short_name
from floatlab.formats.table_catalog import TABLES
from floatlab.record import Record
from floatlab.tui.app.help_windows import EXAMPLES, HIDDEN
from floatlab.tui.app.navigation import Navigation
from floatlab.tui.app.registry import screen_for
from floatlab.tui.screens.inspect.expression import number_in, operation_in
from floatlab.tui.screens.task import SPOKEN, TaskScreen
from floatlab.tui.themes import CYCLE
from floatlab.tui.widgets.window import ClosedOnce
from floatlab.verbs.edits import EDITS
from floatlab.verbs.formats.quantities import QUANTITIES, quantity
from floatlab.verbs.registry import VERBS, verb_named


class Offer(Record):
    """A row of the palette: a name, a help text, an action, and other names by which it is found.

    Among rows that match equally well, those with more `weight` come first.
    """

    name: str
    words: str
    do: Callable[[], object]
    also: tuple[str, ...] = ()
    weight: int = 0

    def score(self, query: str) -> int:
        """Return how well typed text matches, or 0 if it does not.

        From best to worst: a whole name, the beginning of a name, words of names, words of the help text.

        >>> entry = Offer("Format: binary16", "GPUs", print, ("half", "fp16"))
        >>> [entry.score(typed) for typed in ("half", "for", "16 binary", "gpu", "float")]
        [1000, 500, 300, 100, 0]
        """
        typed = " ".join(query.lower().replace(":", " ").split())
        names = [" ".join(name.lower().replace(":", " ").split()) for name in (self.name, *self.also)]
        if typed in names:
            return 1000 + self.weight
        if any(name.startswith(typed) for name in names):
            return 500 + self.weight
        for least, text in ((300, " ".join(names)), (100, " ".join((*names, self.words.lower())))):
            if all(part in text for part in typed.split()):
                return least + self.weight
        return 0


# The weights of examples in the first steps, of other examples, and of rows about the current screen.
_FIRST, _EXAMPLES, _HERE = 60, 40, 20


class Palette(Provider):
    """Provider of all actions of the explorer for Textual's command palette."""

    def _entries(self) -> list[Offer]:
        """Return all rows: examples come first, and active keys that have no other row come last.

        If a key does the same as a row, the help text of the row names the key.
        """
        app = self.app
        assert isinstance(app, Navigation)
        task = next((screen for screen in reversed(app.screen_stack) if isinstance(screen, TaskScreen)), None)
        keys = _keys(task) if task is not None else {}
        entries = []
        for entry in self._rows(app, task):
            key = keys.pop(entry.name.lower(), None) or keys.pop(entry.name.partition(": ")[2].lower(), None)
            entries.append(entry if key is None else entry.replace(words=f"{entry.words} · key {key[0]}"))
        entries += [
            Offer(words[0].upper() + words[1:], f"key {key}", do, _ULP if words in _ULPS else (), _HERE)
            for words, (key, do) in keys.items()
        ]
        return entries

    def _rows(self, app: Navigation, task: TaskScreen | None) -> Iterator[Offer]:
        for shown in EXAMPLES:
            yield Offer(shown.title, "an example of the first steps", partial(app.show_example, shown), weight=_FIRST)
        for verb in map(verb_named, VERBS):
            if screen_for(verb.name):
                for example in verb.examples:
                    ask = partial(self._ask, app, example)
                    yield Offer(f"Example: {example}", verb.summary, ask, (verb.name,), _EXAMPLES)
        if task is not None:
            for name, words, act in task.commands():
                yield Offer(name, words, act, _ULP if name.partition(": ")[2] in _ULPS else (), _HERE)
            for name, (description, _) in task.copies().items():
                yield Offer(f"Copy {description}", "to the clipboard", partial(task.action_copy, name))
            yield Offer("Save …", "the page, as text, SVG, HTML or JSON, to a file", task.action_save)
            for row in (*CATALOG, *TABLES):
                take = partial(task.take_format, row.format.name)
                yield Offer(f"Format: {row.format.name}", row.purpose, take, _names(row.format, row.aliases))
            for rule in task.rules:
                take = partial(task.take_rule, rule.name)
                yield Offer(f"{rule.group}: {rule.words}", "how numbers are rounded", take, SPOKEN.get(rule.name, ()))
        for verb in map(verb_named, VERBS):
            if screen_for(verb.name):
                ask = partial(self._ask, app, verb.examples[0])
                yield Offer(f"Function: {verb.name}", verb.summary, ask, (verb.name,))
        for name, others in QUANTITIES.items():
            for row in CATALOG:
                show = partial(self._quantity, app, row.format, name)
                names = (*others, *(f"{each} {alias}" for each in (name, *others) for alias in row.aliases))
                here = _HERE if task is not None and row.format in task.question.formats else 0
                yield Offer(f"{name} of {row.format.name}", "opens in Inspect", show, names, here)
        for name, title in app.titles:
            yield Offer(f"Screen: {title}", "go there", partial(app.go, name))
        for theme in (*CYCLE, *sorted(set(app.available_themes) - set(CYCLE))):
            yield Offer(f"Theme: {theme}", "change the colours", partial(setattr, app, "theme", theme))
        yield Offer("First steps", "what the screens are for, and examples", partial(app.run_action, "app.welcome"))
        yield Offer("History", "return to a question that was asked before", partial(app.run_action, "app.history"))
        yield Offer("Keys", "list the keys that work here", partial(app.run_action, "app.keys"))
        yield Offer("Quit", "quit; the session is saved", app.action_quit)

    @staticmethod
    def _ask(app: Navigation, example: str) -> None:
        app.ask(app.read_question(split(example)))

    @staticmethod
    def _quantity(app: Navigation, format: Format, name: str) -> None:
        try:
            app.ask(quantity(name, format))
        except FloatlabError as error:
            app.notify(str(error), severity="warning")

    async def discover(self) -> Hits:
        """Yield all actions while nothing is typed."""
        for entry in self._entries():
            yield DiscoveryHit(entry.name, entry.do, help=entry.words)

    async def search(self, query: str) -> Hits:
        """Yield the rows that match. If `query` is a number or an operation, the first row evaluates it.

        Rows whose names contain the typed letters in order, but not side by side, come last.
        """
        matcher = self.matcher(query)
        typed = query.strip()
        if typed and (question := operation_in(typed) or number_in(typed)) is not None:
            row = screen_for(question.verb)
            assert row is not None
            assert isinstance(self.app, Navigation)
            ask = partial(self.app.ask, question)
            yield Hit(1100, f"{row.name.capitalize()}: {typed}", ask, help="shows what is typed")
        for entry in self._entries():
            score = entry.score(query) or min(matcher.match(entry.name), 50)
            if score > 0:
                yield Hit(score, matcher.highlight(entry.name), entry.do, help=entry.words)


_ULPS = (EDITS["up"].summary, EDITS["down"].summary)
_ULP = ("ulp", "unit in the last place", "next number")


def _names(format: Format, aliases: Iterable[str]) -> tuple[str, ...]:
    """Return other names of a format: its aliases, and names for all formats of its width, such as fp8 and 8-bit."""
    width = (f"fp{format.width}", f"float{format.width}", f"{format.width} bits", f"{format.width}-bit")
    return (short_name(format), *aliases, *width)


def _keys(task: TaskScreen) -> dict[str, tuple[str, Callable[[], object]]]:
    """Return the active keys of a screen: a dictionary from descriptions to the key and its action."""
    found: dict[str, tuple[str, Callable[[], object]]] = {}
    for active in task.active_bindings.values():
        binding = active.binding
        words = binding.tooltip or binding.description
        if words and active.enabled and not binding.action.startswith(HIDDEN):
            do = partial(task.app.run_action, binding.action, active.node)
            found.setdefault(words.lower(), (task.app.get_key_display(binding), do))
    return found


class Commands(CommandPalette, ClosedOnce[None]):
    """Textual's command palette, without the exceptions that Textual raises for keys typed before it is drawn."""

    # Marks the highlighted row without colours: Textual's option lists do not draw reverse video.
    DEFAULT_CSS = """
    Commands CommandList:nocolor > .option-list--option-highlighted { text-style: bold underline; }
    """

    def _on_mount(self, event: Mount) -> None:
        """If the user has left the screen while the palette was being opened, close the palette."""
        if not self.is_active:
            event.prevent_default()  # Textual would look for the screen behind the palette
            self.dismiss(None)

    def _action_command_list(self, action: str) -> None:
        with suppress(KeyError, IndexError):
            super()._action_command_list(action)
