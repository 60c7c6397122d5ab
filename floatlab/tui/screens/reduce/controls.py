"""The controls of the screen Reduce: operation, order, formats, additions, hardware model and library."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from floatlab.formats import parse_format
from floatlab.formats.catalog import short_name
from floatlab.page.model import Page
from floatlab.record import Record
from floatlab.reduce import Reduction
from floatlab.reduce.results.products import Product
from floatlab.reduce.reveal.order_map_record import OrderMap
from floatlab.reduce.reveal.revelation import Findings
from floatlab.reduce.simulate.matrix_units import MACHINES
from floatlab.reduce.timing.devices import DTYPES
from floatlab.sandbox import confined
from floatlab.tui.screens.pick_lists import AUTOMATIC
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.widgets import Choice, Pick
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.verbs.question import Question
from floatlab.verbs.reduce.orders import SCHEDULES, taken_over, targets
from floatlab.verbs.reduce.page import element_words
from floatlab.verbs.reduce.tree import Tree
from floatlab.verbs.registry import verb_named
from floatlab.verbs.reveal.options import LAYOUTS, read_shape

OPERATIONS = ("sum", "dot", "matmul")
_NONE = "none"
_ROUNDED = "rounded"
_ADDERS = {
    _ROUNDED: "every addition is rounded",
    "kahan": "the error of an addition is subtracted from the next term",
    "neumaier": "the errors of the additions are summed, and added at the end",
    "klein": "as neumaier, also for the errors of the compensation",
    "double": "the sum is stored as two numbers",
}
# Options with which a question is not about a simulated sum.
_NO_SUM = ("observed", "difference", "ways", "block_size", "backends", "runs")
_TERMS = (8, 16, 32, 64, 100, 128, 256, 1024, 4096)
_FIRST = "first"  # the choice for a product without a given shape
_SHAPES = {
    _FIRST: "only the first element of a product of 64 rows and columns",
    "5x33x7": "a small product with edges on all sides",
    "24x40x30": "24 rows, 40 terms, 30 columns",
    "64x64x64": "three equal sides",
    "100x1000x100": "a long sum for each element",
    "400x400x400": "160,000 elements; this may take seconds",
}


class PreparedReduction(Record):
    """The drawn parts of an answer: a sum, its tree (None if missing), figures such as the error, and the page."""

    reduction: Reduction | None
    tree: Tree | None
    figures: Page
    page: Page


class ReduceControls(TaskScreen, inherit_bindings=False):
    """A screen with the controls for a sum or product."""

    prepared: PreparedReduction | None
    data: Question | None = None  # the last question that was not about a library
    data_terms = 0
    element = 0  # position of the shown element of a product, in C order

    @property
    def reduction(self) -> Reduction | None:
        """The sum that is shown, or None if there is none."""
        return self.prepared.reduction if self.prepared is not None else None

    @property
    def findings(self) -> Findings | None:
        """What `reveal` found about a library; None if no such answer is shown."""
        model = self.answers[0].found if self.answers else None
        return model if isinstance(model, Findings) else None

    @property
    def order_map(self) -> OrderMap | None:
        """The orders of all elements of a library's product, if they are shown."""
        model = self.answers[0].found if self.answers else None
        return model if isinstance(model, OrderMap) else None

    @property
    def _has_shape(self) -> bool:
        """Whether the function of the library multiplies matrices, so that a shape can be given."""
        return self.order_map is not None or (
            self.findings is not None and self.findings.target.kind in ("matvec", "matmul")
        )

    @property
    def product(self) -> Product | None:
        """The matrix product that is shown, or None if there is none."""
        model = self.answers[0].found if self.answers else None
        return model if isinstance(model, Product) else None

    def arrays(self) -> tuple[str, ...]:
        """Return the texts in the visible boxes of the arrays."""
        return tuple(box.word for box in self.query(ArrayBox) if box.display)

    def base_question(self) -> Question:
        """Return the last question that was not about a library, without options such as --backends."""
        question = self.question
        if question.verb == "reveal":
            question = self.data or self.app.read_question(["sum", "1,2,3"])
        return question.having(**dict.fromkeys(_NO_SUM))

    # The line of controls.

    def control_words(self) -> tuple[tuple[str, str], ...]:
        """Return the names and the labels of the controls; the labels contain the current values."""
        question, reduction, small = self.question, self.reduction, self.small
        if question.verb == "reveal":
            return self._library_words(question)
        is_sum, adder, machine = question.verb == "sum", question.option("adder", _ROUNDED), question.option("machine")
        rows = [
            ("operation", f"{question.verb} ▾"),
            ("schedule", f"{_brief(str(question.option('schedule', 'serial')))} ▾"),
        ]
        rows += [("fma", f"fma {'on' if question.option('fma') else 'off'}")] * (not is_sum)
        rows += [("adder", f"{adder} ▾")] * (not small or adder != _ROUNDED)
        format = reduction.result.format if reduction is not None else next(iter(question.formats), None)
        rows.append(("format", f"in {short_name(format)} ▾" if format is not None else "format ▾"))
        for name, noun in (("accumulator", "sums"), ("products", "products")):
            part = question.option(name)
            if (name == "accumulator" or not is_sum) and (part is not None or not small):
                rows.append((name, f"{noun} {short_name(part) if part is not None else 'the same'} ▾"))
        rows += [("machine", f"{machine or 'no machine'} ▾")] * (not is_sum and bool(machine or not small))
        if self.product is not None:
            rows.append(("element", f"element {element_words(self.product, self.element)} ▾"))
        return (*rows, self.rules_word, ("reveal", "library …"))

    def _library_words(self, question: Question) -> tuple[tuple[str, str], ...]:
        target, shape = ("reveal", f"{' '.join(question.values)} ▾"), question.option("shape")
        back = "back", "back to the data"
        if shape is not None:
            layout = question.option("layout", next(iter(LAYOUTS)))
            return target, ("shape", f"{shape.replace('x', '×')} ▾"), ("layout", f"{layout} ▾"), back
        whole = (("shape", "whole products …"),) if self._has_shape else ()
        terms = "terms", f"{question.option('terms', 64)} terms ▾"
        return target, terms, *whole, ("take", "use this order on data"), back

    def picks(self) -> dict[str, Pick]:
        """Return the pick lists of operations, orders, additions, formats, models, libraries and their options."""
        question, base = self.question, self.base_question()
        asked, free = question.values * (question.verb == "reveal"), " Or any module:function" * (not confined())
        operations = {verb: verb_named(verb).summary for verb in OPERATIONS}
        orders = "Order, or any such as blocked(64, pairwise) or ((0 1) (2 3))"
        schedule, adder = str(base.option("schedule", "serial")), base.option("adder", _ROUNDED)
        machines = [Choice(_NONE, f"{_NONE:<16} additions as chosen on this screen")]
        machines += [
            Choice(name, f"{name:<16} {', '.join(row.hardware)}: {row.order}", row.hardware)
            for name, row in MACHINES.items()
        ]
        models, machine = "Published models of matrix units", base.option("machine", _NONE)
        library = dict.fromkeys(targets(base.verb), "")
        terms = [Choice(str(terms), f"{terms:,} terms", quantity=True) for terms in _TERMS]
        now = str(question.option("terms", 64))
        shape, layout = question.option("shape", _FIRST), question.option("layout", next(iter(LAYOUTS)))
        usual = [Choice(name, f"{name:<12} {text}", quantity=True) for name, text in _SHAPES.items()]
        shapes = "Orders of all elements; shape: rows x terms x columns"
        return super().picks() | {
            "schedule": Pick(orders, SCHEDULES, self.take_schedule, (schedule,), True, "Order"),
            "adder": Pick("Additions", _ADDERS, self.take_adder, (adder,), group="Additions"),
            "operation": Pick("Operation", operations, self.take_operation, (question.verb,), group="Operation"),
            "accumulator": self.format_pick(partial(self._take_part, "accumulator"), "the same as the result"),
            "products": self.format_pick(partial(self._take_part, "products"), "the same as the sums"),
            "machine": Pick(models, machines, self.take_machine, (machine,)),
            "reveal": Pick(f"How does a library add?{free}", library, self.take_target, asked, True),
            "terms": Pick("Number of terms", terms, self.take_terms, (now,), True),
            "shape": Pick(shapes, usual, self.take_shape, (shape,), True),
            "layout": Pick("How the operands lie in memory", LAYOUTS, self.take_layout, (layout,)),
        }

    # Operation, order, additions, formats.

    def take_operation(self, verb: str) -> None:
        """Change the operation, and keep the arrays."""
        question, arrays = self.base_question(), self.arrays()
        values = (*arrays, *arrays[-1:])[: 1 if verb == "sum" else 2]
        if verb == "sum":
            question = question.having(fma=None, products=None, machine=None)
        preset = question.option("preset") if verb == "dot" else None
        self.open(question.replace(verb=verb, values=() if preset else values).having(preset=preset))

    def take_schedule(self, text: str) -> None:
        """Set the order of additions.

        The view Side by side also has rows for kinds of addition, such as kahan. For such a row, set the kind of
        addition instead.
        """
        if text.strip().lower() in _ADDERS:
            self.take_adder(text.strip().lower())
            return
        self.change(schedule=None if text == "serial" and not self.base_question().option("machine") else text)

    def action_fma(self) -> None:
        """Toggle fused multiply-add. Also select rounded additions, and remove the hardware model."""
        question = self.base_question()
        self.open(question.having(adder=None, machine=None, fma=None if question.option("fma") else True))

    def take_adder(self, name: str) -> None:
        """Set the kind of addition. For compensated sums, drop FMA and the hardware model.

        Also drop the order, unless it is reversed, sorted or permuted: compensated sums can add in these orders.
        """
        if name == _ROUNDED:
            self.change(adder=None)
            return
        question = self.base_question().having(adder=name, fma=None, machine=None)
        serial = str(question.option("schedule", "")).partition("(")[0] in ("reversed", "sorted", "permuted")
        self.open(question if serial else question.having(schedule=None))

    def _take_part(self, name: str, text: str) -> None:
        base = self.base_question().having(machine=None)
        self.attempt(lambda: base.having(**{name: None if text == AUTOMATIC else parse_format(text)}))

    def take_machine(self, name: str) -> None:
        """Set the hardware model, which determines the order, the additions and the formats of sums and products."""
        fixed = dict.fromkeys(("schedule", "fma", "adder", "accumulator", "products", "scale_a", "scale_b"))
        self.change(**fixed, machine=None if name == _NONE else name)

    # Libraries.

    def take_target(self, name: str) -> None:
        """Ask in which order a library function adds.

        If a library is shown already, only the function changes. Otherwise the number of terms and the format are those
        of the data, if possible.
        """
        reduction, question = self.reduction, self.question
        if question.verb == "reveal":
            self.open(question.replace(values=(name,)))
            return
        terms = len(reduction) if reduction is not None and 1 < len(reduction) <= _TERMS[-1] else None
        dtype = DTYPES.get(reduction.x.format.name) if reduction is not None else None
        self.open(Question("reveal", (name,)).having(terms=terms, dtype=None if dtype == "float32" else dtype))

    def take_terms(self, text: str) -> None:
        """Set the number of terms."""
        if text.isdecimal() and len(text) < 10:
            self.open(self.question.having(terms=int(text)))
        else:
            self.complain(f"the number of terms must be a whole number, not {text}")

    def take_shape(self, text: str) -> None:
        """Ask for the orders of addition in a product of this shape or, if `text` is "first", in one element."""
        if text == _FIRST:
            self.open(self.question.having(shape=None, layout=None))
            return
        typed = "".join(text.lower().replace("×", "x").split())
        self.attempt(lambda: self.question.having(shape=read_shape(typed, "a shape"), terms=None))

    def take_layout(self, name: str) -> None:
        """Ask for the orders of addition in a product whose operands have this memory layout."""
        self.open(self.question.having(layout=None if name == next(iter(LAYOUTS)) else name))

    def action_take(self) -> None:
        """Return from the library to the data, with the order of addition that was found for the library."""
        if self.findings is not None:
            data = self.base_question() if self.data is not None else None
            question, hint = taken_over(self.findings, data, self.data_terms)
            if self.open(question) and hint:
                self.complain(hint, hint=True)

    def action_back(self) -> None:
        """Go back from the library to the data."""
        self.open(self.base_question())

    def possible(self) -> dict[str, bool]:
        """Return, for each action, whether it is available. Some actions exist only for some questions."""
        verb = self.question.verb
        return (
            super().possible()
            | dict.fromkeys(("take", "terms"), self.findings is not None)
            | {"back": verb == "reveal", "shape": self._has_shape, "layout": self.order_map is not None}
            | dict.fromkeys(("fma", "machine", "products"), verb in ("dot", "matmul"))
            | dict.fromkeys(("schedule", "adder", "accumulator", "format", "rules", "value"), verb != "reveal")
            | {"element": self.product is not None, "pin": self.reduction is not None}
        )

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for views, orders, additions, models and libraries."""
        yield from super().commands()
        if self.question.verb in ("dot", "matmul"):
            yield "FMA on or off", "fused multiply-add instead of two roundings", self.action_fma
            for name in (_NONE, *MACHINES):
                yield f"Machine: {name}", "a published model of a matrix unit", partial(self.take_machine, name)
        for name in targets():
            yield f"Library: {name}", "find the order in which it adds", partial(self.take_target, name)


def _brief(text: str) -> str:
    return text if len(text) <= 24 else f"{text[:23]}…"
