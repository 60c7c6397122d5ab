"""The screen Block: values scaled and rounded by a recipe, step by step, and the recipe itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, HorizontalGroup, Vertical
from textual.widget import Widget
from textual.widgets import Input

from floatlab.formats.recipes import Recipe, parse_recipe, parse_rule
from floatlab.page.model import Page, Table
from floatlab.record import Record
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.panes import Column, Topic, TopicPane, pane
from floatlab.tui.screens.pick_lists import AUTOMATIC
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.widgets import ButtonBar, Cells, Choice, ChoiceBar, ColumnTable, PageView, Pick
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.tui.widgets.boxes import fill, mark_valid
from floatlab.tui.widgets.saving import Copies
from floatlab.verbs.block.choices import (
    PlacedElement,
    ShownBlocks,
    in_parts,
    recipe_choices,
    rule_choices,
    typed_values,
)
from floatlab.verbs.question import Answer, Question
from floatlab.verbs.registry import answer_question

_EXAMPLES = "0.1 -2.5 3 7.3  1/3  0.1@bf16  inf  nan"
_RECIPES = "nvfp4  mxfp4:up  e4m3/128x128  block(e2m1, ue5m3, 16)"
_NAME = 27  # width of the column of recipe names in the list; few names are longer


class PreparedBlocks(Record):
    """The drawn parts of an answer: the blocks, their page, the elements as a table, and the page of the recipe."""

    shown: ShownBlocks
    page: Page
    table: Table
    about: Page


class BlockTable(ColumnTable):
    """The elements of all blocks."""

    PLACE = "On the table of elements"  # the heading in the list of keys
    HELP = (
        "The elements; the page beside or below has the steps of the element under the cursor. Enter or a double click "
        "opens its rounding in Inspect: the value divided by the scales, in the format of the elements. Left and right "
        "show other columns."
    )


class BlockScreen(TaskScreen, inherit_bindings=False):
    """The screen for blocks.

    Its questions are those of `block`. The recipe includes the scale rule, so the questions have no option --scale.
    """

    VIEWS = (("steps", "Steps"), ("elements", "Elements"), ("recipe", "Recipe"))
    TOPIC_PANES = ("beside", "below")
    WALKS = True
    HELP = (
        "Type values with spaces between them, rows with ; between them, or a file; VALUE@FORMAT is first rounded to "
        "that format. Many values are shown block by block: n and p go to the next and the previous one. f picks a "
        "recipe. Any other can be typed into its box: a block format, or a format with the shape of its blocks "
        "(e4m3/128x128), then :RULE. s picks the rule that derives the scales."
    )
    BINDINGS = [
        Binding("s", "pick('scale')", "Rule", id="block.scale", tooltip="Rule that derives the scales"),
        Binding("w", "recipe", "Recipe", id="block.recipe", tooltip="Type a recipe", show=False),
        Binding("n", "part(1)", "Next", id="block.next", tooltip="The next block of an array"),
        Binding("p", "part(-1)", "Previous", id="block.before", tooltip="The previous block of an array"),
        Binding("g", "pick('at')", "Go to an element", id="block.at", show=False),
        Binding("o", "file", "Open a file", id="block.file", show=False),
        Binding("x", "pick('tensor_scale')", "Scale of the tensor", id="block.tensor", show=False),
        Binding("f", "pick('format')", "Recipe", id="format"),
        *(key for key in SHARED_KEYS if getattr(key, "id", "") != "format"),
    ]
    DEFAULT_CSS = """
    BlockScreen {
        #near .entry { width: 32; }
        #near .entry ChoiceBar { width: auto; padding: 0; }
        #controls { width: 1fr; }
        &.-narrow #near { layout: vertical; }
        &.-narrow #near .entry { width: 1fr; }
        &.-wide #first { layout: horizontal; }
        #element { border-top: hkey $panel; }
        &.-wide #element { border-top: none; border-left: vkey $panel; }
        &.-framed #first { layout: vertical; }
        #elements { height: auto; max-height: 55%; }
        &.-two-topics #body { layout: horizontal; }
        &.-two-topics #first { width: 3fr; }
        &.-two-topics #beside { width: 2fr; }
        &.-two-topics.-elements #element { height: auto; max-height: 40%; }
        &.-topic-below {
            #first { height: auto; max-height: 70%; }
            #details, #element { height: auto; max-height: 100%; }
        }
    }
    """

    values, recipe_box = getters.query_one("#values", ArrayBox), getters.query_one("#recipe", Input)
    elements = getters.query_one(BlockTable)
    prepared: PreparedBlocks | None

    def compose_task(self) -> ComposeResult:
        """Compose the boxes and the views."""
        yield ArrayBox("values", "values", self._values_changed, examples=_EXAMPLES)
        with HorizontalGroup(id="near"):
            with Horizontal(classes="entry"):
                yield ButtonBar(self.control, (("format", "to ▾"),))
                yield Input(id="recipe", compact=True, placeholder=_RECIPES)
            yield ButtonBar(self.control, id="controls")
        yield ChoiceBar(self.choose_view, self.VIEWS, self.view, id="views")
        with Vertical(id="body"):
            with Column(id="first"):
                yield pane(PageView(id="details"), "Block")
                yield pane(BlockTable(id="elements"), "Elements")
                yield pane(PageView(id="element"), "Element")
                yield pane(TopicPane(id="below"))
            yield pane(TopicPane(id="beside"))

    @property
    def recipe(self) -> Recipe | None:
        """The recipe that is shown; None as long as there is no answer."""
        return self.prepared.shown.recipe if self.prepared is not None else None

    @property
    def element(self) -> PlacedElement | None:
        """The element under the cursor, if the elements are shown."""
        if self.view != "elements" or self.prepared is None:
            return None
        return self.prepared.shown.element(self.elements.cursor)

    # The question.

    def normal(self, question: Question) -> Question:
        """Return the question with the rule of --scale as part of the recipe. For a large array, select one part."""
        question, rule = in_parts(question), question.option("scale")
        if rule is None:
            return question
        return question.having(scale=None, to=parse_recipe(question.option("to")).with_rule(rule).name)

    def prepare(self, question: Question, answers: list[Answer]) -> PreparedBlocks:
        """Make the page, the table of elements, and the page of the recipe."""
        shown = ShownBlocks(answers[0].found)
        about = answer_question(Question("formats", (shown.recipe.name,)))[0].page()
        return PreparedBlocks(shown, answers[0].page(), shown.table(), about)

    def draw(self, before: Question) -> None:
        """Show the question in the boxes, and the view of the answer."""
        question = self.question
        if typed_values(self.values.word) != question.values:
            fill(self.values.input, " ".join(question.values))
        fill(self.recipe_box, question.option("to"))
        self.controls.options = self._control_words()
        if self.prepared is not None:
            self.elements.show(self.prepared.table)
        self.draw_view()

    def _control_words(self) -> tuple[tuple[str, str], ...]:
        recipe, given = self.recipe, self.question.option("tensor_scale")
        if recipe is None:
            return ()
        words = [("scale", f"rule {recipe.rule.name} ▾")]
        if _has_tensor_scale(recipe):
            words.append(("tensor_scale", f"tensor {given or 'from amax'} ▾"))
        if self.prepared is not None and (at := self.prepared.shown.at):
            words.append(("at", f"at {at} ▾"))
        return (*words, self.rules_word)

    def _values_changed(self, box: ArrayBox, picked: bool) -> None:
        question = self.question.replace(values=(box.word,) if picked else typed_values(box.word)).having(at=None)
        valid = self.open(question, "" if picked else "values")
        self.mark_taken(box.input, valid, picked)

    @on(Input.Changed, "#recipe")
    def _recipe_typed(self, event: Input.Changed) -> None:
        mark_valid(event.input, self._take_recipe(event.input.value.strip(), "recipe"))

    def _take_recipe(self, name: str, kind: str = "") -> bool:
        """Open the question with this recipe; drop the tensor scale if the recipe does not use one."""

        def question() -> Question:
            keeps = _has_tensor_scale(parse_recipe(name))
            return self.question.having(to=name, **({} if keeps else {"tensor_scale": None}))

        return self.attempt(question, kind)

    def take_format(self, name: str) -> None:
        """Open the question with the recipe of this name."""
        self._take_recipe(name)

    def _take_rule(self, name: str) -> None:
        """Open the question with this rule for the block format of the recipe."""
        fmt = parse_recipe(self.question.option("to")).format
        self.attempt(lambda: self.question.having(to=Recipe(fmt, parse_rule(name, fmt)).name))

    def _take_at(self, text: str) -> None:
        self.change(at=text)

    def _take_tensor_scale(self, text: str) -> None:
        self.change(tensor_scale=None if text == AUTOMATIC else text)

    def action_part(self, by: int) -> None:
        """Show the next or the previous part of an array."""
        if self.prepared is not None and (at := self.prepared.shown.neighbour(by)):
            self.change(at=at)

    def action_recipe(self) -> None:
        """Go to the box of the recipe."""
        self.recipe_box.focus()

    def action_file(self) -> None:
        """Open a window in which the user picks a file with an array."""
        self.values.action_pick()

    # The views.

    def draw_view(self) -> None:
        """Show the current view, and hide the others."""
        prepared = self.prepared
        self.set_class(self.view == "elements", "-elements")
        if self.view == "elements" and prepared is not None:
            self.show_only("elements", "element")
        else:
            self.show_only("details")
            if prepared is not None:
                self.details.page = prepared.about if self.view == "recipe" else prepared.page
        self._draw_element()

    def topics(self) -> list[Topic]:
        """Return the recipe and the steps as topics, except for the one that the current view shows already."""
        if (prepared := self.prepared) is None:
            return []
        steps, about = ("Steps", prepared.page), ("Recipe", prepared.about)
        return {"recipe": [steps], "elements": [about, steps]}.get(self.view, [about])

    def page(self) -> Page:
        """Return the page of the blocks, or of the recipe."""
        return self.details.page if self.view == "recipe" else super().page()

    @on(Cells.Moved, "#elements")
    def _draw_element(self) -> None:
        if (found := self.element) is not None:
            self.show_page("element", found.page())
        self.refresh_bindings()

    @on(Cells.Chosen, "#elements")
    def _element_chosen(self) -> None:
        if (found := self.element) is None:
            return
        if (question := found.rounding) is not None:
            self.app.go("inspect", question)
        else:
            self.complain(found.why_no_rounding(), hint=True)

    # Methods that the base classes call.

    def picks(self) -> dict[str, Pick]:
        """Return the pick lists of recipes, rules and tensor scales."""
        question, recipe = self.question, self.recipe
        named = recipe_choices()
        rows = [Choice(name, f"{name:<{_NAME}}  {text}", (name.partition(":")[2],)) for name, text in named.items()]
        title = "Recipe, or any such as e4m3/1x64 or block(e2m1, ue5m3, 16)"
        current = tuple(name for name in named if parse_recipe(name) == recipe)
        scales = {AUTOMATIC: "from the largest magnitude", "1": "only the blocks have scales"}
        found = super().picks() | {
            "format": Pick(title, rows, self.take_format, current, True),
            "tensor_scale": Pick(
                "Scale of the tensor, or any number", scales, self._take_tensor_scale,
                (question.option("tensor_scale", AUTOMATIC),), True,
            ),
        }  # fmt: skip
        at = self.question.option("at", "0")
        found["at"] = Pick("Index of an element, such as 3,17", {"0": "the first element"}, self._take_at, (at,), True)
        if recipe is not None:
            rules = rule_choices(recipe.format)
            found["scale"] = Pick("Rule for the scales", rules, self._take_rule, (recipe.rule.name,), group="Rule")
        return found

    def possible(self) -> dict[str, bool]:
        """Return, for each action, whether it is available. Some actions need an element, a recipe or a large array."""
        has_code = self.is_mounted and bool(self.code_to_pin("A"))
        recipe = self.recipe
        has_tensor_scale = recipe is not None and _has_tensor_scale(recipe)
        in_parts = self.prepared is not None and bool(self.prepared.shown.at)
        rows = {"pin": has_code, "scale": recipe is not None, "tensor_scale": has_tensor_scale}
        return super().possible() | rows | dict.fromkeys(("part", "at"), in_parts)

    def code_to_pin(self, name: str) -> str:
        """Return the code of the element under the cursor; empty without an element, or if its format has no name."""
        found = self.element
        return "" if found is None else found.code

    def printed(self) -> Question:
        """Return the question whose command prints the page that is shown."""
        shown = self.recipe if self.view == "recipe" else None
        return self.question if shown is None else Question("formats", (shown.name,))

    def copies(self) -> Copies:
        """Return the texts that can be copied from the current view."""
        copies = super().copies()
        copies["value"] = ("the decoded values", copies["value"][1])
        copies["code"] = ("the codes of scales and elements", copies["code"][1])
        return copies

    def boxes(self) -> Iterator[Widget]:
        """Yield the box of values, then the box of the recipe."""
        yield from (self.values.input, self.recipe_box)

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for views, rules and recipes."""
        yield from super().commands()
        for name, text in recipe_choices().items():
            yield f"Recipe: {name}", text, partial(self.take_format, name)


def _has_tensor_scale(recipe: Recipe) -> bool:
    """Return whether the user may set the tensor scale of a recipe."""
    return recipe.format.tensor is not None and recipe.format.superblock is None
