"""Inspect: a value in several formats at once; every bit, field and neighbour can be touched."""

from __future__ import annotations

from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import Input, Label, Static

from floatlab.errors import FloatlabError
from floatlab.formats.names import short_name
from floatlab.page.model import Note, Page, line
from floatlab.tui.app.background import beside
from floatlab.tui.screens.task import Task
from floatlab.tui.widgets.bit_row import BitRow
from floatlab.tui.widgets.boxes import fill, is_wrong, judge
from floatlab.tui.widgets.choices import Choices
from floatlab.tui.widgets.drawing import Drawing
from floatlab.tui.widgets.field_box import FieldBox
from floatlab.verbs.edits import EDITS, code_of, edited, literal_of, with_bit, with_field
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question, command_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from textual.widget import Widget

    from floatlab.formats import Format

_LIBRARIES = ("numpy", "ml_dtypes", "torch")
# Options of `show` that are views here.
_VIEWED = ("interval", "directions", "dialects", "like")
KEYS = {
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


class Inspect(Task, inherit_bindings=False):
    """One value in several formats; the row with the focus leads, and edits change its datum."""

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
            for name, key in KEYS.items()
        ),
        Binding("x,delete", "drop", "Drop row", id="drop", show=False),
        Binding("e,ctrl+n", "fields", "Field", id="fields", show=False),
        *Task.SHARED,
    ]
    DEFAULT_CSS = """
    Inspect {
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
        self.data: dict[str, Any] = {}
        self._lead = ""
        self._typing = False
        if question.verb == "convert":
            self.set_reactive(Task.view, "path")
        elif shown := [name for name in ("directions", "dialects") if question.option(name)]:
            self.set_reactive(Task.view, shown[0])

    def compose_task(self) -> ComposeResult:
        """Compose the value box, the edits, the rows of bits, the fields and the details."""
        with Horizontal(classes="entry"):
            yield Label("value")
            yield Input(
                id="value", compact=True, placeholder="1.5  -3e-5  1/3  0x1.8p3  nan  bits:0x3c7c  0.1@fp8_e5m2"
            )
        yield Static(id="complaint", markup=False)
        yield Choices(tuple((edit.name, edit.sign) for edit in EDITS.values()), id="edits")
        with Vertical(id="body"):
            with Vertical(id="left"):
                with VerticalScroll(id="rows", can_focus=False):
                    for datum in self.answers[0].results:
                        self.rows[datum.format.name] = BitRow()
                    yield from self.rows.values()
                yield FieldBox(id="fields")
            with Vertical(id="side"):
                yield Choices(self.VIEWS, self.view, id="views")
                yield Drawing(id="details")

    # The question.

    def normal(self, question: Question) -> Question:
        """Show one value; how it would be printed is a matter of the view."""
        if question.verb == "convert":
            question = Question("show", question.values, question.formats, question.context, question.options)
        if not question.values:
            raise FloatlabError("Inspect needs a value")
        question = question.spelled_out()
        if question.option("dialects") and not question.formats:
            dialects = answer_question(question)[0].results
            question = question.replace(formats=tuple(datum.format for datum in dialects))
        question = question.having(**dict.fromkeys(_VIEWED))
        return question.replace(values=question.values[:1])

    def with_format(self, question: Question, format: Format) -> Question:
        """Add a format."""
        formats = tuple(datum.format for datum in self.data.values())
        self._lead = format.name
        return question if format in formats else question.replace(formats=(*formats, format))

    def draw(self, before: Question) -> None:
        """Show the value in each format."""
        question, answer = self.question, self.answers[0]
        assert answer.parts is not None
        parts = dict(zip((datum.format.name for datum in answer.results), answer.parts(), strict=True))
        data = {datum.format.name: datum for datum in answer.results}
        if "@" in question.values[0] and question.values != before.values:
            self._lead = answer.results[0].format.name  # the value has come with a format of its own
        # The order that the person gave stays, also where a value has brought a format of its own.
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

    def subject(self) -> Any:
        """Return the lead's datum."""
        return self.data.get(self._lead)

    def viewed(self) -> Question:
        """Return the question whose page is the view."""
        question, datum = self.question, self.data[self._lead]
        lead = question.replace(formats=(datum.format,))
        if self.view == "directions":
            return lead.having(directions=True)
        if self.view == "dialects":
            return Question("show", (code_of(datum).partition("@")[0],)).having(dialects=True)
        if self.view == "path":
            formats = tuple(each.format for each in self.data.values())
            value = question.values[0]
            if "@" in value:
                value = literal_of(datum, question.context)
            return Question("convert", (value,), formats, question.context)
        if self.view == "libraries":
            return lead.having(like=_LIBRARIES)
        if self.view == "pins":
            return Question("cmp", tuple(self.app.pins[name] for name in ("A", "B") if name in self.app.pins))
        return lead.having(interval=True)

    def draw_view(self) -> None:
        """Show the page of the view."""
        asked = self.viewed()
        if self.view == "libraries":
            self._draw_libraries(asked)
        else:
            self.query_one("#details", Drawing).page = self._page_of(asked)

    def _page_of(self, asked: Question) -> Page:
        if self.view == "pins" and len(asked.values) < 2:
            words = "Pin two numbers to compare them: a keeps the lead's number as A, b as B."
            return Page((Note(line(words)),))
        try:
            answer = answer_question(asked)[0]
        except FloatlabError as error:
            return Page((Note(line(str(error))),))
        if self.view == "details" and answer.parts is not None:
            page = answer.parts()[-1]
            return page.replace(blocks=page.blocks[1:])  # the bits stand in the row
        return answer.page()

    def _draw_libraries(self, asked: Question) -> None:
        """Ask the libraries beside the screen: importing one may take seconds."""
        details = self.query_one("#details", Drawing)
        details.page = Page((Note(line("asking the libraries …")),))

        def take(page: Page) -> None:
            if self.view == "libraries" and asked == self.viewed():  # else it comes too late
                details.page = page

        beside(self.app, lambda: self._page_of(asked), take)

    def pinned(self) -> None:
        """Compare A and B."""
        if self.view == "pins":
            self.draw_view()
        elif len(self.app.pins) == 2:
            self.view = "pins"

    # Edits.

    def change(self, change: Callable[[Any], Any], kind: str = "") -> bool:
        """Change the lead's datum; the other formats then show what it becomes there."""
        try:
            datum = change(self.data[self._lead])
        except FloatlabError as error:
            self.complain(str(error))
            return False
        question = self.question
        formats = tuple(each.format for each in self.data.values())
        return self.open(question.replace(values=(literal_of(datum, question.context),), formats=formats), kind)

    def action_edit(self, name: str) -> None:
        """Do an edit of EDITS."""
        self.change(lambda datum: edited(datum, name))

    @on(Choices.Chosen, "#edits")
    def _edit_chosen(self, event: Choices.Chosen) -> None:
        self.action_edit(event.name)

    @on(BitRow.Flipped)
    def _flipped(self, event: BitRow.Flipped) -> None:
        self._follow(event.row)
        self.change(lambda datum: with_bit(datum, event.bit, event.value))

    @on(Input.Changed, "#value")
    def _value_typed(self, event: Input.Changed) -> None:
        question, value = self.question, event.value
        if value.strip().lower().startswith("bits:") and "@" not in value:
            value = f"{value.strip()}@{short_name(self.data[self._lead].format)}"  # a code is the lead's
        if not question.formats:
            question = question.replace(formats=tuple(datum.format for datum in self.data.values()))
        self._typing = True  # the box being edited is not rewritten under the cursor
        judge(event.input, self.open(question.replace(values=(value,)), "value"))
        self._typing = False

    @on(Input.Blurred, "#value")
    def _value_left(self, event: Input.Blurred) -> None:
        if not is_wrong(event.input):
            fill(event.input, self.question.values[0])

    @on(FieldBox.Typed)
    def _field_typed(self, event: FieldBox.Typed) -> None:
        judge(event.box, self.change(lambda datum: with_field(datum, event.name, event.box.value), event.name))

    # The lead.

    def on_descendant_focus(self) -> None:
        """Follow the focus."""
        if isinstance(self.focused, BitRow):
            self._follow(self.focused)

    def _follow(self, row: BitRow) -> None:
        name = next((name for name, each in self.rows.items() if each is row), self._lead)
        if name != self._lead:
            self._lead = name
            for each in self.rows:
                self.rows[each].leads = each == name
            self.query_one(FieldBox).show(self.data[name])
            self.draw_view()

    def home(self) -> Iterator[Widget]:
        """Go back to the lead's bits."""
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
        gone = names.index(self._lead)
        own = self.question.values[0].partition("@")[2]
        value = literal_of(self.data[self._lead]) if own else self.question.values[0]
        self._lead = names[gone + 1] if gone + 1 < len(names) else names[gone - 1]
        self.open(self.question.replace(values=(value,), formats=kept))
        self.rows[self._lead].focus()

    def copies(self) -> dict[str, tuple[str, Callable[[], str]]]:
        """Copy the value and the code of the row that leads."""
        at = [datum.format.name for datum in self.answers[0].results].index(self._lead)
        rows = super().copies()
        command = self.question if self.view == "details" else self.viewed()
        return rows | {
            "command": (rows["command"][0], lambda: command_of(command)),
            "value": ("the value", lambda: self.answers[0].words()[at]),
            "code": ("the code", lambda: self.answers[0].codes()[at]),
        }

    def commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Offer the edits and the views."""
        for edit in EDITS.values():
            yield f"Edit: {edit.summary}", "the row that leads", partial(self.action_edit, edit.name)
        for name, words in self.VIEWS:
            yield f"View: {words}", "a page of the row that leads", partial(setattr, self, "view", name)
