"""Compare: two arrays, how far apart they are, whether that is near enough, where they differ, and why."""

from __future__ import annotations

from functools import partial

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, Label, Static

from floatlab.errors import FloatlabError
from floatlab.files.readers import kind_of
from floatlab.formats.names import short_name
from floatlab.page.model import Axis, Gap, Note, Page, line
from floatlab.tui.screens.task import Task
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.tui.widgets.bars import Bars
from floatlab.tui.widgets.boxes import fill, is_wrong, judge
from floatlab.tui.widgets.cells import Cells
from floatlab.tui.widgets.choices import Choices
from floatlab.tui.widgets.column_table import ColumnTable
from floatlab.tui.widgets.drawing import EMPTY, Drawing, Still
from floatlab.tui.widgets.pickers import Choice
from floatlab.verbs.compare.answer import element_codes
from floatlab.verbs.compare.difference_map import map_page
from floatlab.verbs.compare.elements import elements_table
from floatlab.verbs.compare.page import bin_page, histogram_blocks, summary_page, verdict_words
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question, command_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.widget import Widget

    from floatlab.arrays.compare.measure import Differences, Element

_AUTOMATIC = "automatic"
_LISTED = 100  # worst elements, where the question does not say how many
_DEFAULTS = {"rtol": "1e-5", "atol": "1e-8"}
_ARRAYS, _INPUTS = ("actual", "expected"), ("x", "y")


class Elements(ColumnTable):
    """The worst elements."""

    PLACE = "On the table of elements"  # what the list of keys calls it
    HELP = (
        "The elements that use the largest share of the tolerance. Enter, or a double click, opens the actual number "
        "in Inspect, e the expected one, and pins both as A and B; left and right turn to other columns."
    )


class Compare(Task, inherit_bindings=False):
    """Two arrays and their differences. The question is what `compare` asks; each part of its page is a view."""

    NAME = "compare"
    PLACE = "In Compare"
    VIEWS = (
        ("summary", "Summary"),
        ("histogram", "Ulps"),
        ("worst", "Worst"),
        ("where", "Where"),
        ("cause", "Cause"),
    )
    ROUNDS = False
    HELP = (
        "Each array is a file, a list (1.5,-2;3,4) or random:normal:64x64:seed=1, with @FORMAT where that is to be its "
        "own. f picks the format whose ulps are counted, and which text is read into. Within tolerance is "
        "|actual − expected| <= atol + rtol × |expected|."
    )
    BINDINGS = [
        Binding("o", "pick('actual')", "Open", id="compare.actual", tooltip="Pick a file: actual"),
        Binding("p", "pick('expected')", "Pick a file: expected", id="compare.expected", show=False),
        Binding("s", "swap", "Swap the arrays", id="compare.swap", show=False),
        Binding("n", "nan", "Two NaNs are equal, or not", id="compare.nan", show=False),
        Binding("e", "inspect('expected')", "Inspect expected", id="compare.inspect"),
        *Task.SHARED,
    ]
    DEFAULT_CSS = """
    Compare {
        #arrays, #inputs, #near { height: auto; }
        &.-wide #arrays, &.-wide #inputs { layout: horizontal; }
        &.-wide ArrayBox { width: 1fr; }
        #near { layout: horizontal; }
        &.-narrow #near { layout: vertical; }
        #tolerances { width: 42; }
        &.-narrow #tolerances { width: 1fr; }
        #controls { width: 1fr; }
        #body { height: 1fr; layout: vertical; }
        &.-wide #body { layout: horizontal; }
        #bar { max-height: 5; }
        #bars, #details, #elements, #element { height: 1fr; }
        #element { border-top: hkey $panel; }
        &.-wide #elements { width: 1fr; }
        &.-wide #element { width: 1fr; border-top: none; border-left: vkey $panel; }
    }
    """

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        if question.option("inputs"):
            self.set_reactive(Task.view, "cause")

    def compose_task(self) -> ComposeResult:
        """Compose the boxes, and a place for each view."""
        with Vertical(id="arrays"):
            for name in _ARRAYS:
                yield ArrayBox(name, name, len(_ARRAYS[1]))
        with Horizontal(id="near"):
            with Horizontal(id="tolerances", classes="entry"):
                for name, default in _DEFAULTS.items():
                    yield Label(name)
                    yield Input(id=name, compact=True, placeholder=default)
            yield Choices(id="controls")
        yield Static(id="complaint", markup=False)
        yield Choices(self.VIEWS, self.view, id="views")
        with Vertical(id="inputs"):
            for name in _INPUTS:
                yield ArrayBox(name.upper(), name)
        yield Still(id="bar")
        with Vertical(id="body"):
            yield Drawing(id="details")
            yield Bars(id="bars")
            yield Elements(id="elements")
            yield Drawing(id="element")

    @property
    def found(self) -> Differences | None:
        """What was found, once there is an answer."""
        return self.answers[0].found if self.answers else None

    @property
    def bars(self) -> Bars:
        """The histogram."""
        return self.query_one(Bars)

    @property
    def elements(self) -> Elements:
        """The worst elements."""
        return self.query_one(Elements)

    @property
    def element(self) -> Element | None:
        """The element under the cursor, where elements are in sight."""
        if self.found is None or self.view != "worst" or not self.found.worst:
            return None
        return self.found.worst[self.elements.cursor]

    # The question.

    def normal(self, question: Question) -> Question:
        """Ask for more elements than are printed; a dtype goes with the files that it was for."""
        dtype = question.option("dtype")
        if dtype is not None and all(kind_of(word, dtype) != "raw" for word in question.values):
            question = question.having(dtype=None, shape=None)
        return question if question.option("worst") else question.having(worst=_LISTED)

    def draw(self, before: Question) -> None:
        """Show the question in the boxes, and the view of the answer."""
        question, found = self.question, self.found
        for name, word in zip(_ARRAYS, question.values, strict=True):
            fill(self.query_one(f"#{name}", ArrayBox).input, word)
        for name in _DEFAULTS:
            self._fill_tolerance(name)
        inputs = question.option("inputs")
        for place, name in enumerate(_INPUTS):
            box = self.query_one(f"#{name}", ArrayBox).input
            if inputs or before.option("inputs") or is_wrong(box):
                fill(box, inputs[place] if inputs else "")
        steps = found.ulps.format if found is not None and found.ulps is not None else None
        steps = next(iter(question.formats), steps)
        self.query_one("#controls", Choices).options = (
            ("nan", "NaNs equal" if question.option("equal_nan") else "NaNs differ"),
            ("format", f"ulps of {short_name(steps)}" if steps is not None else "ulps"),
            ("swap", "swap"),
        )
        blocks = histogram_blocks(found) if found is not None else []
        self.bars.show(next((block for block in blocks if isinstance(block, Axis)), None))
        if found is not None:
            self.elements.show(elements_table(found))
        self.draw_view()

    def _fill_tolerance(self, name: str) -> None:
        """Let a box hold a tolerance; the same number stays as it was typed."""
        box, value = self.query_one(f"#{name}", Input), self.question.option(name)
        try:
            same = self._tolerance(name, box.value) == value
        except FloatlabError:
            same = False
        if not same:
            fill(box, "" if value is None else str(value))

    def _tolerance(self, name: str, text: str) -> float | None:
        """Read a tolerance as the command line does; nothing is the default."""
        if not text.strip():
            return None
        words = ["compare", "0", "0", f"--{name}={text.strip()}"]
        value: float = self.app.read_question(words).option(name)
        return value

    @on(ArrayBox.Given)
    def _given(self, event: ArrayBox.Given) -> None:
        box = event.box
        if box.id in _INPUTS:
            right = self._ask_inputs()
        else:
            actual, expected = (self.query_one(f"#{name}", ArrayBox).word for name in _ARRAYS)
            right = self.open(self.question.replace(values=(actual, expected)), "" if event.picked else f"{box.id}")
        judge(box.input, right)
        if event.picked and not right:
            box.input.focus()  # to be mended

    def _ask_inputs(self) -> bool:
        """Ask for the cause, once both inputs are there."""
        words = tuple(self.query_one(f"#{name}", ArrayBox).word for name in _INPUTS)
        if all(words):
            return self.open(self.question.having(inputs=words), "inputs")
        if any(words):
            self.complain("the arrays are a product of two: X and Y", hint=True)
            return True
        return self.open(self.question.having(inputs=None, op=None), "inputs")

    @on(Input.Changed, "#rtol, #atol")
    def _tolerance_typed(self, event: Input.Changed) -> None:
        name = event.input.id or ""
        try:
            value = self._tolerance(name, event.value)
        except FloatlabError as error:
            self.complain(str(error))
            judge(event.input, False)
        else:
            judge(event.input, self.open(self.question.having(**{name: value}), name))

    @on(Choices.Chosen, "#controls")
    async def _control_chosen(self, event: Choices.Chosen) -> None:
        await self.run_action(event.name)

    def action_nan(self) -> None:
        """Let two NaNs be equal, or not."""
        self.open(self.question.having(equal_nan=None if self.question.option("equal_nan") else True))

    def action_swap(self) -> None:
        """Take the expected array for the actual one, and the other way round."""
        self.open(self.question.replace(values=self.question.values[::-1]))

    def action_pick(self, name: str) -> None:
        """Pick a file for an array."""
        if name in _INPUTS:
            self.view = "cause"
        self.query_one(f"#{name}", ArrayBox).pick()

    def action_format(self) -> None:
        """Pick the format whose ulps are counted."""
        self.pick_format((Choice(_AUTOMATIC, f"{_AUTOMATIC:<12} that of the narrower array"),))

    def picked_format(self, name: str | None) -> None:
        """Take a format by name, or none."""
        if name == _AUTOMATIC:
            self.open(self.question.replace(formats=()))
        else:
            super().picked_format(name)

    # The views.

    def draw_view(self) -> None:
        """Show one view, and hide the others."""
        found, view = self.found, self.view
        has_bars, has_rows = bool(self.bars.count), bool(self.elements.count)
        shown = {
            "bars": view == "histogram" and has_bars,
            "bar": view == "histogram" and has_bars,
            "elements": view == "worst" and has_rows,
            "element": view == "worst" and has_rows,
            "inputs": view == "cause",
        }
        for name, there in shown.items():
            self.query_one(f"#{name}").display = there
        details = self.query_one("#details", Drawing)
        details.display = not shown["bars"] and not shown["elements"]
        details.page = self._page_of(found) if found is not None and details.display else EMPTY
        self._draw_bar()
        self._draw_element()
        if self.focused is not None and not (self.focused.display and all(w.display for w in self.focused.ancestors)):
            self.action_leave()

    def _page_of(self, found: Differences) -> Page:
        if self.view == "cause":
            parts = self.answers[0].parts
            asked = [block for part in (parts()[1:] if parts is not None else ()) for block in part.blocks]
            words = (
                "Are the arrays two products of the same inputs, X and Y? Type or pick both: q says how far apart the "
                "products are in units of rounding, and which causes make as much of a difference on these inputs."
            )
            return Page(tuple(asked[isinstance(asked[0], Gap) :]) if asked else (Note(line(words)),))
        if self.view == "histogram":
            ulps = found.ulps
            none = "No element has a distance in ulps."
            words = none if ulps is None or not ulps.count else f"All elements are 0 ulps of {ulps.format.name} apart."
            return Page((Note(line(words)),))
        # Without elements that differ there are no worst ones: the map's words for that serve both.
        return summary_page(found) if self.view == "summary" else map_page(found)

    @on(Cells.Moved, "#bars")
    def _draw_bar(self) -> None:
        ulps = self.found.ulps if self.found is not None else None
        if ulps is not None and self.bars.count:
            heading = histogram_blocks(self.found)[:1] if self.found is not None else []
            self.query_one("#bar", Drawing).page = Page((*heading, *bin_page(ulps, self.bars.cursor).blocks))

    @on(Cells.Moved, "#elements")
    def _draw_element(self) -> None:
        element, found = self.element, self.found
        if element is not None and found is not None:
            answer = answer_question(Question("cmp", element_codes(found, element)))[0]
            self.query_one("#element", Drawing).page = answer.page()
        self.refresh_bindings()

    def watch_view(self) -> None:
        """Draw another view, from its top; who asks for bars or elements wants to walk over them."""
        super().watch_view()
        if self.answers:
            self.query_one("#details", Drawing).scroll_home(animate=False)
            if not isinstance(self.focused, Input):
                self.action_leave()
            self.refresh_bindings()

    @on(Cells.Chosen, "#elements")
    def _element_chosen(self) -> None:
        self.action_inspect("actual")

    def action_inspect(self, which: str) -> None:
        """Open a number of the element under the cursor in Inspect, and pin both."""
        element, found = self.element, self.found
        if element is None or found is None:
            return
        codes = dict(zip(_ARRAYS, element_codes(found, element), strict=True))
        self.app.pins |= {"A": codes["actual"], "B": codes["expected"]}
        self.notify("A is the actual number, B the expected one: v leads to both", timeout=4)
        formats = [found.actual.format, found.expected.format]
        order = formats if which == "actual" else formats[::-1]
        self.app.go("inspect", Question("show", (codes[which],), tuple(dict.fromkeys(order))))

    def action_pin(self, name: str) -> None:
        """Keep the actual number as A, or the expected one as B."""
        if self.element is not None and self.found is not None:
            code = element_codes(self.found, self.element)[name == "B"]
            self.app.pins[name] = code
            self.notify(f"{name} is {code}" + self._both(), timeout=3)

    # What the frame asks.

    def copies(self) -> dict[str, tuple[str, Callable[[], str]]]:
        """Copy what is in sight; the command lists as many elements as it does by itself, unless they are in sight."""
        rows, found, element = super().copies(), self.found, self.element
        question = self.question
        if self.view != "worst" and question.option("worst") == _LISTED:
            question = question.having(worst=None)
        rows["command"] = (rows["command"][0], lambda: command_of(question))
        if found is None or element is None:
            rows["value"] = ("the verdict", lambda: "" if found is None else verdict_words(found))
            del rows["code"]
        else:
            codes = element_codes(found, element)
            rows["value"] = ("both numbers", lambda: f"{element.actual!r} {element.expected!r}")
            rows["code"] = ("both codes", lambda: " ".join(codes))
        return rows

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what cannot be done now."""
        if action in ("pin", "inspect"):
            return self.is_mounted and self.element is not None
        return super().check_action(action, parameters)

    def home(self) -> Iterator[Widget]:
        """Go to what the view is made of."""
        yield from (self.bars, self.elements, self.query_one("#details"))

    def commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Offer the views, files, and what else there is."""
        for name, words in self.VIEWS:
            yield f"View: {words}", "of the differences", partial(setattr, self, "view", name)
        for name in (*_ARRAYS, *_INPUTS):
            called = self.query_one(f"#{name}", ArrayBox).called
            yield f"Open: {called}", "pick a file for this array", partial(self.action_pick, name)
        yield "Swap the arrays", "actual for expected", self.action_swap
        yield "NaNs are equal, or differ", "in both definitions of near enough", self.action_nan
        yield "Ulps: automatic", "of the narrower array", partial(self.picked_format, _AUTOMATIC)
