"""The screen Formats: the table of all formats, one format in full, the codes of a small format, and comparisons."""

from __future__ import annotations

from collections.abc import Iterator

from rich.segment import Segment
from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.reactive import reactive
from textual.widget import Widget
from textual.widgets import Input, Label

from floatlab.formats import CATALOG, Format, catalog_row, parse_format
from floatlab.formats.catalog import short_name
from floatlab.formats.table_catalog import TABLES
from floatlab.numbers.datum import Datum
from floatlab.page.model import Grid, Page, joined
from floatlab.tui.screens.formats.codes import CodePage
from floatlab.tui.screens.inspect.expression import code_in
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.panes import Topic, TopicPane, pane
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.widgets import MARGIN, Cells, ChoiceBar, ColumnTable, PageView, note_page
from floatlab.tui.widgets.boxes import fill, is_wrong, mark_valid
from floatlab.tui.widgets.saving import Copies
from floatlab.verbs.formats.page import formats_table
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question, command_of

_MARK = "•"
_EXAMPLES = "fp16 bf16  e4m3  e5m10  p3109_k8p3se"


class FormatTable(ColumnTable):
    """The table of formats. A click in the margin before a name marks the format."""

    PLACE = "On the table of formats"  # the heading in the list of keys
    HELP = (
        "Arrows move over the formats and show other columns; space marks formats to compare. Enter opens "
        "the number 1 of this format in Inspect."
    )

    marked: reactive[frozenset[int]] = reactive(frozenset)

    def segments(self, y: int) -> list[Segment]:
        """Return the segments of a line, with a mark in the margin if its row is marked."""
        pieces = super().segments(y)
        if y - self.FROZEN in self.marked:
            first = pieces[0]
            pieces[0] = Segment(_MARK + first.text[1:], first.style)
        return pieces

    def clicked(self, cell: int, column: int, times: int) -> None:
        """Mark a row on a click in the margin; open it on a double click elsewhere."""
        if column < MARGIN:
            self.call_next(self.screen.run_action, "mark")
        else:
            super().clicked(cell, column, times)


class FormatsScreen(TaskScreen, inherit_bindings=False):
    """The screen for formats. Its question has the marked formats; the format at the cursor is shown in full."""

    VIEWS = (("format", "Format"), ("codes", "Codes"), ("compare", "Compare"))
    PARTS = "#side > #codes, #details"
    ROUNDS = False
    HELP = (
        "The row with the cursor is shown in full; space marks rows to compare, and f adds any format by its name. "
        "The box has the marked names. With the mouse: a click before a name marks it, a double click opens the "
        "number 1 of this format in Inspect, a click on the header shows other columns."
    )
    BINDINGS = [
        Binding("space", "mark", "Mark", id="formats.mark", key_display="space"),
        Binding("x,delete", "drop", "Drop row", id="drop", show=False),
        *SHARED_KEYS,
    ]
    DEFAULT_CSS = """
    FormatsScreen {
        #table { height: 9fr; }
        #side { height: 1fr; }
        &.-codes #table { height: 4; }
        &.-compare #table { height: 7; }
        &.-compare.-short #table { height: 5; }
        &.-wide #body { layout: horizontal; }
        &.-wide #table { width: 58; height: 1fr; }
        &.-wide.-codes #table, &.-wide.-compare #table { width: 40; min-width: 40; height: 1fr; }
        &.-two-topics #table, &.-two-topics.-codes #table, &.-two-topics.-compare #table { width: 72; }
        #lower { height: 11fr; }
        &.-codes #lower, &.-compare #lower, &.-wide #lower { height: 1fr; }
        &.-topic-below.-compare #side, &.-two-topics #side { height: auto; max-height: 70%; }
        &.-topic-below.-compare #details, &.-two-topics #details { height: auto; max-height: 100%; }
        &.-two-topics.-codes #codes { height: auto; max-height: 100%; }
        &.-wide.-short #side, &.-wide.-high #side { border-left: vkey $panel; }
    }
    """

    table, codes = getters.query_one(FormatTable), getters.query_one(CodePage)
    names = getters.query_one("#names", Input)

    def __init__(self, question: Question) -> None:
        """Store the first question."""
        super().__init__(question)
        self.marked: dict[str, Format] = {}
        self.formats: dict[str, Format] = {}  # the rows
        self._added: dict[str, Format] = {}  # formats added by name, whose rows remain when they are unmarked
        self._page_cache: dict[tuple[str, ...], list[Page]] = {}

    def compose_task(self) -> ComposeResult:
        """Compose the box of names, the table, and the views."""
        names = Input(id="names", compact=True, placeholder=_EXAMPLES)
        yield Horizontal(Label("compare"), names, classes="entry")
        with Vertical(id="body"):
            yield pane(FormatTable(id="table"), "Formats")
            with Vertical(id="lower"):
                with pane(Vertical(id="side")):
                    yield ChoiceBar(self.choose_view, self.VIEWS, self.view, id="views")
                    yield CodePage(id="codes")
                    yield PageView(id="details")
                yield pane(TopicPane(id="beside"))

    @property
    def current(self) -> Format:
        """The format under the cursor."""
        return list(self.formats.values())[self.table.cursor]

    # The question.

    def with_format(self, question: Question, format: Format) -> Question:
        """Return the question with this format marked. If the format is marked already, put the cursor on its row."""
        if format.name in self.marked:
            self._go(format)
            return question
        return question.replace(values=(*question.values, short_name(format)))

    def draw(self, before: Question) -> None:
        """Show the rows and the marks; the cursor moves to a format that was just marked.

        When a second format is marked, the view Compare is shown.
        """
        question, marked = self.question, self.marked
        cursor = self.current if self.formats else None
        self.marked = {format.name: format for format in map(parse_format, question.values)}
        named = {row.format.name: row.format for row in (*CATALOG, *TABLES)}
        self._added = {name: format for name, format in self._added.items() if name not in named}
        formats = named | self._added | self.marked
        if formats != self.formats:
            self.formats = formats
            self.table.show(formats_table([catalog_row(format) for format in formats.values()]))
        self.table.marked = frozenset(i for i, name in enumerate(formats) if name in self.marked)
        new = next((format for name, format in self.marked.items() if name not in marked), cursor)
        if new is not None:
            self._go(new)
        if len(marked) < 2 <= len(self.marked):
            self.view = "compare"
        if not self.names.has_focus:  # unless the user is typing there
            fill(self.names, " ".join(question.values))
        self.draw_view()

    def _go(self, format: Format) -> None:
        """Put the cursor on a format, if it has a row."""
        if format.name in self.formats:
            self.table.set_cursor(list(self.formats).index(format.name))

    # The views.

    def _names(self) -> tuple[str, ...]:
        """Return the names of the formats on the page: the one at the cursor or, in the view Compare, the marked ones.

        If fewer than two formats are marked, the view Compare also shows the format under the cursor.
        """
        current = short_name(self.current)
        if self.view != "compare":
            return (current,)
        marked = tuple(map(short_name, self.marked.values()))
        return marked if len(marked) > 1 else tuple(dict.fromkeys((*marked, current)))

    def _pages(self) -> list[Page]:
        """Return the page of each format in `_names` and, if there are several, the page that compares them."""
        names = self._names()
        if names not in self._page_cache:
            self._page_cache[names] = answer_question(Question("formats", names))[0].parts()
        return self._page_cache[names]

    def page(self) -> Page:
        """Return the page that the command line would show."""
        return joined(self._pages())

    def draw_view(self) -> None:
        """Show the page of the current view."""
        page = self._pages()[-1]
        self.query_one("#side").border_title = "Compared" if self.view == "compare" else self.current.name
        grid = next((block for block in page.blocks if isinstance(block, Grid)), None)
        has_codes = self.view == "codes" and grid is not None
        self.show_only("codes" if has_codes else "details")
        if has_codes and grid is not None:
            self.codes.show(self.current, grid)
        elif self.view == "codes":
            page = note_page(
                f"{self.current.name} has too many codes to list: only formats of up to 8 bits have a table. A code "
                "that is typed in the box above, such as 0x3c00, is shown in every format of its width."
            )
        elif self.view == "compare" and len(self._names()) < 2:
            first = "" if self.marked else "Mark a format with space. "
            page = note_page(
                f"{first}Move to another row to compare its format with the marked one; space marks more formats."
            )
        if not has_codes:
            self.details.page = page
        self.set_class(has_codes, "-codes")
        self.set_class(self.view == "compare", "-compare")

    @property
    def has_topic_below(self) -> bool:
        """Whether the current view is so short that there is room for a topic below it."""
        return self.view == "compare"

    def topics(self) -> list[Topic]:
        """Return at most one topic: the page of the format under the cursor.

        The view Format shows this page already. There, the topic compares this format with the marked formats.
        """
        current = short_name(self.current)
        names = tuple(dict.fromkeys((*map(short_name, self.marked.values()), current)))
        if self.view != "format":
            return [(self.current.name, answer_question(Question("formats", (current,)))[0].page())]
        return [("Compared", answer_question(Question("formats", names))[0].parts()[-1])] if len(names) > 1 else []

    def watch_view(self) -> None:
        """Draw the new view from its top; focus the codes if they are shown."""
        super().watch_view()
        if self.formats:
            self.details.scroll_home(animate=False)
            if self.codes.display and not isinstance(self.focused, Input):
                self.codes.table.focus()
            self.refresh_bindings()

    # The table.

    @on(Cells.Moved, "#table")
    def _moved(self) -> None:
        self.draw_view()
        self.draw_beside()
        self.details.scroll_home(animate=False)
        self.refresh_bindings()

    @on(Cells.Chosen, "#table")
    def _format_chosen(self) -> None:
        self.inspect("1", (self.current,))

    def action_mark(self) -> None:
        """Mark or unmark the row under the cursor. An unmarked row remains in the table."""
        format = self.current
        if format.name in self.marked:
            self._added[format.name] = format
            self._unmark(format)
        else:
            self.open(self.with_format(self.question, format))

    def _unmark(self, format: Format) -> None:
        values = tuple(value for value in self.question.values if parse_format(value) != format)
        self.open(self.question.replace(values=values))

    def action_drop(self) -> None:
        """Unmark the row under the cursor. If the user added the row by typing a name, also remove the row."""
        format = self.current
        self._added.pop(format.name, None)
        self._unmark(format)

    @on(Input.Changed, "#names")
    def _names_typed(self, event: Input.Changed) -> None:
        question = self.question.replace(values=tuple(event.input.value.replace(",", " ").split()))
        valid = self.open(question, "names")
        mark_valid(event.input, valid)
        if not valid and (code := code_in(event.input.value)) is not None:
            self.complain(f"Enter shows this code in every format of its width: {command_of(code)}", hint=True)

    @on(Input.Submitted, "#names")
    def _names_entered(self, event: Input.Submitted) -> None:
        """If the box contains a code, open the code in Inspect, in all formats of the code's width."""
        if is_wrong(event.input) and (code := code_in(event.input.value)) is not None:
            self.forget_mistakes()
            fill(self.names, " ".join(self.question.values))
            self.complain("")
            self.action_leave()  # so that Backspace works when the user has come back
            self.app.ask(code)

    # The codes.

    @on(Input.Changed, "#code")
    def _code_typed(self) -> None:
        self.complain(self.codes.find())

    @on(Input.Blurred, "#code")
    def _code_left(self) -> None:
        self.complain("")
        mark_valid(self.codes.box, True)  # text that was not found is no error once the box is left
        self.codes.draw()

    @on(Cells.Chosen, "CodeTable")
    def _code_chosen(self) -> None:
        """Open the code under the cursor in Inspect. The code's format becomes the first of Inspect's formats."""
        others = (format for format in self.app.standing("inspect").formats if format != self.current)
        self.inspect(self.codes.literal, (self.current, *others))

    # Methods that the base classes call.

    def subject(self) -> Datum | None:
        """Return the number whose code is under the cursor, or None if the codes are not shown."""
        return self.codes.datum if self.codes.display else None

    def printed(self) -> Question:
        """Return the question whose command prints the page that is shown."""
        return Question("formats", self._names())

    def copies(self) -> Copies:
        """Return the texts to copy: the code under the cursor or, if no codes are shown, the names of the formats."""
        copies = super().copies()
        if self.codes.display:
            copies["value"] = ("the shortest decimal", lambda: self.codes.answer.words()[0])
            copies["code"] = ("the code", lambda: self.codes.answer.codes()[0])
        else:
            copies["value"] = ("the name", lambda: " ".join(self._names()))
            del copies["code"]
        return copies

    def possible(self) -> dict[str, bool]:
        """Return, for each action, whether it is available. Only marked or added rows can be dropped."""
        goes = bool(self.formats) and self.current.name in self._added | self.marked
        return super().possible() | {"pin": bool(self.formats) and self.codes.display, "drop": goes}

    def boxes(self) -> Iterator[Widget]:
        """Return the box of the code if it is shown, and the box of names."""
        yield from (self.codes.box,) if self.codes.display else ()
        yield self.names

    def home(self) -> Iterator[Widget]:
        """Yield the widgets to focus when a box is left; the last one is the table of formats.

        If the box or the row of bits of a code has the focus, the table of codes comes first.
        """
        inside = self.focused is not None and self.codes in self.focused.ancestors
        if self.codes.display and inside and self.focused is not self.codes.table:
            yield self.codes.table
        yield self.table

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for views and marks."""
        yield from super().commands()
        yield "Unmark all", "compare nothing", lambda: self.open(self.question.replace(values=()))
