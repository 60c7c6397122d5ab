"""Inspect: a value in several formats at once, with every bit, field and neighbour to edit."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from floatlab.errors import FloatlabError
from floatlab.formats import Format
from floatlab.formats.names import short_name
from floatlab.numbers.datum import Datum
from floatlab.page.model import Page
from floatlab.tui.background import run_once
from floatlab.tui.screens.inspect.field_box import FieldBox
from floatlab.tui.screens.task import SHARED_KEYS, Command, Copies, TaskScreen
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.boxes import fill, is_wrong, mark_valid
from floatlab.tui.widgets.choice_bar import ChoiceBar
from floatlab.tui.widgets.page_view import PageView, note_page
from floatlab.verbs.edits import EDITS, edited, literal_of, with_bit, with_field
from floatlab.verbs.question import Question, code_of
from floatlab.verbs.registry import answer_question, command_of

_LIBRARIES = ("numpy", "ml_dtypes", "torch")
_VIEW_OPTIONS = ("interval", "directions", "dialects", "like")  # options of `show` that are views here
EDIT_KEYS = {
    "down": "minus",
    "up": "plus",
    "negate": "s",
    "halve": "less_than_sign",
    "double": "greater_than_sign",
    "zero": "z",
    "one": "o",
    "infinity": "i",
    "nan": "n",
    "largest": "m",
    "normal": "w",
    "subnormal": "g",
}


class InspectScreen(TaskScreen, inherit_bindings=False):
    """One value in several formats. The row with the focus leads: edits change its datum."""

    NAME = "inspect"
    PLACE = "In Inspect"
    VIEWS = (
        ("details", "Details"),
        ("directions", "Directions"),
        ("dialects", "Dialects"),
        ("path", "Path"),
        ("libraries", "Libraries"),
        ("pins", "A and B"),
    )
    HELP = (
        "Type a number, a code (bits:0x3c7c) or VALUE@FORMAT. The row with the cursor leads: its bits, its fields and "
        "the edits above change it, and the other rows show what that number becomes in their formats."
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
    DEFAULT_CSS = """
    InspectScreen {
        #body { height: 1fr; layout: vertical; }
        #left { height: auto; }
        #rows { height: auto; max-height: 10; scrollbar-size-vertical: 1; }
        #side, #details { height: 1fr; }
        &.-narrow #body, &.-short #body { overflow-y: auto; scrollbar-size-vertical: 1; }
        &.-narrow #rows, &.-short #rows { max-height: 999; }
        &.-narrow #side, &.-short #side, &.-narrow #details, &.-short #details { height: auto; }
        &.-wide #body { layout: horizontal; }
        &.-wide #left { width: 1fr; height: 1fr; }
        &.-wide #rows { max-height: 80vh; }
        &.-wide #side { width: 1fr; border-left: vkey $panel; }
    }
    """

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        self.rows: dict[str, BitRow] = {}
        self.data: dict[str, Datum] = {}
        self._lead = ""
        self._typing = False
        if question.verb == "convert":
            self.set_reactive(TaskScreen.view, "path")
        elif asked := [name for name in ("directions", "dialects") if question.option(name)]:
            self.set_reactive(TaskScreen.view, asked[0])

    def compose_task(self) -> ComposeResult:
        """Compose the value box, the edits, the rows of bits, the fields and the details."""
        with Horizontal(classes="entry"):
            yield Label("value")
            yield Input(
                id="value", compact=True, placeholder="1.5  -3e-5  1/3  0x1.8p3  nan  bits:0x3c7c  0.1@fp8_e5m2"
            )
        yield Static(id="complaint", markup=False)
        yield ChoiceBar(tuple((edit.name, edit.sign) for edit in EDITS.values()), id="edits")
        with Vertical(id="body"):
            with Vertical(id="left"):
                with VerticalScroll(id="rows", can_focus=False):
                    for datum in self.answers[0].results:
                        self.rows[datum.format.name] = BitRow()
                    yield from self.rows.values()
                yield FieldBox(id="fields")
            with Vertical(id="side"):
                yield ChoiceBar(self.VIEWS, self.view, id="views")
                yield PageView(id="details")

    # The question.

    @property
    def formats(self) -> tuple[Format, ...]:
        """The formats of the rows."""
        return tuple(datum.format for datum in self.data.values())

    def normal(self, question: Question) -> Question:
        """Show one value, without the options that are views here."""
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
        """Add a format."""
        self._lead = format.name
        return question if format in self.formats else question.replace(formats=(*self.formats, format))

    def draw(self, before: Question) -> None:
        """Show the value in each format."""
        question, answer = self.question, self.answers[0]
        assert answer.parts is not None
        parts = dict(zip((datum.format.name for datum in answer.results), answer.parts(), strict=True))
        data = {datum.format.name: datum for datum in answer.results}
        if "@" in question.values[0] and question.values != before.values:
            self._lead = answer.results[0].format.name  # the format that came with the value
        # The user's order of formats stays, also where a value came with another one.
        order = [name for name in (format.name for format in question.formats) if name in data]
        order = [*(name for name in data if name not in order), *order]
        self.data = {name: data[name] for name in order}
        if self._lead not in self.data:
            self._lead = order[0]
        for name in [name for name in self.rows if name not in self.data]:
            self.rows.pop(name).remove()
        box = self.query_one("#rows", VerticalScroll)
        for place, name in enumerate(order):
            if name not in self.rows:
                row = self.rows[name] = BitRow()
                after = next((self.rows[other] for other in order[place + 1 :] if other in self.rows), None)
                box.mount(row, before=after if after is not None and after.is_attached else None)
            self.rows[name].leads = name == self._lead
            self.rows[name].show(parts[name].blocks[0])
        if not self._typing:
            fill(self.query_one("#value", Input), question.values[0])
        self.query_one(FieldBox).show(self.data[self._lead])
        self.draw_view()

    # The views of the lead.

    def subject(self) -> Datum | None:
        """Return the lead's datum."""
        return self.data.get(self._lead)

    def view_question(self) -> Question:
        """Return the question whose page is the view."""
        question, datum = self.question, self.data[self._lead]
        lead = question.replace(formats=(datum.format,))
        if self.view == "directions":
            return lead.having(directions=True)
        if self.view == "dialects":
            return Question("show", (code_of(datum).partition("@")[0],)).having(dialects=True)
        if self.view == "path":
            value = question.values[0]
            value = literal_of(datum, question.context) if "@" in value else value
            return Question("convert", (value,), self.formats, question.context)
        if self.view == "libraries":
            return lead.having(like=_LIBRARIES)
        if self.view == "pins":
            return Question("cmp", tuple(self.app.pins[name] for name in ("A", "B") if name in self.app.pins))
        return lead.having(interval=True)

    def draw_view(self) -> None:
        """Show the page of the view."""
        question = self.view_question()
        if self.view == "libraries":
            self._draw_libraries(question)
        else:
            self.show_page("details", self._page_of(question))

    def _page_of(self, question: Question) -> Page:
        if self.view == "pins" and len(question.values) < 2:
            return note_page("Pin two numbers to compare them: a keeps the lead's number as A, b as B.")
        try:
            answer = answer_question(question)[0]
        except FloatlabError as error:
            return note_page(str(error))
        if self.view == "details" and answer.parts is not None:
            page = answer.parts()[-1]
            return page.replace(blocks=page.blocks[1:])  # the bits stand in the row
        return answer.page()

    def _draw_libraries(self, question: Question) -> None:
        """Ask the libraries on a background thread: importing one may take seconds."""
        self.show_page("details", note_page("asking the libraries …"))

        def take(page: Page) -> None:
            if self.view == "libraries" and question == self.view_question():  # else it comes too late
                self.show_page("details", page)

        run_once(self.app, partial(self._page_of, question), take)

    def pinned(self) -> None:
        """Compare A and B."""
        if self.view == "pins":
            self.draw_view()
        elif len(self.app.pins) == 2:
            self.view = "pins"

    # Edits.

    def edit(self, change: Callable[[Datum], Datum], kind: str = "") -> bool:
        """Change the lead's datum; the other formats show what it becomes there."""
        try:
            datum = change(self.data[self._lead])
        except FloatlabError as error:
            self.complain(str(error))
            return False
        value = literal_of(datum, self.question.context)
        return self.open(self.question.replace(values=(value,), formats=self.formats), kind)

    def action_edit(self, name: str) -> None:
        """Do an edit of EDITS."""
        self.edit(lambda datum: edited(datum, name))

    @on(ChoiceBar.Chosen, "#edits")
    def _edit_chosen(self, event: ChoiceBar.Chosen) -> None:
        self.action_edit(event.name)

    @on(BitRow.Flipped)
    def _flipped(self, event: BitRow.Flipped) -> None:
        self._follow(event.widget)
        self.edit(lambda datum: with_bit(datum, event.bit, event.value))

    @on(Input.Changed, "#value")
    def _value_typed(self, event: Input.Changed) -> None:
        question, value = self.question, event.value
        if value.strip().lower().startswith("bits:") and "@" not in value:
            value = f"{value.strip()}@{short_name(self.data[self._lead].format)}"  # a code is the lead's
        if not question.formats:
            question = question.replace(formats=self.formats)
        self._typing = True  # the box keeps what is being typed
        mark_valid(event.input, self.open(question.replace(values=(value,)), "value"))
        self._typing = False

    @on(Input.Blurred, "#value")
    def _value_left(self, event: Input.Blurred) -> None:
        if not is_wrong(event.input):
            fill(event.input, self.question.values[0])

    @on(FieldBox.Typed)
    def _field_typed(self, event: FieldBox.Typed) -> None:
        valid = self.edit(lambda datum: with_field(datum, event.name, event.box.value), event.name)
        mark_valid(event.box, valid)

    # The lead.

    def on_descendant_focus(self) -> None:
        """Let the row with the focus lead."""
        if isinstance(self.focused, BitRow):
            self._follow(self.focused)

    def _follow(self, focused: Widget) -> None:
        lead = next((name for name, row in self.rows.items() if row is focused), self._lead)
        if lead != self._lead:
            self._lead = lead
            for name, row in self.rows.items():
                row.leads = name == lead
            self.query_one(FieldBox).show(self.data[lead])
            self.draw_view()

    def home(self) -> Iterator[Widget]:
        """Return the lead's bits."""
        if self._lead in self.rows:
            yield self.rows[self._lead]

    def action_fields(self) -> None:
        """Open the first field, then the next one."""
        self.query_one(FieldBox).open_next()

    def action_drop(self) -> None:
        """Drop the lead's row."""
        kept = tuple(datum.format for name, datum in self.data.items() if name != self._lead)
        if not kept:
            self.complain("the last row stays: f adds another format")
            return
        names = list(self.data)
        place = names.index(self._lead)
        value = self.question.values[0]
        value = literal_of(self.data[self._lead]) if "@" in value else value
        self._lead = names[place + 1] if place + 1 < len(names) else names[place - 1]
        self.open(self.question.replace(values=(value,), formats=kept))
        self.rows[self._lead].focus()

    def copies(self) -> Copies:
        """Copy the value and the code of the row that leads."""
        at = [datum.format.name for datum in self.answers[0].results].index(self._lead)
        copies = super().copies()
        question = self.question if self.view == "details" else self.view_question()
        return copies | {
            "command": (copies["command"][0], lambda: command_of(question)),
            "value": ("the value", lambda: self.answers[0].words()[at]),
            "code": ("the code", lambda: self.answers[0].codes()[at]),
        }

    def commands(self) -> Iterator[Command]:
        """Return the edits and the views."""
        for edit in EDITS.values():
            yield f"Edit: {edit.summary}", "the row that leads", partial(self.action_edit, edit.name)
        yield from super().commands()
