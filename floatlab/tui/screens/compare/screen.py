"""The screen Compare: how much, where and why two arrays differ, and tolerances."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, HorizontalGroup, Vertical, VerticalGroup
from textual.widgets import Input, Label

from floatlab.arrays.compare.differences import ComparedElement, Differences
from floatlab.errors import FloatlabError
from floatlab.files.readers import kind_of
from floatlab.formats.catalog import short_name
from floatlab.page.model import Axis, Gap, Note, Page, Table
from floatlab.reduce.results.diagnosis_record import Diagnosis
from floatlab.tui.screens.compare.tables import ElementTable, HistogramBars
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.panes import Column, Topic, TopicPane, pane
from floatlab.tui.screens.pick_lists import AUTOMATIC
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.widgets import ButtonBar, Cells, ChoiceBar, PageView, StaticPage, note_page
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.tui.widgets.boxes import fill, mark_valid
from floatlab.tui.widgets.saving import Copies
from floatlab.verbs.compare.answer import element_codes
from floatlab.verbs.compare.difference_map import map_page
from floatlab.verbs.compare.histogram_text import bin_page, histogram_blocks
from floatlab.verbs.compare.page import diagnosis_note, elements_table, summary_page, verdict_words
from floatlab.verbs.question import Question
from floatlab.verbs.registry import answer_question

_LISTED = 100  # the default number of worst elements
_FEW = (0, 1, 2, 3, 5)  # the columns that are shown beside the summary: index, values, ulps, share of tolerance
_TOLERANCES = {"rtol": "1e-5", "atol": "1e-8"}  # the tolerances and their defaults
_ARRAYS, _INPUTS = ("actual", "expected"), ("x", "y")
_MADE_OF = (*_INPUTS, "bias")  # the inputs of the computation whose results are compared


def _first_line(found: Differences) -> str:
    return found.diagnosis.first if isinstance(found.diagnosis, Diagnosis) else ""


class CompareScreen(TaskScreen, inherit_bindings=False):
    """The screen for two arrays and their differences. Its views are the parts of the page of `compare`."""

    VIEWS = (
        ("summary", "Summary"),
        ("histogram", "Ulps"),
        ("worst", "Top errors"),
        ("where", "Where"),
        ("cause", "Cause"),
    )
    PARTS = "#body > *, #right > *, #bar, #inputs"
    WALKS = True
    ROUNDS = False
    AUTOMATIC_FORMAT = "the format of the narrower array"
    HELP = (
        "An array is a file, a list (1.5,-2;3,4) or random:normal:64x64:seed=1; @FORMAT after it gives its format. "
        "f picks the format in which ulps are counted, and into which text is read. An element is within tolerance if "
        "|actual − expected| <= atol + rtol × |expected|."
    )
    BINDINGS = [
        Binding("o", "file('actual')", "Actual", id="compare.actual", tooltip="Pick a file: actual"),
        Binding("p", "file('expected')", "Expected", id="compare.expected", tooltip="Pick a file: expected"),
        Binding("s", "swap", "Swap the arrays", id="compare.swap", show=False),
        Binding("n", "nan", "Count NaNs as equal, or not", id="compare.nan", show=False),
        Binding("x", "inputs", "X and Y, from which both were computed", id="compare.inputs", show=False),
        Binding("e", "inspect('expected')", "Inspect expected", id="compare.inspect"),
        *SHARED_KEYS,
    ]
    DEFAULT_CSS = """
    CompareScreen {
        &.-wide #arrays, &.-wide #factors, &.-wide #body { layout: horizontal; }
        #operation { width: 1fr; }
        #tolerances { width: 42; }
        #controls { width: 1fr; }
        &.-narrow #near { layout: vertical; }
        &.-narrow #tolerances { width: 1fr; }
        #bar { max-height: 5; }
        #element { border-top: hkey $panel; }
        &.-wide #element { border-top: none; border-left: vkey $panel; }
        &.-two-topics { #details, #bars, #elements { width: 3fr; } }
        &.-two-topics #right { width: 2fr; } &.-cause #right { width: 1fr; }
        &.-two-topics #element, &.-topic-below #element { height: auto; max-height: 60%; }
        &.-framed #elements { min-width: 64; }
        &.-framed.-cause { #body { layout: vertical; } #details { width: 1fr; height: auto; max-height: 60%; } }
    }
    """

    bars, elements = getters.query_one(HistogramBars), getters.query_one(ElementTable)

    def first_view(self, question: Question) -> str:
        """Return the view of causes if the question has inputs, otherwise the summary."""
        return "cause" if question.option("inputs") else "summary"

    def compose_task(self) -> ComposeResult:
        """Compose the boxes and the views."""
        with VerticalGroup(id="arrays"):
            for name in _ARRAYS:
                yield ArrayBox(name, name, self._array_changed, len(_ARRAYS[1]))
        with HorizontalGroup(id="near"):
            with Horizontal(id="tolerances", classes="entry"):
                for name, default in _TOLERANCES.items():
                    yield Label(name)
                    yield Input(id=name, compact=True, placeholder=default)
            yield ButtonBar(self.control, id="controls")
        yield ChoiceBar(self.choose_view, self.VIEWS, self.view, id="views")
        with VerticalGroup(id="inputs"):
            with VerticalGroup(id="factors"):
                for name in _INPUTS:
                    yield ArrayBox(name.upper(), name, self._array_changed)
            with HorizontalGroup(id="made"):
                with Horizontal(id="operation", classes="entry"):
                    yield Label("op")
                    yield Input(id="op", compact=True, placeholder="matmul")
                yield ArrayBox("bias", "bias", self._array_changed)
        yield StaticPage(id="bar")
        with Vertical(id="body"):
            yield pane(PageView(id="details"), "Differences")
            yield pane(HistogramBars(id="bars"), "Distances in ulps")
            yield pane(ElementTable(id="elements"), "Largest errors")
            with Column(id="right"):
                yield pane(PageView(id="element"), "Element")
                yield pane(TopicPane(id="beside"))

    @property
    def differences(self) -> Differences | None:
        """The differences of the arrays; None as long as there is no answer."""
        model = self.answers[0].found if self.answers else None
        return model if isinstance(model, Differences) else None

    @property
    def element(self) -> ComparedElement | None:
        """The element under the cursor, if the elements are shown."""
        differences = self.differences
        if differences is None or self.view != "worst" or not differences.worst:
            return None
        return differences.worst[self.elements.cursor]

    @property
    def element_codes(self) -> dict[str, str]:
        """The codes of the element under the cursor, by the name of the array."""
        if self.differences is None or self.element is None:
            return {}
        return dict(zip(_ARRAYS, element_codes(self.differences, self.element), strict=True))

    # The question.

    def normal(self, question: Question) -> Question:
        """Return the question with 100 worst elements by default. If no array is a raw file, drop dtype and shape."""
        dtype = question.option("dtype")
        if dtype is not None and all(kind_of(word, dtype) != "raw" for word in question.values):
            question = question.having(dtype=None, shape=None)
        return question if question.option("worst") else question.having(worst=_LISTED)

    def keeps_found(self, question: Question) -> bool:
        """Return True if the question has inputs: a search for causes keeps its results when it is stopped."""
        return question.option("inputs") is not None

    def draw(self, before: Question) -> None:
        """Show the question in the boxes, and the view of the answer."""
        question, differences = self.question, self.differences
        for name, word in zip(_ARRAYS, question.values, strict=True):
            fill(self._array(name).input, word)
        for name in _TOLERANCES:
            self._fill_tolerance(name)
        inputs, had = question.option("inputs"), before.option("inputs")
        words = dict(zip(_MADE_OF, (*(inputs or ("", "")), question.option("bias", "")), strict=True))
        boxes = {self._array(name).input: word for name, word in words.items()}
        for box, word in (boxes | {self.query_one("#op", Input): question.option("op", "")}).items():
            if inputs or had:
                fill(box, word)
        ulps = differences.ulps if differences is not None else None
        format = next(iter(question.formats), ulps.format if ulps is not None else None)
        self.controls.options = (
            ("nan", "NaNs equal" if question.option("equal_nan") else "NaNs differ"),
            ("format", f"ulps of {short_name(format)}" if format is not None else "ulps"),
            ("swap", "swap"),
        )
        blocks = histogram_blocks(differences) if differences is not None else []
        self.bars.show(next((block for block in blocks if isinstance(block, Axis)), None))
        if differences is not None:
            self.elements.show(elements_table(differences))
        self.draw_view()

    def _array(self, name: str) -> ArrayBox:
        return self.query_one(f"#{name}", ArrayBox)

    def _fill_tolerance(self, name: str) -> None:
        """Show a tolerance in its box, unless the text typed there already has this value."""
        box, value = self.query_one(f"#{name}", Input), self.question.option(name)
        try:
            same = self._tolerance(name, box.value) == value
        except FloatlabError:
            same = False
        if not same:
            fill(box, "" if value is None else str(value))

    def _tolerance(self, name: str, text: str) -> float | None:
        """Read a tolerance as the command line does; return None (the default) for an empty text."""
        if not text.strip():
            return None
        value: float = self.app.read_question(["compare", "0", "0", f"--{name}={text.strip()}"]).option(name)
        return value

    def _array_changed(self, box: ArrayBox, picked: bool) -> None:
        if box.id in _MADE_OF:
            valid = self._ask_inputs()
        else:
            values = tuple(self._array(name).word for name in _ARRAYS)
            valid = self.open(self._with_values(values), "" if picked else f"{box.id}")
        self.mark_taken(box.input, valid, picked)

    def _with_values(self, values: tuple[str, ...]) -> Question:
        """Return the question about these arrays. If these replace the default arrays, drop the default options."""
        question, example = self.question, self.app.default_question(self.NAME)
        if set(values).isdisjoint(example.values) and not set(question.values).isdisjoint(example.values):
            if question.formats == example.formats:
                question = question.replace(formats=())
            own = {name: None for name in _TOLERANCES if question.option(name) == example.option(name)}
            question = question.having(**own)
        return question.replace(values=values)

    def _ask_inputs(self) -> bool:
        """Ask for the causes if X and Y (for a sum, X) are given. If all boxes are empty, ask without causes.

        In other cases, show a hint.
        """
        x, y, bias = (self._array(name).word for name in _MADE_OF)
        op = self.query_one("#op", Input).value.strip()
        if op.partition(":")[0] == "sum":
            y = y or "1"
        if x and y:
            return self.attempt(lambda: self._made_of(x, y, op, bias), "inputs")
        if x or y or op or bias:
            self.complain("a product has two inputs: give both X and Y", hint=True)
            return True
        return self.open(self.question.having(inputs=None, op=None, bias=None), "inputs")

    def _made_of(self, x: str, y: str, op: str, bias: str) -> Question:
        """Return the question that asks for the causes of the differences; `op` is read as on the command line."""
        said = [f"--op={op}"] if op else []
        read = self.app.read_question(["compare", "0", "0", "--inputs", "0", "0", *said])
        return self.question.having(inputs=(x, y), op=read.option("op"), bias=bias or None)

    @on(Input.Changed, "#op")
    def _operation_typed(self, event: Input.Changed) -> None:
        mark_valid(event.input, self._ask_inputs())

    @on(Input.Changed, "#rtol, #atol")
    def _tolerance_typed(self, event: Input.Changed) -> None:
        name = event.input.id or ""
        valid = self.attempt(lambda: self.question.having(**{name: self._tolerance(name, event.input.value)}), name)
        mark_valid(event.input, valid)

    def action_nan(self) -> None:
        """Switch between counting NaNs as equal and counting them as different."""
        self.change(equal_nan=None if self.question.option("equal_nan") else True)

    def action_swap(self) -> None:
        """Swap the actual array and the expected array."""
        self.open(self.question.replace(values=self.question.values[::-1]))

    def action_file(self, name: str) -> None:
        """Open a window in which the user picks a file for an array."""
        if name in _MADE_OF:
            self.view = "cause"
        self._array(name).action_pick()

    def action_inputs(self) -> None:
        """Move the focus to the box of the input X."""
        self.view = "cause"
        self._array("x").input.focus()

    # The views.

    def draw_view(self) -> None:
        """Show the current view, and hide the others."""
        differences, view = self.differences, self.view
        self.set_class(view == "cause", "-cause")
        if view == "histogram" and self.bars.count:
            self.show_only("bars", "bar")
        elif view == "worst" and self.elements.count:
            self.show_only("elements", "element")
        else:
            self.show_only("details", "inputs" if view == "cause" else "")
            self.details.page = self.page() if differences is None else self._page_of(differences)
        self._draw_bar()
        self._draw_element()

    @property
    def has_topic_below(self) -> bool:
        """Whether there is room for a topic below the current view: only in the views of elements and causes."""
        return self.view in ("worst", "cause")

    def topics(self) -> list[Topic]:
        """Return the summary as a topic; if the summary is the current view, return the largest errors."""
        if (found := self.differences) is None:
            return []
        if self.view != "summary":
            return [("Summary", summary_page(found))]
        if not found.worst:
            return []
        table = elements_table(found)
        rows = [[row[i] for i in _FEW] for row in table.rows]
        return [("Largest errors", Page((Table(tuple(table.header[i] for i in _FEW), rows, (3, 4)),)))]

    def _page_of(self, differences: Differences) -> Page:
        if self.view == "cause":
            blocks = [block for part in self.answers[0].parts()[1:] for block in part.blocks]
            if first := _first_line(differences):
                return Page((Note(first), *blocks))
            return note_page(
                "Are the arrays two products of the same inputs, X and Y? Type or pick both (x goes to X): the "
                "first line then says whether they differ by rounding or by a bug, and why. op says what was done to X "
                "and Y: matmul, linear, sum, einsum:ij,jk->ik, conv2d:stride=2."
            )
        if self.view == "histogram":
            ulps = differences.ulps
            if ulps is None or not ulps.count:
                return note_page("No element has a distance in ulps.")
            return note_page(f"The distance of all elements is 0 ulps of {ulps.format.name}.")
        # If no elements differ, show the page of the map, which says so, instead of the worst elements.
        if self.view != "summary":
            return map_page(differences)
        page = summary_page(differences)
        first = _first_line(differences)
        return page.replace(blocks=(diagnosis_note(first), Gap(), *page.blocks)) if first else page

    @on(Cells.Moved, "#bars")
    def _draw_bar(self) -> None:
        differences = self.differences
        if differences is not None and differences.ulps is not None and self.bars.count:
            heading = histogram_blocks(differences)[:1]
            self.show_page("bar", Page((*heading, *bin_page(differences.ulps, self.bars.cursor).blocks)))

    @on(Cells.Moved, "#elements")
    def _draw_element(self) -> None:
        codes = self.element_codes
        if codes:
            self.show_page("element", answer_question(Question("cmp", tuple(codes.values())))[0].page())
        self.refresh_bindings()

    @on(Cells.Chosen, "#elements")
    def _element_chosen(self) -> None:
        self.action_inspect("actual")

    def action_inspect(self, which: str) -> None:
        """Open the actual or the expected number of the element under the cursor in Inspect, and pin both."""
        codes, differences = self.element_codes, self.differences
        if not codes or differences is None:
            return
        self.app.pins |= {"A": codes["actual"], "B": codes["expected"]}
        self.notify("A is the actual number, B the expected number: the view A and B compares them", timeout=4)
        formats = [differences.actual.format, differences.expected.format]
        order = formats if which == "actual" else formats[::-1]
        self.inspect(codes[which], tuple(dict.fromkeys(order)))

    def code_to_pin(self, name: str) -> str:
        """Return the code to pin as `name`: the code of the actual number for A, of the expected number for B."""
        return self.element_codes.get("actual" if name == "A" else "expected", "")

    # Methods that the base classes call.

    def printed(self) -> Question:
        """Return the question; drop the default number of worst elements if these elements are not shown."""
        short = self.view != "worst" and self.question.option("worst") == _LISTED
        return self.question.having(worst=None) if short else self.question

    def copies(self) -> Copies:
        """Return the texts that can be copied from the current view."""
        copies, differences, element = super().copies(), self.differences, self.element
        if element is None:
            verdict = "" if differences is None else _first_line(differences) or verdict_words(differences)
            copies["value"] = ("the verdict", lambda: verdict)
            del copies["code"]
        else:
            copies["value"] = ("both numbers", lambda: f"{element.actual!r} {element.expected!r}")
            copies["code"] = ("both codes", lambda: " ".join(self.element_codes.values()))
        return copies

    def possible(self) -> dict[str, bool]:
        """Return, for each action, whether it is available. Some actions need an element under the cursor."""
        has_element = self.is_mounted and self.element is not None
        return super().possible() | {"pin": has_element, "inspect": has_element}

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for views, files and the other actions."""
        yield from super().commands()
        for name in (*_ARRAYS, *_MADE_OF):
            yield f"Open: {self._array(name).label}", "pick a file for this array", partial(self.action_file, name)
        yield "Swap the arrays", "actual for expected", self.action_swap
        yield "Count NaNs as equal, or not", "in the tolerances of NumPy and PyTorch", self.action_nan
        yield "Ulps: automatic", "of the narrower array", partial(self.take_format, AUTOMATIC)
