"""Two windows for help: the list of keys, which can be filtered, and the first steps."""

from __future__ import annotations

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import Screen
from textual.widgets import Input, Label, OptionList
from textual.widgets.option_list import Option

from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, line, text_of
from floatlab.record import Record
from floatlab.tui.app.registry import SCREENS
from floatlab.tui.widgets import HelpWindow, PageView, Window

HIDDEN = ("scroll_", "page_", "app.focus", "focus_", "screen.copy_text", "help_quit", "copy_text")


def keys_page(screen: Screen[object]) -> Page:
    """Return the page of the active keys. The keys of the focused widget come first."""
    groups: dict[str, dict[str, list[str]]] = {}
    seen: set[tuple[str, str]] = set()
    for key, active in screen.active_bindings.items():
        binding = active.binding
        if binding.description and not binding.action.startswith(HIDDEN) and (key, binding.action) not in seen:
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


def filtered(page: Page, typed: str) -> Page:
    """Filter the list of keys: return the rows that contain all typed words, with their headings."""
    words, blocks = typed.lower().split(), list[Block]()
    if not words:
        return page
    heading: Block | None = None
    for block in page.blocks:
        if isinstance(block, Row):
            text = f"{block.label} {text_of(block.content)}".lower()
            if all(word in text for word in words):
                blocks += [heading] if heading is not None else []
                blocks.append(block)
                heading = None
        elif isinstance(block, Note):
            heading = block
    return Page(tuple(blocks) or (Note(line("no key does this; Ctrl+P finds more by name")),), page.title)


class KeysWindow(HelpWindow):
    """A window with the active keys, as high as the screen. Text typed into its box filters the list of keys."""

    BINDINGS = [
        Binding("slash", "filter", "Filter", id="help.filter"),
        Binding("down", "scroll(1)", "Down", id="help.down", show=False),
        Binding("up", "scroll(-1)", "Up", id="help.up", show=False),
    ]
    DEFAULT_CSS = """
    KeysWindow {
        & > Vertical { width: 76; height: 100%; max-height: 100%; }
        PageView { height: 1fr; max-height: 100%; }
    }
    """
    box, view = getters.query_one(Input), getters.query_one(PageView)

    def __init__(self, page: Page) -> None:
        """Store the page of all keys."""
        super().__init__("Keys", page)
        self._all = page

    def compose(self) -> ComposeResult:
        """Compose the box and the page."""
        with Vertical():
            yield Label("Keys that work here", id="title", markup=False)
            yield Input(placeholder="/ filters: type what you want to do", compact=True)
            yield PageView(self._all)
            yield Label("Escape closes, arrows scroll", id="close", markup=False)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self.view.page = filtered(self._all, event.value)
        self.view.scroll_home(animate=False)

    @on(Input.Submitted)
    def _entered(self) -> None:
        self.view.focus()

    def action_filter(self) -> None:
        """Move the focus to the box that filters the keys."""
        self.box.focus()

    def action_scroll(self, by: int) -> None:
        """Scroll the page while the box has the focus."""
        self.view.scroll_relative(y=by, animate=False)


class Example(Record):
    """An example in the first steps: its title, its command as words, and the view to show (empty: the first view)."""

    title: str
    words: tuple[str, ...]
    view: str = ""


EXAMPLES = (
    Example("Why is 0.1 + 0.2 not 0.3?", ("add", "0.1", "0.2", "--fp64")),
    Example("Why did 957 become 896 in 8 bits?", ("show", "957", "--e5m2", "--e4m3", "--fp16")),
    Example(
        "How does a fused multiply-add differ from two roundings?",
        ("fma", "1.0009765625", "1.0009765625", "-1.001953125", "--fp16"),
    ),
    Example(
        "Why does a small update of a weight vanish?",
        ("train", "step", "1.125", "--update", "0.0004", "--fp16"),
    ),
    Example(
        "Why do two libraries get different sums of the same numbers?",
        ("sum", "random:normal:1000:seed=1", "--fp32", "--schedule", "numpy"),
        "orders",
    ),
)


class Welcome(Window["Example | str | None"]):
    """The first steps: examples, and what each screen is for.

    The window returns the chosen example, the name of the chosen screen, or None if the user closed the window.
    """

    BINDINGS = [
        Binding("escape,q,f1", "dismiss(None)", "Close", id="welcome.close"),
        *(
            Binding(f"f{number}", f"dismiss('{name}')", name.capitalize(), id=f"welcome.{name}", show=False)
            for number, name in enumerate(SCREENS, 2)
        ),
    ]
    DEFAULT_CSS = """
    Welcome {
        & > Vertical { width: 78; }
        OptionList { max-height: 18; }
    }
    """

    def compose(self) -> ComposeResult:
        """Compose the examples and the screens as one list."""
        width = max(map(len, SCREENS)) + 3
        examples = [Option(example.title, id=f"example {i}") for i, example in enumerate(EXAMPLES)]
        screens = [
            Option(f"{f'F{number} {row.name.capitalize()}':<{width}} {row.purpose}", id=row.name)
            for number, row in enumerate(SCREENS.values(), 2)
        ]
        with Vertical():
            yield Label("floatlab shows what happens when numbers are rounded.", id="title", markup=False)
            yield Label("Enter opens an example or a screen:", id="hint", markup=False)
            yield OptionList(*examples, None, *screens, markup=False, compact=True)
            yield Label(
                "Escape closes. F1 opens this again, ? lists keys, Ctrl+P finds actions.", id="close", markup=False
            )

    def on_mount(self) -> None:
        """Put the cursor on the first example."""
        self.query_one(OptionList).focus()
        self.query_one(OptionList).highlighted = 0

    @on(OptionList.OptionSelected)
    def _chosen(self, event: OptionList.OptionSelected) -> None:
        name = event.option.id or ""
        self.dismiss(EXAMPLES[int(name.split()[1])] if name.startswith("example ") else name)
