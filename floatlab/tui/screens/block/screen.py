"""The screen Block: values scaled and rounded by a recipe, step by step, and the recipe itself."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, HorizontalGroup, Vertical
from textual.widget import Widget
from textual.widgets import Input, Label, Static

from floatlab.formats.recipes import Recipe, parse_recipe, parse_rule
from floatlab.page.model import Page, Table
from floatlab.record import Record
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.task import AUTOMATIC, Command, Copies, TaskScreen
from floatlab.tui.widgets import Cells, Choice, ChoiceBar, ColumnTable, PageView, Pick
from floatlab.tui.widgets.boxes import fill, mark_valid
from floatlab.verbs.block.choices import PlacedElement, element_at, recipe_choices, rule_choices
from floatlab.verbs.block.page import elements_table
from floatlab.verbs.question import Answer, Question
from floatlab.verbs.registry import answer_question

_EXAMPLES = "0.1 -2.5 3 7.3  1/3  0.1@bf16  inf  nan"
_RECIPES = "nvfp4  mxfp4:up  e4m3/128x128  block(e2m1, ue5m3, 16)"
_NAME = 27  # columns for the name of a recipe in the list, so that most of the next column is aligned


class PreparedBlocks(Record):
    """The parts of an answer to draw: the recipe, the page, the elements as a table, and the page of the recipe."""

    recipe: Recipe
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
    """The screen for blocks. Its question is that of `block`, with the rule of --scale as a part of the recipe."""

    VIEWS = (("steps", "Steps"), ("elements", "Elements"), ("recipe", "Recipe"))
    WALKS = True
    HELP = (
        "Type values with spaces between them; VALUE@FORMAT is first rounded to that format. f picks a recipe, and its "
        "box takes any other: a block format, or a format with the shape of its blocks (e4m3/128x128), then :RULE. s "
        "picks the rule that derives the scales."
    )
    BINDINGS = [
        Binding("s", "pick('scale')", "Rule", id="block.scale", tooltip="Rule that derives the scales"),
        Binding("w", "recipe", "Recipe", id="block.recipe", tooltip="Type a recipe", show=False),
        Binding("x", "pick('tensor_scale')", "Scale of the tensor", id="block.tensor", show=False),
        Binding("f", "pick('format')", "Recipe", id="format"),
        *(key for key in SHARED_KEYS if getattr(key, "id", "") != "format"),
    ]
    DEFAULT_CSS = """
    BlockScreen {
        #near .entry { width: 36; }
        #near .entry ChoiceBar { width: auto; padding: 0; }
        #controls { width: 1fr; }
        &.-narrow #near { layout: vertical; }
        &.-narrow #near .entry { width: 1fr; }
        &.-wide #body { layout: horizontal; }
        #element { border-top: hkey $panel; }
        &.-wide #element { border-top: none; border-left: vkey $panel; }
    }
    """

    values, recipe_box = getters.query_one("#values", Input), getters.query_one("#recipe", Input)
    elements = getters.query_one(BlockTable)
    prepared: PreparedBlocks | None

    def compose_task(self) -> ComposeResult:
        """Compose the boxes and the views."""
        yield Horizontal(Label("values"), Input(id="values", compact=True, placeholder=_EXAMPLES), classes="entry")
        with HorizontalGroup(id="near"):
            with Horizontal(classes="entry"):
                yield ChoiceBar(self.control, (("format", "to ▾"),))
                yield Input(id="recipe", compact=True, placeholder=_RECIPES)
            yield ChoiceBar(self.control, id="controls")
        yield Static(id="complaint", markup=False)
        yield ChoiceBar(self.choose_view, self.VIEWS, self.view, id="views")
        with Vertical(id="body"):
            yield PageView(id="details")
            yield BlockTable(id="elements")
            yield PageView(id="element")

    @property
    def recipe(self) -> Recipe | None:
        """The recipe that is shown; None as long as there is no answer."""
        return self.prepared.recipe if self.prepared is not None else None

    @property
    def element(self) -> PlacedElement | None:
        """The element under the cursor, if the elements are shown."""
        shown = self.view == "elements" and self.prepared is not None
        return element_at(self.answers[0].found, self.elements.cursor) if shown else None

    # The question.

    def normal(self, question: Question) -> Question:
        """Return the question with the rule of --scale as a part of the recipe."""
        rule = question.option("scale")
        if rule is None:
            return question
        return question.having(scale=None, to=parse_recipe(question.option("to")).with_rule(rule).name)

    def prepare(self, question: Question, answers: list[Answer]) -> PreparedBlocks:
        """Make the page, the table of elements, and the page of the recipe."""
        blocks = answers[0].found
        recipe: Recipe = blocks[0].recipe
        about = answer_question(Question("formats", (recipe.name,)))[0].page()
        return PreparedBlocks(recipe, answers[0].page(), elements_table(blocks), about)

    def draw(self, before: Question) -> None:
        """Show the question in the boxes, and the view of the answer."""
        question = self.question
        if _words(self.values.value) != question.values:
            fill(self.values, " ".join(question.values))
        fill(self.recipe_box, question.option("to"))
        for box in (self.values, self.recipe_box):
            mark_valid(box, True)
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
        return tuple(words)

    @on(Input.Changed, "#values")
    def _values_typed(self, event: Input.Changed) -> None:
        mark_valid(event.input, self.open(self.question.replace(values=_words(event.input.value)), "values"))

    @on(Input.Changed, "#recipe")
    def _recipe_typed(self, event: Input.Changed) -> None:
        mark_valid(event.input, self._take_recipe(event.input.value.strip(), "recipe"))

    def _take_recipe(self, name: str, kind: str = "") -> bool:
        """Open the question with this recipe; a given tensor scale is dropped if the recipe has none."""

        def question() -> Question:
            keeps = _has_tensor_scale(parse_recipe(name))
            return self.question.having(to=name, **({} if keeps else {"tensor_scale": None}))

        return self.attempt(question, kind)

    def take_format(self, name: str) -> None:
        """Open the question with this recipe, or with a format without scales."""
        self._take_recipe(name)

    def _take_rule(self, name: str) -> None:
        """Open the question with this rule for the block format of the recipe."""
        fmt = parse_recipe(self.question.option("to")).format
        self.attempt(lambda: self.question.having(to=Recipe(fmt, parse_rule(name, fmt)).name))

    def _take_tensor_scale(self, text: str) -> None:
        self.change(tensor_scale=None if text == AUTOMATIC else text)

    def action_recipe(self) -> None:
        """Go to the box of the recipe."""
        self.recipe_box.focus()

    # The views.

    def draw_view(self) -> None:
        """Show the current view, and hide the others."""
        prepared = self.prepared
        if self.view == "elements" and prepared is not None:
            self.show_only("elements", "element")
        else:
            self.show_only("details")
            if prepared is not None:
                self.details.page = prepared.about if self.view == "recipe" else prepared.page
        self._draw_element()

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

    # Methods for the frame.

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
        if recipe is not None:
            rules = rule_choices(recipe.format)
            found["scale"] = Pick("Rule for the scales", rules, self._take_rule, (recipe.rule.name,), group="Rule")
        return found

    def possible(self) -> dict[str, bool]:
        """Return the available actions, including those on an element if elements are shown."""
        has_code = self.is_mounted and bool(self.code_to_pin("A"))
        recipe = self.recipe
        has_tensor_scale = recipe is not None and _has_tensor_scale(recipe)
        rows = {"pin": has_code, "scale": recipe is not None, "tensor_scale": has_tensor_scale}
        return super().possible() | rows

    def code_to_pin(self, name: str) -> str:
        """Return the code of the element under the cursor; an empty text if it is not that of a float."""
        found = self.element
        return "" if found is None else found.code

    def printed(self) -> Question:
        """Return the question of the page."""
        shown = self.recipe if self.view == "recipe" else None
        return self.question if shown is None else Question("formats", (shown.name,))

    def copies(self) -> Copies:
        """Return the texts that can be copied from the current view."""
        copies = super().copies()
        copies["value"] = ("the decoded values", copies["value"][1])
        copies["code"] = ("the codes of scales and elements", copies["code"][1])
        return copies

    def boxes(self) -> Iterator[Widget]:
        """Return the box of values, then that of the recipe."""
        yield from (self.values, self.recipe_box)

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for views, rules and recipes."""
        yield from super().commands()
        for name, text in recipe_choices().items():
            yield f"Recipe: {name}", text, partial(self.take_format, name)


def _has_tensor_scale(recipe: Recipe) -> bool:
    """Return whether the caller may give the scale of the tensor."""
    return recipe.format.tensor is not None and recipe.format.superblock is None


def _words(text: str) -> tuple[str, ...]:
    """Return the values that are typed with spaces or commas between them."""
    return tuple(text.replace(",", " ").split())
