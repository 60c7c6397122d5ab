"""How numbers are added: the keys and the pickers for operation, order, formats, additions, machines and libraries."""

from __future__ import annotations

from functools import partial

from textual.binding import Binding

from floatlab.confinement import confined
from floatlab.errors import FloatlabError
from floatlab.formats import parse_format
from floatlab.formats.names import short_name
from floatlab.reduce.simulate.machines import MACHINES
from floatlab.reduce.timing.devices import DTYPES
from floatlab.tui.screens.task import Task
from floatlab.tui.widgets.pickers import Choice, Picker
from floatlab.verbs.orders.answer import SCHEDULES, taken_over, targets
from floatlab.verbs.question import Question
from floatlab.verbs.registry import verb_named
from floatlab.verbs.rules import RULES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from floatlab.formats import Format
    from floatlab.reduce import Reduction
    from floatlab.reduce.reveal.revelation import Findings

OPERATIONS = ("sum", "dot", "matmul")
_AUTOMATIC, _NONE = "automatic", "none"
_ROUNDED = "rounded"
_ADDERS = {
    _ROUNDED: "each addition is rounded",
    "kahan": "what an addition missed is taken from the next term",
    "neumaier": "what additions missed is added up, and added in the end",
    "klein": "the same for what those additions missed",
    "double": "the sum is kept in two numbers",
}
# What asks something else than a simulated sum.
_OTHERWISE = ("observed", "difference", "ways", "backends", "runs")
_TERMS = (8, 16, 32, 64, 100, 128, 256, 1024, 4096)


class Ways(Task, inherit_bindings=False):
    """A screen whose question says how numbers are added."""

    OWN = [
        Binding("s", "schedule", "Order", id="way.schedule", tooltip="Order of the additions"),
        Binding("m", "fma", "FMA", id="way.fma", tooltip="Fused multiply-add on or off"),
        Binding("w", "reveal", "Library", id="way.reveal", tooltip="In which order does a library add?"),
        Binding("g", "take", "Take over", id="way.take", tooltip="Add your data in the order that was found"),
        Binding(
            "o", "operation", "Operation", id="way.operation", show=False, tooltip="Sum, dot product or matrix product"
        ),
        Binding(
            "i",
            "part('accumulator')",
            "Format of sums",
            id="way.accumulator",
            show=False,
            tooltip="Format of partial sums",
        ),
        Binding("p", "part('products')", "Format of products", id="way.products", show=False),
        Binding("d", "adder", "Additions", id="way.adder", show=False, tooltip="Additions rounded, or compensated"),
        Binding("x", "machine", "Machine", id="way.machine", show=False, tooltip="A model of a matrix unit"),
    ]

    @property
    def reduction(self) -> Reduction | None:
        """The sum that is shown."""
        raise NotImplementedError

    @property
    def revealed(self) -> Findings | None:
        """What was found out about a library, where that is shown."""
        raise NotImplementedError

    @property
    def data(self) -> Question | None:
        """The last question about data."""
        raise NotImplementedError

    def asked(self) -> Question:
        """Return the question about data without what asks something else than a simulated sum."""
        question = self.question
        if question.verb == "reveal":
            question = self.data or self.app.read_question(["sum", "1,2,3"])
        return question.having(**dict.fromkeys(_OTHERWISE))

    def change(self, **options: Any) -> bool:
        """Ask with other options."""
        return self.open(self.asked().having(**options))

    def with_format(self, question: Question, format: Format) -> Question:
        """Round the result into this format."""
        return self.asked().replace(formats=(format,))

    def set_rule(self, name: str | None) -> None:
        """Take a rule of RULES by its name."""
        rule = next((each for each in RULES if each.name == name), None)
        if rule is not None:
            question = self.asked()
            self.open(question.replace(context=rule.apply(question.context)))

    # The line of controls.

    def controls(self) -> tuple[tuple[str, str], ...]:
        """Return what a click can change, as it is."""
        question, found = self.question, self.reduction
        if question.verb == "reveal":
            options = dict(question.options)
            named = ("reveal", f"{' '.join(question.values)} ▾"), ("terms", f"{options.get('terms', 64)} terms ▾")
            return (*named, ("take", "use this order on data"), ("back", "back to the data"))
        rows = [("operation", f"{question.verb} ▾"), ("schedule", f"{_brief(question.option('schedule', 'serial'))} ▾")]
        if question.verb != "sum":
            rows.append(("fma", f"fma {'on' if question.option('fma') else 'off'}"))
        adder, small = question.option("adder", _ROUNDED), self.small
        rows += [("adder", f"{adder} ▾")] * (not small or adder != _ROUNDED)
        into = found.result.format if found is not None else next(iter(question.formats), None)
        rows.append(("format", f"in {short_name(into)} ▾" if into is not None else "format ▾"))
        for name, words in (("accumulator", "sums"), ("products", "products")):
            own = question.option(name)
            if (name == "accumulator" or question.verb != "sum") and (own is not None or not small):
                rows.append((name, f"{words} {short_name(own) if own is not None else 'the same'} ▾"))
        machine = question.option("machine")
        if question.verb != "sum" and (machine or not small):
            rows.append(("machine", f"{machine or 'no machine'} ▾"))
        rows += [("element", f"element {self.element_words} ▾")] * (question.verb == "matmul" and found is not None)
        return (*rows, ("reveal", "ask a library …"))

    @property
    def element_words(self) -> str:
        """Name the element of a product that is shown."""
        return ""

    async def control(self, name: str) -> None:
        """Do what a click on a word of the controls asks for."""
        action = {"accumulator": "part('accumulator')", "products": "part('products')"}.get(name, name)
        await self.run_action(action)

    # Order, additions, formats.

    def action_schedule(self) -> None:
        """Pick an order."""
        rows = [Choice(name, f"{name:<14} {words}") for name, words in SCHEDULES.items()]
        current = str(self.asked().option("schedule", "serial"))
        title = "Order, or any such as blocked(64, pairwise) or ((0 1) (2 3))"
        self.app.push_screen(Picker(title, rows, (current,), free=True), self.take_schedule)

    def take_schedule(self, text: str | None) -> None:
        """Take an order."""
        if text is not None:
            self.change(schedule=None if text == "serial" and not self.asked().option("machine") else text)

    def action_fma(self) -> None:
        """Fuse multiplications and additions, or do not."""
        question = self.asked()
        options: dict[str, Any] = {"fma": None if question.option("fma") else True}
        if question.option("machine"):
            options |= {"machine": None}
        self.open(question.having(adder=None, **options))

    def action_adder(self) -> None:
        """Pick what an addition is."""
        rows = [Choice(name, f"{name:<10} {words}") for name, words in _ADDERS.items()]
        current = self.asked().option("adder", _ROUNDED)
        self.app.push_screen(Picker("Additions", rows, (current,)), self.take_adder)

    def take_adder(self, name: str | None) -> None:
        """Take a rule of addition; compensated sums go from term to term, and fuse nothing."""
        if name == _ROUNDED:
            self.change(adder=None)
        elif name is not None:
            serial = str(self.asked().option("schedule", "")).partition("(")[0] in ("reversed", "sorted", "permuted")
            kept = {} if serial else {"schedule": None}
            self.change(adder=name, fma=None, machine=None, **kept)

    def action_part(self, name: str) -> None:
        """Pick the format of sums or of products."""
        same = "the same as the result" if name == "accumulator" else "the same as the sums"
        rows = [Choice(_AUTOMATIC, f"{_AUTOMATIC:<12} {same}")]
        self.app.push_screen(self.format_picker(tuple(rows)), partial(self._take_part, name))

    def _take_part(self, name: str, text: str | None) -> None:
        if text is None:
            return
        try:
            format = None if text == _AUTOMATIC else parse_format(text)
        except FloatlabError as error:
            self.complain(str(error))
        else:
            self.change(**{name: format, "machine": None})

    def action_operation(self) -> None:
        """Pick the operation."""
        rows = [Choice(verb, f"{verb:<7} {verb_named(verb).summary}") for verb in OPERATIONS]
        self.app.push_screen(Picker("Operation", rows, (self.question.verb,)), self.take_operation)

    def take_operation(self, verb: str | None) -> None:
        """Do another operation on the arrays that there are."""
        if verb is None:
            return
        question = self.asked()
        values = self.arrays()
        wanted = 1 if verb == "sum" else 2
        values = (*values, *values[-1:])[:wanted]
        options: dict[str, Any] = {}
        if verb == "sum":
            options = {"fma": None, "products": None, "machine": None}
        kept = question.option("preset") if verb == "dot" else None
        self.open(question.replace(verb=verb, values=() if kept else values).having(preset=kept, **options))

    def arrays(self) -> tuple[str, ...]:
        """Return the words for the arrays, as they stand in the boxes."""
        raise NotImplementedError

    def action_machine(self) -> None:
        """Pick a model of a matrix unit."""
        rows = [Choice(_NONE, f"{_NONE:<16} additions as they are asked for")]
        rows += [
            Choice(name, f"{name:<16} {', '.join(row.hardware)}: {row.order}", row.hardware)
            for name, row in MACHINES.items()
        ]
        current = self.asked().option("machine", _NONE)
        self.app.push_screen(Picker("Published models of matrix units", rows, (current,)), self.take_machine)

    def take_machine(self, name: str | None) -> None:
        """Take a machine, which fixes everything else."""
        if name is not None:
            fixed = dict.fromkeys(("schedule", "fma", "adder", "accumulator", "products"))
            self.change(**fixed, machine=None if name == _NONE else name)

    # Libraries.

    def action_reveal(self) -> None:
        """Pick a function of a library, to find out in which order it adds."""
        rows = [Choice(name, name) for name in targets(self.asked().verb)]
        current = self.question.values if self.question.verb == "reveal" else ()
        title = "How does a library add?" + " Or any module:function" * (not confined())
        self.app.push_screen(Picker(title, rows, current, free=True), self.take_target)

    def take_target(self, name: str | None) -> None:
        """Ask a function for so many terms as the data have, of their format."""
        if name is None:
            return
        found, question = self.reduction, self.question
        if question.verb == "reveal":
            self.open(question.replace(values=(name,)))
            return
        terms = len(found) if found is not None and 1 < len(found) <= _TERMS[-1] else None
        dtype = DTYPES.get(found.x.format.name) if found is not None else None
        dtype = None if dtype == "float32" else dtype
        self.open(Question("reveal", (name,)).having(terms=terms, dtype=dtype))

    def action_terms(self) -> None:
        """Pick for how many terms a library is asked."""
        rows = [Choice(str(each), f"{each:,} terms") for each in _TERMS]
        current = str(self.question.option("terms", 64))
        self.app.push_screen(Picker("Terms, or any number of them", rows, (current,), free=True), self.take_terms)

    def take_terms(self, text: str | None) -> None:
        """Take a number of terms."""
        if text is None:
            return
        if text.isdecimal() and len(text) < 10:
            self.open(self.question.having(terms=int(text)))
        else:
            self.complain(f"the number of terms is a whole number, not {text}")

    def action_take(self) -> None:
        """Add the data in the order that was revealed."""
        found, data = self.revealed, self.data
        if found is None:
            return
        question, words = taken_over(found, None if data is None else self.asked(), self.data_terms)
        if self.open(question) and words:
            self.complain(words, hint=True)

    @property
    def data_terms(self) -> int:
        """How many terms the data have."""
        return 0

    def action_back(self) -> None:
        """Go back to the data."""
        self.open(self.asked())

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what does not belong to this question."""
        verb = self.question.verb
        if action in ("take", "terms", "back"):
            return verb == "reveal" and self.revealed is not None
        if action in ("fma", "machine") or (action == "part" and parameters == ("products",)):
            return verb in ("dot", "matmul")
        if action in ("schedule", "adder", "part", "format", "rules", "value"):
            return verb != "reveal"
        return super().check_action(action, parameters)

    def commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Offer orders, additions, machines and libraries."""
        for name, words in SCHEDULES.items():
            yield f"Order: {name}", words, partial(self.take_schedule, name)
        for name in _ADDERS:
            yield f"Additions: {name}", _ADDERS[name], partial(self.take_adder, name)
        for verb in OPERATIONS:
            yield f"Operation: {verb}", verb_named(verb).summary, partial(self.take_operation, verb)
        if self.question.verb in ("dot", "matmul"):
            yield "FMA on or off", "fuse products onto sums", self.action_fma
            for name in (_NONE, *MACHINES):
                yield f"Machine: {name}", "a published model of a matrix unit", partial(self.take_machine, name)
        for name in targets():
            yield f"Library: {name}", "find out in which order it adds", partial(self.take_target, name)


def _brief(text: Any) -> str:
    words = str(text)
    return words if len(words) <= 24 else f"{words[:23]}…"
