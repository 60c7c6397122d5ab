"""The controls of the screen Train: subcommand, formats of stages, optimizer, remedies, seed and problem."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial

from textual import getters
from textual.binding import Binding

from floatlab.formats import Format
from floatlab.formats.catalog import short_name
from floatlab.page.words import plural
from floatlab.training.networks import USUAL as CONFIGURATIONS
from floatlab.training.setup import REMEDIES
from floatlab.tui.screens.pick_lists import AUTOMATIC
from floatlab.tui.screens.task import Command, TaskScreen
from floatlab.tui.widgets import Choice, ColumnTable, MarkingPicker, Pick, choices_of
from floatlab.verbs.question import Question
from floatlab.verbs.train.answer import NETWORKS
from floatlab.verbs.train.forms import FORMS, in_form, turned
from floatlab.verbs.train.functions import NAMES as FUNCTIONS
from floatlab.verbs.train.live import Laboratory
from floatlab.verbs.train.options import VERB, form_of

STAGES = {
    name: VERB.option(name).help.partition(" (")[0]
    for name in ("weights", "grads", "update_format", "accumulator", "state")
}
OPTIMIZERS = {
    "sgd": "w ← w − lr·g",
    "momentum": "SGD with momentum 0.9",
    "adam": "Adam",
    "adamw": "Adam with decoupled weight decay 0.01",
}
PROBLEMS = {
    "network": "a network with a hidden layer",
    "linear": "linear regression",
    "logistic": "logistic regression",
}
_RATE = "0.1"  # the learning rate when the user switches from a given update to a gradient
# The subcommands in which an action is available. Other actions are always available.
_FORMS = {
    "given": ("run", "step"),
    "stages": ("run", "step"),
    "optimizer": ("run", "step", "network"),
    "remedies": ("run", "step", "network"),
    "seed": ("run", "step", "network"),
    "subject": ("network", "check"),
    "format": ("run", "step", "underflow", "check"),
    "rules": ("run", "step", "underflow"),
}


class RemedyTable(ColumnTable, inherit_bindings=False):
    """A table with a row for each remedy, or for each configuration of a network."""

    PLACE = "On the remedies"  # the heading in the list of keys
    HELP = (
        "Enter shows the next step of the remedy in this row, rounding by rounding; e changes the remedy from now on."
    )
    BINDINGS = [
        Binding("enter", "choose", "Step", id="lines.step", key_display="enter"),
        Binding("up,k", "move(-1)", "Previous row", show=False, id="lines.before"),
        Binding("down,j", "move(1)", "Row after", show=False, id="lines.after"),
        Binding("pageup", "turn(-1)", "Previous columns", show=False, id="lines.left"),
        Binding("pagedown", "turn(1)", "More columns", show=False, id="lines.right"),
    ]


class RoundingTable(ColumnTable):
    """A table with a row for each rounding of a step."""

    PLACE = "On the roundings"  # the heading in the list of keys
    HELP = "Each row is a rounding of this step. Enter or a double click opens it in Arithmetic, with exact codes."
    BINDINGS = [Binding("enter", "choose", "Digits", id="stages.open", key_display="enter")]


class TrainControls(TaskScreen, inherit_bindings=False):
    """A screen with the controls for a training session."""

    table = getters.query_one(RemedyTable)
    laboratory: Laboratory | None = None  # the training session of the subcommands `run` and `network`
    last_in: Mapping[str, Question] = {}

    @property
    def form(self) -> str:
        """The subcommand of the question."""
        return form_of(self.question)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the remedies, or of the configurations, that are shown."""
        return tuple(self.laboratory.labels) if self.laboratory is not None else ()

    @property
    def place(self) -> int:
        """The row number of the remedy under the cursor."""
        return self.table.cursor

    @property
    def remedy(self) -> str:
        """The remedy under the cursor; "plain" if there is none."""
        return self.labels[self.place] if self.place < len(self.labels) else "plain"

    def with_format(self, question: Question, format: Format) -> Question:
        """Return the question with another format of the weights (of the gradients, for the subcommand `underflow`)."""
        return question.replace(formats=(format,)).having(**{"grads" if self.form == "underflow" else "weights": None})

    @property
    def remedy_option(self) -> str:
        """The name of the option for remedies, or for configurations."""
        return "configs" if self.form == "network" else "remedies"

    # The line of controls.

    def control_words(self) -> tuple[tuple[str, str], ...]:
        """Return the names and the labels of the controls; the labels contain the current values."""
        question, form, small = self.question, self.form, self.small
        is_update, is_network, has_gradient = form in ("run", "step"), form == "network", question.option("grad")
        rows = [("form", f"{FORMS[form][0]} ▾")]
        if is_update and not small:
            rows.append(("given", "gradient ▾" if has_gradient is not None else "update ▾"))
        if is_network:
            rows.append(("subject", f"{question.option('problem', 'network')} ▾"))
        else:
            rows += [("subject", f"{question.values[1]} ▾")] if form == "check" else []
            format = question.option("weights") or next((short_name(format) for format in question.formats), None)
            rows.append(("format", f"in {format or ('fp32' if form == 'check' else 'fp16')} ▾"))
        apart = [name for name in STAGES if name != "weights" and question.option(name) is not None]
        if is_update and (apart or not small):
            rows.append(("stages", f"{len(apart)} {plural(len(apart), 'stage format')} ▾" if apart else "stages ▾"))
        if is_network or (is_update and has_gradient is not None):
            rows.append(("optimizer", f"{question.option('optimizer', 'sgd')} ▾"))
        if self.labels:
            nouns = ("configuration", "configurations") if is_network else ("remedy", "remedies")
            rows.append(("remedies", f"{len(self.labels):,} {plural(len(self.labels), *nouns)} ▾"))
        elif form == "step":
            rows.append(("remedies", f"{'+'.join(question.option('remedies', ('plain',)))} ▾"))
        if (is_update or is_network) and (question.context.seed or not small):
            rows.append(("seed", f"seed {question.context.seed} ▾"))
        if not small:
            rows.append(self.rules_word)
        return tuple(rows)

    # Pickers.

    def picks(self) -> dict[str, Pick]:
        """Return the pick lists of subcommands, optimizers, stages, seeds, and problems or functions."""
        question, is_network = self.question, self.form == "network"
        forms = [Choice(name, f"{title:<12} {' '.join(start[1:])}") for name, (title, start) in FORMS.items()]
        formats = {name: question.option(name) or AUTOMATIC for name in STAGES}
        if not question.option("weights"):
            formats["weights"] = "with f"
        stages = {name: f"{formats[name]:<10} {text}" for name, text in STAGES.items()}
        optimizer, seed = question.option("optimizer", "sgd"), str(question.context.seed)
        seeds = [Choice(str(each), str(each)) for each in range(5)]
        problem, functions = question.option("problem", "network"), dict.fromkeys(FUNCTIONS, "")
        return super().picks() | {
            "form": Pick("What to train, or to show", forms, self.take_form, (self.form,)),
            "optimizer": Pick("Optimizer", OPTIMIZERS, self.take_optimizer, (optimizer,)),
            "stages": Pick("Stage to which the format applies", stages, self.take_stage),
            "seed": Pick("Seed of stochastic rounding, and of a network's data", seeds, self.take_seed, (seed,), True),
            "subject": Pick("Problem", PROBLEMS, self.take_subject, (problem,))
            if is_network
            else Pick("Function, or any module:function", functions, self.take_subject, question.values[1:2], True),
        }

    def take_form(self, name: str) -> None:
        """Change the subcommand.

        If the new subcommand does not accept the current numbers, show the last question of this subcommand, or its
        default question.
        """
        if name != self.form:
            question = in_form(self.question, name, self.remedy)
            self.open(question or self.last_in.get(name) or self.app.read_question(list(FORMS[name][1])))

    def action_given(self) -> None:
        """Switch between a step with a given update and one with a given gradient."""
        self.open(turned(self.question, _RATE))

    def take_optimizer(self, name: str) -> None:
        """Set the optimizer, and switch from a given update to a gradient."""
        question = self.question
        if self.form != "network" and question.option("grad") is None:
            question = turned(question, _RATE)
        self.open(question.having(optimizer=None if name == "sgd" else name))

    def take_stage(self, name: str) -> None:
        """Open the list of formats for a stage."""
        if name == "weights":
            self.action_pick("format")
        else:
            automatic = "derived from the weights and the remedy"
            self.pick(self.format_pick(partial(self._take_stage_format, name), automatic))

    def _take_stage_format(self, name: str, text: str) -> None:
        self.change(**{name: None if text == AUTOMATIC else text})

    def remedy_choices(self) -> list[Choice]:
        """Return the named remedies, or configurations of a network."""
        if self.form == "network":
            return [Choice(name, name) for name in CONFIGURATIONS]
        return choices_of({name: row.what.partition(",")[0] for name, row in REMEDIES.items()})

    def action_remedies(self) -> None:
        """Open the list in which the user marks the remedies to show side by side."""
        if self.form == "network":
            title = "Configurations: space marks; or type one, such as bf16+kahan"
            marked = self.question.option("configs", NETWORKS)
        else:
            title = "Remedies: space marks; or type one, such as bf16+stochastic"
            marked = self.question.option("remedies") or self.labels
        self.app.push_screen(MarkingPicker(title, self.remedy_choices(), tuple(marked)), self.take_remedies)

    def take_remedies(self, text: str | None) -> None:
        """Set the remedies to show side by side (names separated by commas). If `text` is None, change nothing."""
        if text is not None:
            self.change(**{self.remedy_option: tuple(text.split(","))})

    def take_seed(self, text: str) -> None:
        """Set the seed."""
        if text.isdecimal() and len(text) <= 18:
            self.open(self.question.replace(context=self.question.context.replace(seed=int(text))))
        else:
            self.complain(f"a seed must be a whole number, not {text}")

    def take_subject(self, name: str) -> None:
        """Set the problem or function."""
        if self.form == "network":
            self.change(problem=None if name == "network" else name)
        else:
            self.open(self.question.replace(values=("check", name, self.question.values[2])))

    def possible(self) -> dict[str, bool]:
        """Return, for each action, whether it is available. Some actions exist only for some subcommands."""
        possible = super().possible()
        return possible | {name: self.form in forms and possible.get(name, True) for name, forms in _FORMS.items()}

    def commands(self) -> Iterator[Command]:
        """Return the rows of the command palette for subcommands, optimizers and the other lists."""
        yield from super().commands()
        for name, (title, start) in FORMS.items():
            yield f"Train: {title}", " ".join(start[1:]), partial(self.take_form, name)
        if self.form in _FORMS["optimizer"]:
            for name, text in OPTIMIZERS.items():
                yield f"Optimizer: {name}", text, partial(self.take_optimizer, name)
            yield "Remedies", "mark the ones to show side by side", self.action_remedies
            yield "Seed", "of random numbers", partial(self.action_pick, "seed")
        if self.form in _FORMS["stages"]:
            yield "Update or gradient", "replace one by the other", self.action_given
            for name, text in STAGES.items():
                yield f"Format of {name.replace('_', ' ')}", text, partial(self.take_stage, name)
