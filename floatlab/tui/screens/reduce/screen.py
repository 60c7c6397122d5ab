"""The screen Reduce: a sum or product, its tree, the bits of its result, other orders, and the orders of libraries."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import HorizontalGroup, Vertical, VerticalGroup
from textual.widget import Widget
from textual.widgets import Input

from floatlab.numbers.datum import Datum
from floatlab.page.model import Note, Page, line
from floatlab.record import Record
from floatlab.reduce import Reduction
from floatlab.reduce.results.products import Product
from floatlab.reduce.reveal.order_map_record import OrderMap
from floatlab.reduce.reveal.revelation import Findings
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.panes import Column, Topic, TopicPane, pane
from floatlab.tui.screens.reduce.controls import PreparedReduction, ReduceControls
from floatlab.tui.screens.reduce.map_view import MapView
from floatlab.tui.screens.reduce.tables import OrderTable, TreeTable
from floatlab.tui.widgets import EMPTY, ButtonBar, Cells, Choice, ChoiceBar, HelpWindow, PageView, Pick, StaticPage
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.tui.widgets.boxes import fill, is_wrong
from floatlab.verbs.question import Answer, Question
from floatlab.verbs.reduce.node import node_page, roundings_at
from floatlab.verbs.reduce.orders import computation_words, figures_page, result_page
from floatlab.verbs.reduce.page import array_words, elements_of, place_of
from floatlab.verbs.reduce.tree import MOST, Tree, tree_of
from floatlab.verbs.registry import answer_question
from floatlab.verbs.reveal.map_page import class_page

_NAMES = ("x", "y")


class _Terms(Record):
    """What determines the terms of a sum: results whose `_Terms` are equal have the same terms."""

    values: tuple[str, ...]
    preset: str | None
    verb: str
    element: int


class ReduceScreen(ReduceControls, inherit_bindings=False):
    """The screen for sums and products. Its questions are those of `sum`, `dot`, `matmul` and `reveal`."""

    VIEWS = (("tree", "Tree"), ("summary", "Summary"), ("orders", "Side by side"))
    HELP = (
        "An array is a list (1.5,-2), a file, or random:normal:1000:seed=1. s changes the order, m switches fused "
        "multiply-add on or off. Below the result is the previous result, or the one that you pinned (key a); ^ marks "
        "every bit that differs. w finds the order in which a library adds, and g adds your data in that order. Z "
        "finds the orders of all elements of a library's product."
    )
    BINDINGS = [
        Binding("s", "pick('schedule')", "Order", id="way.schedule", tooltip="Order of the additions"),
        Binding("m", "fma", "FMA", id="way.fma", tooltip="Fused multiply-add on or off"),
        Binding("w", "pick('reveal')", "Library", id="way.reveal", tooltip="In which order does a library add?"),
        Binding("g", "take", "Take over", id="way.take", tooltip="Add your data in the order that was found"),
        Binding("Z", "pick('shape')", "Shape", id="way.shape", tooltip="The orders of all elements of a product"),
        Binding("o", "pick('operation')", "Sum, dot product or matrix product", id="way.operation", show=False),
        Binding("i", "pick('accumulator')", "Format of partial sums", id="way.accumulator", show=False),
        Binding("p", "pick('products')", "Format of products", id="way.products", show=False),
        Binding("d", "pick('adder')", "Additions rounded, or compensated", id="way.adder", show=False),
        Binding("x", "pick('machine')", "A model of a matrix unit", id="way.machine", show=False),
        Binding("e", "element", "Element", id="way.element"),
        *SHARED_KEYS,
    ]
    DEFAULT_CSS = """
    ReduceScreen {
        #figures { height: auto; max-height: 5; }
        &.-narrow #figures, &.-short #figures { display: none; }
        &.-reveal #figures { display: block; max-height: 9; }
        &.-reveal #result, &.-reveal #arrays { display: none; }
        &.-reveal.-narrow #figures, &.-reveal.-short #figures { max-height: 5; }
        &.-wide #top { layout: horizontal; }
        &.-wide #figures { max-height: 7; }
        &.-framed #tree { height: auto; max-height: 55%; }
        &.-framed #orders { height: auto; }
        &.-two-topics #lower { layout: horizontal; }
        &.-two-topics { #addition, #orders, #map { width: 3fr; } #orders { height: 1fr; } #beside { width: 2fr; } }
    }
    """

    tree_table, orders = getters.query_one(TreeTable), getters.query_one(OrderTable)
    map_view = getters.query_one(MapView)

    _last: tuple[_Terms, Reduction] | None = None  # the result that is shown, and its terms
    _was_map = False  # whether the previous answer was a map of orders
    _previous: Reduction | None = None  # the previous result of the same terms
    _pinned: tuple[_Terms, Reduction] | None = None

    def compose_task(self) -> ComposeResult:
        """Compose the arrays, the controls, the result, and the views."""
        with HorizontalGroup(id="arrays"):
            for name in _NAMES:
                yield ArrayBox(name, name, self._array_changed)
        yield ButtonBar(self.control, id="controls")
        with pane(VerticalGroup(id="top"), "Result"):
            yield StaticPage(id="result")
            yield PageView(id="figures")
        yield ChoiceBar(self.choose_view, self.VIEWS, self.view, id="views")
        with Vertical(id="body"):
            yield pane(TreeTable(partial(self.complain, hint=True), id="tree"), "Additions")
            with Column(id="lower"):
                yield pane(PageView(id="details"), "Summary")
                yield pane(PageView(id="addition"), "This addition")
                yield pane(OrderTable(id="orders"), "Orders")
                yield pane(MapView(id="map"), "Orders of all elements")
                yield pane(TopicPane(id="beside"))

    # The question.

    def prepare(self, question: Question, answers: list[Answer]) -> PreparedReduction:
        """Return the parts of the answer that are drawn. For a sum, they include its tree and its error."""
        model, page = answers[0].found, answers[0].page()
        if isinstance(model, Findings):
            return PreparedReduction(None, Tree(model.plan), page, page)
        if isinstance(model, Product):
            model = model.reduction(self.element if self.element < model.codes.size else 0)
        if not isinstance(model, Reduction):
            return PreparedReduction(None, None, EMPTY, page)
        return PreparedReduction(model, tree_of(model), figures_page(model), page)

    def subject(self) -> Datum | None:
        """Return the result of the sum, or None if no sum is shown."""
        return self.reduction.result if self.reduction is not None else None

    def draw(self, before: Question) -> None:
        """Show the boxes and the answer."""
        question, drawn, reduction = self.question, self.prepared, self.reduction
        self.set_class(question.verb == "reveal", "-reveal")
        if question.verb != "reveal":
            self.data = question
            self._fill(question)
        if drawn is None:  # there is no answer yet
            self.controls.options = self.control_words()
            self.show_only("details")
            return
        if self.product is not None and self.element >= self.product.codes.size:
            self.element = 0
        if reduction is not None:
            self.data_terms = len(reduction)
            terms, last = self._terms(question), self._last
            if last is None or last[0] != terms:
                self._previous = None
            elif last[1] is not reduction:
                self._previous = last[1]
            self._last = (terms, reduction)
        if drawn.tree is not None:
            self.tree_table.show_tree(drawn.tree)
        if self.order_map is not None:
            self.map_view.show_map(self.order_map)
        if (self.order_map is not None) != self._was_map:  # a map opens in the view Map
            self._was_map = self.order_map is not None
            self.set_reactive(ReduceScreen.view, self.shown_views[0][0])
        self.show_page("figures", drawn.figures)
        self.views.options, self.views.current = self.shown_views, self.shown_view
        self._draw_top()
        self.draw_view()

    def _draw_top(self) -> None:
        """Show the result and the controls, with texts that fit the width."""
        self._draw_result()
        self.controls.options = self.control_words()

    def on_resize(self) -> None:
        """Draw the screen again for its new size."""
        if self.prepared is not None:
            self.call_after_refresh(self._draw_top)
            self.call_after_refresh(self.draw_view)

    def _terms(self, question: Question) -> _Terms:
        return _Terms(question.values, question.option("preset"), question.verb, self.element)

    def _fill(self, question: Question) -> None:
        """Show the arrays in the boxes. A preset has no typed arrays: show its numbers as lists."""
        texts, reduction = question.values, self.reduction
        if question.option("preset") and reduction is not None:
            texts = tuple(array_words(array) for array in (reduction.x, reduction.y) if array is not None)
        for box, text in zip(self.query(ArrayBox), (*texts, "", "")[:2], strict=True):
            box.display = box.id == "x" or question.verb != "sum"
            fill(box.input, text)

    def _array_changed(self, box: ArrayBox, picked: bool) -> None:
        question = self.base_question().replace(values=self.arrays()).having(preset=None)
        self.mark_taken(box.input, self.open(question, "" if picked else f"array {box.id}"), picked)

    # The result, with another result below it.

    def _draw_result(self) -> None:
        reduction, pinned, previous = self.reduction, self._pinned, self._previous
        if reduction is None:
            self.show_page("result", EMPTY)
            return
        result = reduction.result
        if pinned and pinned[0] == self._terms(self.question) and pinned[1].result.format == result.format:
            page = result_page(result, pinned[1].result, computation_words(pinned[1]), "A")
        elif previous is not None:
            page = result_page(result, previous.result, computation_words(previous))
        else:
            page = result_page(result, None, "")
        self.show_page("result", page.replace(blocks=page.blocks[:2]) if self.small else page)

    def action_pin(self, name: str) -> None:
        """Pin the result as A or B. A result pinned as A is shown below other results of the same terms."""
        super().action_pin(name)
        if name == "A" and self.reduction is not None:
            self._pinned = (self._terms(self.question), self.reduction)
            self._draw_result()

    # The views.

    @property
    def shown_views(self) -> tuple[tuple[str, str], ...]:
        """The views that the user can choose.

        For a map of orders, the views are the map, the tree of one order, and the summary.
        """
        return self.VIEWS if self.order_map is None else (("map", "Map"), *self.VIEWS[:-1])

    def draw_view(self) -> None:
        """Show the tree, the whole page, the orders side by side, or the map of a library's orders."""
        drawn = self.prepared
        if drawn is None:
            return
        if self.order_map is not None:
            self._draw_map(self.order_map)
        elif self.shown_view == "tree" and drawn.tree is not None:
            self.show_only("tree", "addition" if self.has_class("-framed") else "")
            self._draw_addition()
        elif self.shown_view == "orders" and drawn.reduction is not None:
            self.show_only("orders")
            self.orders.show_orders(drawn.reduction, self.GRACE)
        else:
            self.show_only("details")
            self.details.page = self._page_of(drawn)

    def _draw_map(self, shown: OrderMap) -> None:
        """Show the map, the tree of the order under its cursor, or the whole page."""
        plan = shown.classes[self.map_view.label].plan
        self._class_moved()
        if self.shown_view == "map":
            self.show_only("map")
        elif self.shown_view == "tree" and plan is not None:
            self.tree_table.show_tree(Tree(plan))
            self.show_only("tree")
        elif self.prepared is not None:
            self.show_only("details")
            self.details.page = self.prepared.page

    @property
    def has_topic_below(self) -> bool:
        """Whether the current view is so short that there is room for a topic below it."""
        return self.shown_view in ("orders", "map")

    def topics(self) -> list[Topic]:
        """Return the summary as a topic, unless the summary is the current view."""
        drawn = self.prepared
        return [("Summary", drawn.page)] if drawn is not None and self.shown_view != "summary" else []

    @on(Cells.Moved, "#map")
    def _class_moved(self) -> None:
        if self.order_map is not None:
            page = class_page(self.order_map, self.map_view.label)
            blocks = page.blocks if not self.small else (*page.blocks[2:], *page.blocks[:2])
            self.show_page("figures", page.replace(blocks=blocks))

    @on(Cells.Chosen, "#map")
    def _class_chosen(self) -> None:
        self.app.leave_place()
        self.view = "tree"

    def _page_of(self, drawn: PreparedReduction) -> Page:
        """Return the page. If the view should show a tree but there is none, the page gives the reason."""
        if self.shown_view == "tree" and drawn.reduction is not None:
            text = f"{len(drawn.reduction):,} terms are too many for a tree, which shows up to {MOST:,}."
            return Page((Note(line(text)), *drawn.page.blocks))
        return drawn.page

    @on(Cells.Chosen, "#orders")
    def _order_chosen(self) -> None:
        order = self.orders.chosen
        if order is not None:
            self.app.leave_place()
            self.change(**dict(order.options))

    # The tree.

    @on(Cells.Moved, "#tree")
    def _draw_addition(self) -> None:
        """Show the steps of the last rounding at the node under the cursor, if there is room."""
        row, reduction, view = self.tree_table.current_row, self.reduction, self.query_one("#addition", PageView)
        if not view.display or row is None or reduction is None:
            return
        steps = roundings_at(reduction, row.id) if row.id is not None else []
        page = answer_question(steps[0].question)[0].page() if steps else EMPTY
        view.page = page.replace(blocks=page.blocks[1:])  # the frame has the title
        view.border_title = steps[0].words if steps else "This row adds several numbers"

    @on(Cells.Chosen, "#tree")
    def _node_chosen(self) -> None:
        row, reduction = self.tree_table.current_row, self.reduction
        if row is None:
            return
        folds = row.key[0] == "all" or (row.key[0] == "part" and row.is_open is not None)
        if reduction is None or row.id is None or folds:
            self.tree_table.action_fold()
            return
        steps = roundings_at(reduction, row.id)
        if not steps:
            self.app.push_screen(HelpWindow(f"Node {row.id}", node_page(reduction, row.id)))
        elif len(steps) == 1:
            self.app.ask(steps[0].question)
        else:
            choices = [Choice(str(i), step.words) for i, step in enumerate(steps)]
            title = "Roundings at this node, the last one first"
            self.pick(Pick(title, choices, lambda place: self.app.ask(steps[int(place)].question)))

    # Elements of a product.

    def action_element(self) -> None:
        """Open the list of elements."""
        if self.product is not None:
            rows = [Choice(str(place), text) for place, text in elements_of(self.product)]
            take = partial(self._take_element, self.product)
            self.pick(Pick("Element, or any row,column", rows, take, (str(self.element),), free=True))

    def _take_element(self, product: Product, text: str) -> None:
        with self.complaining():
            self.element = place_of(product, text)
            self.prepared = self.prepare(self.question, self.answers)
            self.draw(self.question)

    # Methods that the base classes call.

    def boxes(self) -> Iterator[Widget]:
        """Return the boxes of the arrays."""
        for box in self.query(ArrayBox):
            if box.display and not self.has_class("-reveal"):
                yield box.input

    @on(Input.Blurred)
    def _array_left(self, event: Input.Blurred) -> None:
        if not is_wrong(event.input) and self.answers and self.data is not None:
            self._fill(self.question if self.question.verb != "reveal" else self.data)
