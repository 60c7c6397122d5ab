"""The screen Inspect: a value in several formats; its bits and fields can be edited."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Input, Label

from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.formats.catalog import short_name
from floatlab.numbers.datum import Datum
from floatlab.page.model import Page, Role, Row, Span, line
from floatlab.tui.base import run_once
from floatlab.tui.screens.inspect.expression import format_of_code, hint_on_code, hint_on_hexadecimal, operation_in
from floatlab.tui.screens.inspect.field_box import FieldBox
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.panes import Column, Topic, TopicPane, pane
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.widgets import BitRow, ButtonBar, ChoiceBar, PageView, StaticPage, note_page
from floatlab.tui.widgets.boxes import fill, is_wrong, mark_valid
from floatlab.tui.widgets.saving import Copies
from floatlab.verbs.edits import EDITS, literal_of, with_field
from floatlab.verbs.question import Answer, Question, Started, code_of
from floatlab.verbs.registry import answer_question, command_of
from floatlab.verbs.show.page import with_spare_classes

_EXAMPLES = "1.5  -3e-5  1/3  0x1.8p3  nan  bits:0x3c7c  0.1@fp8_e5m2"
_LIBRARIES = ("numpy", "ml_dtypes", "torch")
_VIEW_OPTIONS = ("interval", "directions", "dialects", "like")  # options of `show` that are views of this screen
_KEYS = ["minus", "plus", "s", "less_than_sign", "greater_than_sign", "Z", "o", "i", "n", "m", "w", "g"]
EDIT_KEYS = dict(zip(EDITS, _KEYS, strict=True))


class InspectScreen(TaskScreen, inherit_bindings=False):
    """The screen for a value in several formats. Edits change the number in the active row: the row focused last."""

    VIEWS = (
        ("details", "Details"),
        ("directions", "Directions"),
        ("dialects", "Dialects"),
        ("path", "Path"),
        ("libraries", "Libraries"),
        ("pins", "A and B"),
    )
    HELP = (
        "Type a number, a code (bits:0x3c7c) or VALUE@FORMAT. Edits of bits and fields, and the edit buttons, change "
        "the row with the cursor; the other rows show its number converted to their formats."
    )
    BINDINGS = [
        *(
            Binding(key, f"edit('{name}')", EDITS[name].summary, id=f"edit.{name}", show=False)
            for name, key in EDIT_KEYS.items()
        ),
        Binding("x,delete", "drop", "Drop row", id="drop", show=False),
        Binding("e,ctrl+n", "fields", "Field", id="fields", show=False),
        *SHARED_KEYS,
    ]
    MAIN_PANE = "#side"
    DEFAULT_CSS = """
    InspectScreen {
        #controls { width: auto; padding: 0; } #left { height: auto; }
        #rows { height: auto; max-height: 10; scrollbar-size-vertical: 1; }
        #left.-maximized #rows { height: 1fr; max-height: 100%; }
        &.-narrow, &.-short {
            #body { overflow-y: auto; scrollbar-size-vertical: 1; }
            #rows { max-height: 999; }
            #lower, #main, #side, #details { height: auto; } #side.-maximized #details { height: 1fr; }
        }
        #lower { height: 1fr; } #main { width: 3fr; }
        &.-two-topics { #second { width: 2fr; } #third { height: auto; max-height: 50%; } }
        &.-two-topics, &.-topic-below {
            #side { height: auto; max-height: 70%; } #details { height: auto; max-height: 100%; }
        }
        &.-framed #rows { max-height: 40vh; }
    }
    """

    fields, value = getters.query_one(FieldBox), getters.query_one("#value", Input)

    def __init__(self, question: Question) -> None:
        """Store the first question."""
        super().__init__(question)
        self.rows: dict[str, BitRow | StaticPage] = {}  # the row of each format: bits, or the reason why there are none
        self.formats: tuple[Format, ...] = ()  # the formats of the rows
        self.data: dict[str, Datum] = {}
        self._active_row = ""
        self._typing = False

    def first_view(self, question: Question) -> str:
        """Return the view for the question's verb and options."""
        asked = (name for name in ("directions", "dialects") if question.option(name))
        return "path" if question.verb == "convert" else next(asked, "details")

    def compose_task(self) -> ComposeResult:
        """Compose the value box, the edits, the rows of bits, the fields and the details."""
        with Horizontal(classes="entry"):
            yield Label("value")
            yield Input(id="value", compact=True, placeholder=_EXAMPLES)
            yield ButtonBar(self.control, id="controls")
        yield ButtonBar(self.action_edit, tuple((edit.name, edit.sign) for edit in EDITS.values()), id="edits")
        with Vertical(id="body"):
            with pane(Vertical(id="left"), "Bits"):
                with VerticalScroll(id="rows", can_focus=False):
                    for datum in self.answers[0].results:
                        self.rows[datum.format.name] = BitRow(steady=True)
                    yield from self.rows.values()
                yield FieldBox(id="fields")
            with Horizontal(id="lower"):
                with Column(id="main"):
                    with pane(Vertical(id="side")):
                        yield ChoiceBar(self.choose_view, self.VIEWS, self.view, id="views")
                        yield PageView(id="details")
                    yield pane(TopicPane(id="beside"))
                with Column(id="second"):
                    yield from (pane(TopicPane(id=name)) for name in ("third", "fourth"))

    # The question.

    prepared: dict[str, str] | None  # the formats (by name) that cannot hold the value, each with the reason

    def ask(self, question: Question, started: Started) -> list[Answer]:
        """Answer the question in the formats that can hold the value; raises FloatlabError if none can."""
        try:
            return super().ask(question, started)
        except FloatlabError:
            holding = tuple(format for format in question.formats if not _why_not(question, format))
            if not holding:
                raise
            return super().ask(question.replace(formats=holding), started)

    def prepare(self, question: Question, answers: list[Answer]) -> dict[str, str]:
        """Return, for each format without a result, the reason why it cannot hold the value."""
        shown = {datum.format for datum in answers[0].results}
        return {format.name: _why_not(question, format) for format in question.formats if format not in shown}

    def normal(self, question: Question) -> Question:
        """Return a `show` question for one value, without options that select a view; raises FloatlabError."""
        if question.verb == "convert":
            question = question.replace(verb="show")
        if not question.values:
            raise FloatlabError("Inspect needs a value")
        question = question.spelled_out()
        if question.option("dialects") and not question.formats:
            dialects = answer_question(question)[0].results
            question = question.replace(formats=tuple(datum.format for datum in dialects))
        return question.having(**dict.fromkeys(_VIEW_OPTIONS)).replace(values=question.values[:1])

    def with_format(self, question: Question, format: Format) -> Question:
        """Return the question with this format added, and make the row of the format the active one."""
        self._active_row = format.name
        return question if format in self.formats else question.replace(formats=(*self.formats, format))

    def take_format(self, name: str) -> None:
        """Add a format. If the value is a code of another format, a hint says how to read the code in the added one."""
        super().take_format(name)
        datum = self.data[self._active_row]
        if hint := hint_on_code(self.question.values[0], datum.format):
            self.complain(hint, hint=True)

    def draw(self, before: Question) -> None:
        """Show the value in each format (or why a format cannot hold it), the fields, and the view."""
        question, answer = self.question, self.answers[0]
        parts = dict(zip((datum.format.name for datum in answer.results), answer.parts(), strict=True))
        data = {datum.format.name: datum for datum in answer.results}
        if "@" in question.values[0] and question.values != before.values:
            self._active_row = answer.results[0].format.name  # the format of VALUE@FORMAT
        # Keep the user's order of formats, even if the value has its own format.
        named = {datum.format.name: datum.format for datum in answer.results}
        named |= {format.name: format for format in question.formats}
        refused = self.prepared or {}
        order = [name for name in (format.name for format in question.formats) if name in data or name in refused]
        order = [*(name for name in data if name not in order), *order]
        self.formats = tuple(named[name] for name in order)
        self.data = {name: data[name] for name in order if name in data}
        if self._active_row not in self.data:
            self._active_row = next(iter(self.data))
        outdated = [name for name, row in self.rows.items() if isinstance(row, BitRow) != (name in self.data)]
        for name in [name for name in self.rows if name not in order or name in outdated]:
            if self.rows[name] is self.focused:
                self.set_focus(None)  # or Textual would focus the box, where Backspace deletes instead of going back
                self.call_after_refresh(self.action_leave)
            self.rows.pop(name).remove()
        box = self.query_one("#rows", VerticalScroll)
        for place, name in enumerate(order):
            if name not in self.rows:
                row = self.rows[name] = BitRow(steady=True) if name in self.data else StaticPage()
                after = next((self.rows[other] for other in order[place + 1 :] if other in self.rows), None)
                box.mount(row, before=after if after is not None and after.is_attached else None)
            shown = self.rows[name]
            if isinstance(shown, BitRow):
                shown.is_active = name == self._active_row
                shown.show(parts[name].blocks[0])
            else:
                shown.page = Page((Row(name, line(Span(refused[name], Role.BAD))),))
        if not self._typing:
            fill(self.value, question.values[0])
        self.controls.options = (self.rules_word,)
        self.fields.show(self.data[self._active_row])
        self.draw_view()

    # The views of the active row.

    def subject(self) -> Datum | None:
        """Return the number in the active row."""
        return self.data.get(self._active_row)

    def view_question(self, view: str = "") -> Question:
        """Return the question whose page the view `view` shows. The default is the current view."""
        question, datum = self.question, self.data[self._active_row]
        row_question = question.replace(formats=(datum.format,))
        view = view or self.view
        if view == "directions":
            return row_question.having(directions=True)
        if view == "dialects":
            return Question("show", (code_of(datum).partition("@")[0],)).having(dialects=True)
        if view == "path":
            value = question.values[0]
            value = literal_of(datum, question.context) if "@" in value else value
            formats = tuple(datum.format for datum in self.data.values())
            return Question("convert", (value,), formats, question.context)
        if view == "libraries":
            return row_question.having(like=_LIBRARIES)
        if view == "pins":
            return Question("cmp", tuple(self.app.pins[name] for name in ("A", "B") if name in self.app.pins))
        return row_question.having(interval=True)

    def topics(self) -> list[Topic]:
        """Return the other views as topics, the most important first. The view Path needs several formats."""
        order = ("directions", "details", *(("path",) if len(self.data) > 1 else ()), "dialects")
        views = [view for view in order if view != self.view]
        return [(dict(self.VIEWS)[view], self._page_of(self.view_question(view), view)) for view in views]

    def draw_view(self) -> None:
        """Show the page of the current view."""
        self.query_one("#side").border_title = self._active_row
        question = self.view_question()
        if self.view == "libraries":
            self._draw_libraries(question)
        else:
            self.details.page = self._page_of(question, self.view)

    def _page_of(self, question: Question, view: str) -> Page:
        if view == "pins" and len(question.values) < 2:
            return note_page(
                "Pin two numbers to compare them: a pins the number of the row with the cursor as A, b as B."
            )
        try:
            answer = answer_question(question)[0]
        except FloatlabError as error:
            return note_page(str(error))
        if view == "details" and (parts := answer.parts()):
            page = parts[-1]
            return page.replace(blocks=page.blocks[1:])  # omit the bits, which are in the row already
        return with_spare_classes(answer.page()) if view == "dialects" else answer.page()

    def _draw_libraries(self, question: Question) -> None:
        """Query the libraries on a background thread, since importing a library may take seconds."""
        self.details.page = note_page("asking the libraries …")

        def take(page: Page) -> None:
            if self.view == "libraries" and question == self.view_question():  # ignore a result that is out of date
                self.details.page = page

        run_once(self.app, partial(self._page_of, question, self.view), take)

    def pinned(self) -> None:
        """Show the comparison of A and B, once both are pinned."""
        if self.view == "pins":
            self.draw_view()
        elif len(self.app.pins) == 2:
            self.view = "pins"

    # Edits.

    def edited(self, change: Callable[[Datum], Datum]) -> Question:
        """Return the question after an edit of the active row; the other rows show the result, converted."""
        value = literal_of(change(self.data[self._active_row]), self.question.context)
        return self.question.replace(values=(value,), formats=self.formats)

    @on(Input.Changed, "#value")
    def _value_typed(self, event: Input.Changed) -> None:
        question, value = self.question, event.input.value
        typed = value.strip().lower()
        if typed.startswith("bits:") and "@" not in value:
            active = self.data[self._active_row].format
            value = f"{value.strip()}@{short_name(format_of_code(typed, active, self.formats))}"
        if not question.formats:
            question = question.replace(formats=self.formats)
        self._typing = True  # keep the typed text in the box
        valid = self.open(question.replace(values=(value,)), "value")
        mark_valid(event.input, valid)
        self._typing = False
        if not valid and (operation := operation_in(value)) is not None:
            self.complain(f"Enter shows this step by step: {command_of(operation)}", hint=True)
        elif valid and (hint := hint_on_hexadecimal(typed)):
            self.complain(hint, hint=True)

    @on(Input.Submitted, "#value")
    def _value_entered(self, event: Input.Submitted) -> None:
        """If the box contains an operation, open this operation in Arithmetic."""
        if is_wrong(event.input) and (operation := operation_in(event.input.value)) is not None:
            self.action_leave()  # so that Backspace works when the user has come back
            self.app.ask(operation)

    def say_wrong(self, box: Input) -> None:
        """Say why the text of a box is wrong. If the text is an operation, say instead that Enter opens it."""
        if box is self.value and operation_in(box.value) is not None:
            self.complain("/ and Enter show this operation in Arithmetic; u goes back to the last value", hint=True)
        else:
            super().say_wrong(box)

    @on(Input.Blurred, "#value")
    def _value_left(self, event: Input.Blurred) -> None:
        if not is_wrong(event.input):
            fill(event.input, self.question.values[0])

    @on(Input.Changed, "#field")
    def _field_typed(self, event: Input.Changed) -> None:
        if name := self.fields.names.current:
            edit = partial(self.edited, lambda datum: with_field(datum, name, event.input.value))
            mark_valid(event.input, self.attempt(edit, name))

    # The active row.

    def follow(self, focused: Widget | None) -> None:
        """Make the focused row the active row. If no row has the focus, the active row stays."""
        active = next((name for name, row in self.rows.items() if row is focused), self._active_row)
        if active != self._active_row:
            self._active_row = active
            for name, row in self.rows.items():
                if isinstance(row, BitRow):
                    row.is_active = name == active
            self.fields.show(self.data[active])
            self.draw_view()
            self.draw_beside()

    def position(self) -> dict[str, object]:
        """Return the active row, and the positions of the cursors."""
        return super().position() | {"row": self._active_row}

    def set_position(self, position: dict[str, object]) -> None:
        """Restore the active row and the cursors from `position`."""
        super().set_position(position)
        self.follow(self.rows.get(str(position.get("row"))))

    def home(self) -> Iterator[Widget]:
        """Yield the widget to focus when a box is left: the bits of the active row."""
        if self._active_row in self.rows:
            yield self.rows[self._active_row]

    def action_fields(self) -> None:
        """Open the first field or, if a field is open, the next one."""
        self.fields.open_next()

    def action_drop(self) -> None:
        """Remove the active row, if another row has a number."""
        kept = tuple(format for format in self.formats if format.name != self._active_row)
        if len(self.data) < 2:
            self.complain("the last row cannot be removed: f adds another format")
            return
        names, value = list(self.data), self.question.values[0]
        place = names.index(self._active_row)
        value = literal_of(self.data[self._active_row]) if "@" in value else value
        self._active_row = names[place + 1] if place + 1 < len(names) else names[place - 1]
        self.open(self.question.replace(values=(value,), formats=kept))
        self.rows[self._active_row].focus()

    def printed(self) -> Question:
        """Return the question whose command prints the current view. In Details, it is `self.question`."""
        return self.question if self.view == "details" else self.view_question()

    def copies(self) -> Copies:
        """Return the texts to copy: the value and the code of the active row, and others."""
        at = [datum.format.name for datum in self.answers[0].results].index(self._active_row)
        return super().copies() | {
            "value": ("the shortest decimal", lambda: self.answers[0].words()[at]),
            "code": ("the code", lambda: self.answers[0].codes()[at]),
        }

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for edits and views."""
        for edit in EDITS.values():
            yield f"Edit: {edit.summary}", "the row with the cursor", partial(self.action_edit, edit.name)
        yield from super().commands()


def _why_not(question: Question, format: Format) -> str:
    """Return why a format cannot hold the value; an empty text if it can."""
    try:
        answer_question(question.replace(formats=(format,)))
    except FloatlabError as error:
        return str(error)
    return ""
