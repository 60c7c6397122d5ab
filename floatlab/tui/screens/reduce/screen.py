"""Reduce: a sum or product with its tree, its result bit by bit, other orders beside it, and the order of a library."""

from __future__ import annotations

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Container, Vertical
from textual.widgets import Input, Static

from floatlab.errors import FloatlabError
from floatlab.page.model import Note, Page, line
from floatlab.record import Record
from floatlab.reduce import Reduction
from floatlab.reduce.products import Product
from floatlab.reduce.reveal.revelation import Findings
from floatlab.tui.screens.reduce.controls import Ways
from floatlab.tui.screens.reduce.orders import Orders
from floatlab.tui.screens.task import Task
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.tui.widgets.boxes import fill, is_wrong, judge
from floatlab.tui.widgets.cells import Cells
from floatlab.tui.widgets.choices import Choices
from floatlab.tui.widgets.drawing import EMPTY, Drawing, Still
from floatlab.tui.widgets.pickers import Choice, Help, Picker
from floatlab.tui.widgets.tree_table import TreeTable
from floatlab.verbs.matmul.page import element_words, elements_of, place_of
from floatlab.verbs.orders.page import figures_page, result_page, way_of
from floatlab.verbs.reduce.node.page import node_page
from floatlab.verbs.reduce.node.questions import roundings_at
from floatlab.verbs.reduce.page import array_words
from floatlab.verbs.reduce.tree import MOST, Tree, tree_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from textual.widget import Widget

    from floatlab.verbs.answer import Answer
    from floatlab.verbs.question import Question

_NAMES = ("x", "y")


class Sight(Record):
    """What is shown of an answer: the sum with its tree and its figures, where there are such; and the whole page."""

    found: Reduction | None
    tree: Tree | None
    figures: Page
    page: Page


class Reduce(Ways, inherit_bindings=False):
    """How an array is added. The question is what `sum`, `dot`, `matmul` or `reveal` asks."""

    NAME = "reduce"
    PLACE = "In Reduce"
    VIEWS = (("tree", "Tree"), ("summary", "Summary"), ("orders", "Side by side"))
    HELP = (
        "An array is a list (1.5,-2), a file, or random:normal:1000:seed=1. s changes the order, m fuses multiply and "
        "add; below the result stands the one before, with ^ above each bit that differs, or the one that a pinned. "
        "w asks a library in which order it adds, and g adds your data so."
    )
    BINDINGS = [*Ways.OWN, Binding("e", "element", "Element", id="way.element"), *Task.SHARED]
    DEFAULT_CSS = """
    Reduce {
        #arrays { height: 1; layout: horizontal; }
        #arrays ArrayBox { width: 1fr; }
        #top { height: auto; layout: vertical; }
        #figures { height: auto; max-height: 5; }
        &.-narrow #figures, &.-short #figures { display: none; }
        &.-reveal #figures { display: block; max-height: 9; }
        &.-reveal #result, &.-reveal #arrays { display: none; }
        &.-reveal.-narrow #figures, &.-reveal.-short #figures { max-height: 5; }
        &.-wide #top { layout: horizontal; }
        &.-wide #figures { max-height: 7; }
        &.-wide #result, &.-wide #figures { width: 1fr; }
        #body { height: 1fr; }
        #tree, #details, #orders { height: 1fr; }
    }
    """

    def __init__(self, question: Question) -> None:
        """Open at a question."""
        super().__init__(question)
        self.element = 0  # of a product, in C order
        self._data: Question | None = None
        self._terms = 0
        self._before: tuple[Any, Reduction] | None = None  # what was computed of what
        self._other: Reduction | None = None  # another result of the same
        self._kept: tuple[Any, Reduction] | None = None  # the one that was pinned

    def compose_task(self) -> ComposeResult:
        """Compose the arrays, the choices, the result, and a place for each view."""
        with Container(id="arrays"):
            for name in _NAMES:
                yield ArrayBox(name, id=name)
        yield Static(id="complaint", markup=False)
        yield Choices(id="controls")
        with Container(id="top"):
            yield Still(id="result")
            yield Drawing(id="figures")
        yield Choices(self.VIEWS, self.view, id="views")
        with Vertical(id="body"):
            yield TreeTable(id="tree")
            yield Drawing(id="details")
            yield Orders(id="orders")

    # The question.

    def prepare(self, question: Question, answers: list[Answer]) -> Sight:
        """Add node by node, and compare with the exact sum."""
        answer = answers[0]
        found, page = answer.found, answer.page()
        if isinstance(found, Findings):
            return Sight(None, Tree(found.plan), page, page)
        if isinstance(found, Product):
            found = found.reduction(self.element) if self.element < found.codes.size else found.reduction(0)
        if not isinstance(found, Reduction):
            return Sight(None, None, EMPTY, page)
        return Sight(found, tree_of(found), figures_page(found), page)

    @property
    def sight(self) -> Sight | None:
        """What is shown, once there is an answer."""
        found: Sight | None = self.prepared
        return found

    @property
    def reduction(self) -> Reduction | None:
        """The sum that is shown."""
        return self.sight.found if self.sight is not None else None

    @property
    def revealed(self) -> Findings | None:
        """What was found out about a library."""
        found = self.answers[0].found if self.answers else None
        return found if isinstance(found, Findings) else None

    @property
    def data(self) -> Question | None:
        """The last question about data."""
        return self._data

    @property
    def data_terms(self) -> int:
        """How many terms the data have."""
        return self._terms

    def subject(self) -> Any:
        """Return the result."""
        return self.reduction.result if self.reduction is not None else None

    def draw(self, before: Question) -> None:
        """Show the boxes, and what was found."""
        question, sight, found = self.question, self.sight, self.reduction
        self.set_class(question.verb == "reveal", "-reveal")
        if question.verb != "reveal":
            self._data = question
            self._fill(question)
        if sight is None:
            return
        if self.product is not None and self.element >= self.product.codes.size:
            self.element = 0  # of a product that has so few
        if found is not None:
            self._terms = len(found)
            of = self._of(question)
            last = self._before
            if last is None or last[0] != of:
                self._other = None
            elif last[1] is not found:
                self._other = last[1]
            self._before = (of, found)
        if sight.tree is not None:
            self.query_one(TreeTable).show_tree(sight.tree)
        self.query_one("#figures", Drawing).page = sight.figures
        self._draw_frame()
        self.draw_view()

    def _draw_frame(self) -> None:
        """Show the result, and what can be changed, in as many words as there is room for."""
        self._draw_result()
        self.query_one("#controls", Choices).options = self.controls()

    def on_resize(self) -> None:
        """Use the room that there is."""
        if self.sight is not None:
            self.call_after_refresh(self._draw_frame)

    def _of(self, question: Question) -> Any:
        """Return what is added, which other ways to add it have in common."""
        return question.values, question.option("preset"), question.verb, self.element

    def _fill(self, question: Question) -> None:
        """Show the arrays in the boxes; those of a preset are written out."""
        words = question.values
        found = self.reduction
        if question.option("preset") and found is not None:
            words = tuple(array_words(each) for each in (found.x, found.y) if each is not None)
        for box, word in zip(self.query(ArrayBox), (*words, "", "")[:2], strict=True):
            box.display = box.id == "x" or question.verb != "sum"
            if not (box.input.has_focus and is_wrong(box.input)):
                fill(box.input, word)

    def arrays(self) -> tuple[str, ...]:
        """Return the words for the arrays, as they stand in the boxes."""
        boxes = [box for box in self.query(ArrayBox) if box.display]
        return tuple(box.word for box in boxes)

    @on(ArrayBox.Given)
    def _given(self, event: ArrayBox.Given) -> None:
        question = self.asked().replace(values=self.arrays()).having(preset=None)
        judge(event.box.input, self.open(question, "" if event.picked else f"array {event.box.id}"))

    @on(Choices.Chosen, "#controls")
    async def _control_chosen(self, event: Choices.Chosen) -> None:
        await self.control(event.name)

    # The result, and another one beside it.

    def _draw_result(self) -> None:
        found = self.reduction
        if found is None:
            self.query_one("#result", Drawing).page = EMPTY
            return
        kept = self._kept
        if kept is not None and kept[0] == self._of(self.question) and kept[1].result.format == found.result.format:
            page = result_page(found.result, kept[1].result, way_of(kept[1]), "A")
        else:
            other = self._other
            before, words = (None, "") if other is None else (other.result, way_of(other))
            page = result_page(found.result, before, words)
        if self.small:
            page = page.replace(blocks=page.blocks[:2])
        self.query_one("#result", Drawing).page = page

    def action_pin(self, name: str) -> None:
        """Keep the result in sight as A or B; A stands below other results of the same terms."""
        super().action_pin(name)
        found = self.reduction
        if name == "A" and found is not None:
            self._kept = (self._of(self.question), found)
            self._draw_result()

    # The views.

    def draw_view(self) -> None:
        """Show the tree, the whole page, or the orders side by side."""
        sight = self.sight
        if sight is None:
            return
        tree, details, orders = self.query_one(TreeTable), self.query_one("#details", Drawing), self.query_one(Orders)
        has_tree = self.view == "tree" and sight.tree is not None
        has_orders = self.view == "orders" and sight.found is not None
        tree.display, orders.display, details.display = has_tree, has_orders, not (has_tree or has_orders)
        if has_orders and sight.found is not None:
            orders.show_orders(sight.found, self.GRACE)
        elif not has_tree:
            details.page = self._page_of(sight)
        if self.focused is not None and not self.focused.display:
            self.action_leave()

    def _page_of(self, sight: Sight) -> Page:
        """Return the page, and say why there is no tree where one was asked for."""
        if self.view == "tree" and sight.found is not None:
            words = f"{len(sight.found):,} terms are too many for a tree, which shows up to {MOST:,}."
            return Page((Note(line(words)), *sight.page.blocks))
        return sight.page

    @on(Cells.Chosen, "#orders")
    def _order_chosen(self) -> None:
        way = self.query_one(Orders).way
        if way is not None:
            self.change(**dict(way.options))

    # The tree.

    @on(Cells.Chosen, "#tree")
    def _node_chosen(self) -> None:
        tree = self.query_one(TreeTable)
        sprig, found = tree.sprig, self.reduction
        if sprig is None:
            return
        if (
            found is None
            or sprig.id is None
            or sprig.key[0] == "all"
            or (sprig.key[0] == "part" and sprig.is_open is not None)
        ):
            tree.action_fold()
            return
        rows = roundings_at(found, sprig.id)
        if not rows:
            self.app.push_screen(Help(f"Node {sprig.id}", node_page(found, sprig.id)))
        elif len(rows) == 1:
            self.app.ask(rows[0].question)
        else:
            choices = [Choice(str(i), each.words) for i, each in enumerate(rows)]
            picker = Picker("What happened here, the last first", choices)
            self.app.push_screen(picker, lambda name: self.app.ask(rows[int(name)].question) if name else None)

    @on(TreeTable.Refused)
    def _refused(self, event: TreeTable.Refused) -> None:
        self.complain(event.words, hint=True)

    # Elements of a product.

    @property
    def product(self) -> Product | None:
        """The product that is shown, if it is one."""
        found = self.answers[0].found if self.answers else None
        return found if isinstance(found, Product) else None

    @property
    def element_words(self) -> str:
        """Name the element that is shown."""
        product = self.product
        return element_words(product, self.element) if product is not None else ""

    def action_element(self) -> None:
        """Pick an element."""
        product = self.product
        if product is None:
            return
        rows = [Choice(str(place), words) for place, words in elements_of(product)]
        title = "Element, or any row,column"
        self.app.push_screen(Picker(title, rows, (str(self.element),), free=True), self.take_element)

    def take_element(self, text: str | None) -> None:
        """Take an element by its place, or by row and column."""
        product = self.product
        if text is None or product is None:
            return
        try:
            self.element = place_of(product, text)
        except FloatlabError as error:
            self.complain(str(error))
            return
        self.prepared = self.prepare(self.question, self.answers)
        self.draw(self.question)

    # What the frame asks.

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what does not belong to this question."""
        if action == "element":
            return self.product is not None
        if action == "pin":
            return self.reduction is not None
        return super().check_action(action, parameters)

    def boxes(self) -> Iterator[Widget]:
        """Return the boxes of the arrays."""
        for box in self.query(ArrayBox):
            if box.display and not self.has_class("-reveal"):
                yield box.input

    def home(self) -> Iterator[Widget]:
        """Go back to the view."""
        yield self.query_one(TreeTable)
        yield self.query_one(Orders)
        yield self.query_one("#details", Drawing)

    @on(Input.Blurred)
    def _array_left(self, event: Input.Blurred) -> None:
        if not is_wrong(event.input) and self.answers and self._data is not None:
            self._fill(self.question if self.question.verb != "reveal" else self._data)

    def commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Offer the views, and the ways to add."""
        for name, words in self.VIEWS:
            yield f"View: {words}", "of this sum", lambda name=name: setattr(self, "view", name)  # type: ignore[misc]
        yield from super().commands()
