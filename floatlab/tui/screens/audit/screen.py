"""The screen Audit: what recipes would do to the tensors of a checkpoint, and whether quantised weights are right."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from textual import getters, on
from textual.app import ComposeResult
from textual.binding import Binding
from textual.containers import Horizontal, HorizontalGroup, Vertical
from textual.widget import Widget
from textual.widgets import Input, Label

from floatlab.auditing.survival.figures import RecipeAudit, TensorFigures
from floatlab.auditing.survival.plans import plan_text
from floatlab.errors import FloatlabError
from floatlab.formats.recipes import parse_recipes
from floatlab.page.model import Page
from floatlab.page.words import counted
from floatlab.sandbox import exists
from floatlab.tui.screens.audit.tensor_table import TensorTable
from floatlab.tui.screens.keys import SHARED_KEYS
from floatlab.tui.screens.panes import Column, Topic, TopicPane, pane
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.widgets import ButtonBar, Cells, Choice, ChoiceBar, MarkingPicker, PageView, Pick, note_page
from floatlab.tui.widgets.array_box import ArrayBox
from floatlab.tui.widgets.boxes import fill, is_wrong, mark_valid
from floatlab.tui.widgets.saving import Copies
from floatlab.verbs.audit.tensor_columns import TensorColumn, arranged, tensor_columns, tensors_table
from floatlab.verbs.audit.tensor_page import plan_page, rounding_question, tensor_page
from floatlab.verbs.block.choices import recipe_choices
from floatlab.verbs.question import Question
from floatlab.verbs.registry import verb_named

_FILES = "model.safetensors  a folder  random:normal:64x256:seed=1@bf16"
_RECIPES = "such as e4m3,mxfp4,nvfp4"
_NAME = 27  # width of the column of recipe names in the list; few names are longer
_LISTED = "most damaged first"  # the order in which the audit lists the tensors


class AuditScreen(TaskScreen, inherit_bindings=False):
    """The screen for audits."""

    VIEWS = (("overview", "Overview"), ("tensors", "Tensors"), ("plan", "Plan"))
    PARTS = "#body > *, #lower > *, #bar"
    WALKS = True
    ROUNDS = False
    HELP = (
        "Type a checkpoint (a file, a folder, or random:normal:64x256@bf16) and the recipes to try, with commas "
        "between them; f marks recipes in a list. Without recipes, quantised weights are checked; e goes to the "
        "box for the original. In the view Tensors, g shows only names with the words that you type, and s sorts by a "
        "column; the same column again reverses the order."
    )
    BINDINGS = [
        Binding("o", "file('file')", "Open", id="audit.file", tooltip="Pick a checkpoint"),
        Binding("f", "pick('format')", "Recipes", id="format"),
        Binding("w", "recipe", "Type recipes", id="audit.recipe", show=False),
        Binding("e", "against", "Against the original", id="audit.against", show=False),
        Binding("s", "pick('sort')", "Sort", id="audit.sort", tooltip="Sort by a column"),
        Binding("g", "find", "Find", id="audit.find", tooltip="Type a part of the names of tensors"),
        *(key for key in SHARED_KEYS if getattr(key, "id", "") != "format"),
    ]
    DEFAULT_CSS = """
    AuditScreen {
        #bar { height: 1; }
        #bar .entry { width: 36; }
        #controls { width: 1fr; }
        #near .entry { width: 1fr; }
        #near .entry ChoiceBar { width: auto; padding: 0; }
        &.-narrow #bar .entry { width: 20; }
        &.-narrow #near { layout: vertical; }
        #tensor { border-top: hkey $panel; }
        #tensors { height: auto; max-height: 55%; }
        &.-two-topics #lower { layout: horizontal; }
        &.-two-topics { #details, #tensor, #beside { width: 1fr; } }
    }
    """

    file, against = getters.query_one("#file", ArrayBox), getters.query_one("#against", ArrayBox)
    recipes_box, find_box = getters.query_one("#recipes", Input), getters.query_one("#find", Input)
    tensors = getters.query_one(TensorTable)
    _recipes = ""  # the last recipes that were typed
    _by, _descending = "", False  # how the tensors are sorted: the title of a column, and the direction
    _shown_tensors: tuple[TensorFigures, ...] = ()

    def compose_task(self) -> ComposeResult:
        """Compose the boxes and the views."""
        yield ArrayBox("file", "file", self._file_changed, examples=_FILES, whole=True)
        with HorizontalGroup(id="near"):
            with Horizontal(classes="entry"):
                yield ButtonBar(self.control, (("format", "to ▾"),))
                yield Input(id="recipes", compact=True, placeholder=_RECIPES)
            yield ArrayBox("against", "against", self._against_changed, examples="original.safetensors", whole=True)
        yield ChoiceBar(self.choose_view, self.VIEWS, self.view, id="views")
        with HorizontalGroup(id="bar"):
            with Horizontal(classes="entry"):
                yield Label("find")
                yield Input(id="find", compact=True, placeholder="a part of the names")
            yield ButtonBar(self.control, id="controls")
        with Vertical(id="body"):
            yield pane(TensorTable(id="tensors"), "Tensors")
            with Column(id="lower"):
                yield pane(PageView(id="details"), "Audit")
                yield pane(PageView(id="tensor"), "Tensor")
                yield pane(TopicPane(id="beside"))

    @property
    def found(self) -> RecipeAudit | None:
        """The audit of recipes, or None if there is no answer yet, or if quantised weights are checked."""
        model = self.answers[0].found if self.answers else None
        return model if isinstance(model, RecipeAudit) else None

    @property
    def tensor(self) -> TensorFigures | None:
        """The tensor under the cursor, if the tensors are shown."""
        if self.shown_view != "tensors" or not self._shown_tensors:
            return None
        return self._shown_tensors[min(self.tensors.cursor, len(self._shown_tensors) - 1)]

    # The question.

    def draw(self, before: Question) -> None:
        """Show the question in the boxes, and the view of the answer."""
        question, against = self.question, self.question.option("against")
        if _typed_places(self.file.word) != question.values:
            fill(self.file.input, " ".join(question.values))
        self._fill_recipes(question.option("to"))
        self.recipes_box.placeholder = "" if against else _RECIPES
        fill(self.against.input, against or "")
        self._show_against()
        self.views.options, self.views.current = self.shown_views, self.shown_view
        self._arrange()
        self.draw_view()

    def _fill_recipes(self, names: tuple[str, ...] | None) -> None:
        """Write the recipes into their box, unless the text typed there already means these recipes."""
        try:
            same = _recipe_names(self.recipes_box.value) == names
        except FloatlabError:
            same = False
        fill(self.recipes_box, self.recipes_box.value if same else ",".join(names or ()))
        self._recipes = self.recipes_box.value or self._recipes

    def _show_against(self) -> None:
        """Show the box for the original weights only if no recipe is given, or while the box has the focus."""
        has_focus = self.focused is self.against.input
        self.against.display = has_focus or self.question.option("to") is None

    def _file_changed(self, box: ArrayBox, picked: bool) -> None:
        values = (box.word,) if picked else _typed_places(box.word)
        valid = self.attempt(lambda: _settled(self.question.replace(values=values)), "" if picked else "file")
        self.mark_taken(box.input, valid, picked)

    def _against_changed(self, box: ArrayBox, picked: bool) -> None:
        """Check the quantised weights against the original ones; if the box is empty, audit the last recipes again."""
        to = "" if box.word else self.recipes_box.value or self._recipes
        valid = self.attempt(lambda: self._asked(to, box.word), "" if picked else "against")
        self.mark_taken(box.input, valid, picked)

    @on(Input.Changed, "#recipes")
    def _recipes_typed(self, event: Input.Changed) -> None:
        mark_valid(event.input, self._take_recipes(event.input.value, "recipes"))

    def _take_recipes(self, typed: str, kind: str = "") -> bool:
        return self.attempt(lambda: self._asked(typed, self.against.word), kind)

    def _asked(self, typed: str, against: str) -> Question:
        """Return the question: an audit of these recipes or, without recipes, a check of quantised weights."""
        base, to = self.question, _recipe_names(typed)
        if to is None or base.option("to") is None:  # most other options apply to only one of the two questions
            base = Question("audit", base.values).having(only=base.option("only"))
        return _settled(base.having(to=to, against=(against or None) if to is None else None))

    def take_format(self, name: str) -> None:
        """Open the question with the recipe of this name added to its recipes."""
        self._take_recipes(",".join(dict.fromkeys((*self.question.option("to", ()), name))))

    def action_pick(self, name: str) -> None:
        """Open a pick list; in the list of recipes, several recipes can be marked."""
        if name != "format":
            super().action_pick(name)
            return

        def taken(names: str | None) -> None:
            if names is not None:
                self._take_recipes(names)

        pick = self.picks()[name]
        self.app.push_screen(MarkingPicker(pick.title, pick.rows, pick.current), taken)

    def action_recipe(self) -> None:
        """Go to the box of the recipes."""
        self.recipes_box.focus()

    def action_against(self) -> None:
        """Move the focus to the box for the original weights."""
        self.against.display = True
        self.against.input.focus()
        if is_wrong(self.against.input):  # the wrong text is still there, so show its error again
            self._against_changed(self.against, picked=False)

    def action_find(self) -> None:
        """Go to the box that filters the tensors by name."""
        self.find_box.focus()

    def action_file(self, name: str) -> None:
        """Open a window in which the user picks a file for a box."""
        self.query_one(f"#{name}", ArrayBox).action_pick()

    # The views.

    @property
    def shown_views(self) -> tuple[tuple[str, str], ...]:
        """The views that the user can choose. A check of quantised weights has only the first view."""
        return self.VIEWS if self.found is not None or not self.answers else self.VIEWS[:1]

    def draw_view(self) -> None:
        """Show the current view, and hide the others."""
        found, view = self.found, self.shown_view
        if view == "tensors" and found is not None and self._shown_tensors:
            self.show_only("tensors", "tensor", "bar")
        else:
            self.show_only("details", "bar" if view == "tensors" else "")
            if view == "tensors" and found is not None:
                self.details.page = note_page("No tensor has a name with these words.")
            elif self.answers:
                self.details.page = self.answers[0].page() if found is None or view == "overview" else plan_page(found)
        self._draw_tensor()

    @property
    def has_topic_below(self) -> bool:
        """Whether the current view is so short that there is room for a topic below it."""
        return self.shown_view == "plan"

    def topics(self) -> list[Topic]:
        """Return the overview as a topic; if the overview is the current view, return the plan, if there is one."""
        if self.shown_view != "overview":
            return [("Overview", self.answers[0].page())]
        return [("Plan", plan_page(self.found))] if self.found is not None else []

    def page(self) -> Page:
        """Return the page that is shown."""
        tensor = self.tensor
        return self.details.page if tensor is None else tensor_page(tensor)

    def _arrange(self) -> None:
        """Show the tensors whose names contain the typed words, in the chosen order."""
        found = self.found
        if found is None:
            self._shown_tensors = ()
            return
        columns = self._columns(found)
        by = next((column for column in columns if column.title == self._by), None)
        self._shown_tensors = tuple(arranged(found.tensors, self.find_box.value, by, self._descending))
        self.tensors.show(tensors_table(columns, self._shown_tensors))
        order = _LISTED if by is None else f"{by.title} {'↓' if self._descending else '↑'}"
        count = f"{len(self._shown_tensors):,} of {counted(len(found.tensors), 'tensor')}"
        self.controls.options = (("sort", f"sort {order} ▾"), ("find", count))

    @staticmethod
    def _columns(found: RecipeAudit) -> list[TensorColumn]:
        return tensor_columns(found, [each for each in found.tensors if each.recipes])

    @on(Input.Changed, "#find")
    def _find_typed(self) -> None:
        self._arrange()
        self.draw_view()

    def _sort(self, title: str) -> None:
        """Sort by a column; if the tensors are already sorted by it, reverse the order."""
        self._descending = title == self._by and not self._descending
        self._by = title
        self._arrange()
        self.draw_view()

    @on(Cells.Moved, "#tensors")
    def _draw_tensor(self) -> None:
        if (tensor := self.tensor) is not None:
            self.show_page("tensor", tensor_page(tensor))
        self.refresh_bindings()

    @on(Cells.Chosen, "#tensors")
    def _tensor_chosen(self) -> None:
        if (tensor := self.tensor) is None:
            return
        question = rounding_question(tensor, bool(self.question.option("saturate")))
        if question is not None:
            self.app.go("block" if question.verb == "block" else "inspect", question)
        else:
            self.complain("Block shows tensors of numbers in .safetensors, .npz and .npy files", hint=True)

    # Methods that the base classes call.

    def picks(self) -> dict[str, Pick]:
        """Return the pick lists of recipes and of the orders of the tensors."""
        rows = [Choice(name, f"{name:<{_NAME}}  {text}") for name, text in recipe_choices().items()]
        marked = tuple(self.question.option("to", ()))
        found = super().picks() | {
            "format": Pick("Recipes; space marks, Enter takes them", rows, self.take_format, marked)
        }
        if self.found is not None:
            titles = [_LISTED, *(column.title for column in self._columns(self.found))]
            found["sort"] = Pick("Sort by", dict.fromkeys(titles, ""), self._sort, (self._by or _LISTED,))
        return found

    def possible(self) -> dict[str, bool]:
        """Return, for each action, whether it is available.

        Pinning is never available; actions on tensors are available only while the tensors are shown.
        """
        has_tensors = self.found is not None and self.shown_view == "tensors"
        return super().possible() | {"sort": has_tensors, "find": has_tensors, "pin": False}

    def copies(self) -> Copies:
        """Return the texts that can be copied."""
        copies, found = super().copies(), self.found
        del copies["code"]
        if found is None:
            copies["value"] = ("the number of broken weights", copies["value"][1])
            return copies
        copies["value"] = ("the recommendation", copies["value"][1])
        copies["plan"] = ("the plan as JSON", lambda: plan_text(found))
        if (table := self.answers[0].table) is not None:
            copies["csv"] = ("all figures as CSV", table)
        return copies

    def boxes(self) -> Iterator[Widget]:
        """Return the boxes of the checkpoint, of the recipes and of the original weights."""
        yield from (self.file.input, self.recipes_box, self.against.input)

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for views, files and recipes."""
        yield from super().commands()
        yield "Open: the checkpoint", "pick a file or a folder", partial(self.action_file, "file")
        yield "Against the original", "check a quantised checkpoint", self.action_against
        for name, text in recipe_choices().items():
            yield f"Recipe: {name}", text, partial(self.take_format, name)


def _typed_places(text: str) -> tuple[str, ...]:
    """Split typed text at spaces into names of checkpoints, unless the whole text is the name of a file or folder."""
    return (text,) if exists(text) else tuple(text.split())


def _recipe_names(typed: str) -> tuple[str, ...] | None:
    return tuple(recipe.name for recipe in parse_recipes(typed)) if typed.strip() else None


def _settled(question: Question) -> Question:
    """Return the question, checked and completed as on the command line (`Verb.validate`); raises UsageError."""
    validate = verb_named("audit").validate
    return question if validate is None else validate(question)
