"""How weights are trained: the keys and the pickers for forms, formats of stages, optimizers, remedies and seeds."""

from __future__ import annotations

from functools import partial

from textual.binding import Binding

from floatlab.formats.names import short_name
from floatlab.page.words import plural
from floatlab.training import REMEDIES
from floatlab.training.network.networks import USUAL as CONFIGURATIONS
from floatlab.tui.screens.task import Task
from floatlab.tui.widgets.marking import Marking
from floatlab.tui.widgets.pickers import Choice, Picker
from floatlab.verbs.question import Question
from floatlab.verbs.train.answer import NETWORKS
from floatlab.verbs.train.check_functions import NAMES as FUNCTIONS
from floatlab.verbs.train.forms import FORMS, form_of, in_form, turned
from floatlab.verbs.train.options import VERB

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    from floatlab.formats import Format

STAGES = {
    name: VERB.option(name).help.partition(" (")[0]
    for name in ("weights", "grads", "update_format", "accumulator", "state")
}
OPTIMIZERS = {
    "sgd": "w ← w − lr·g",
    "momentum": "SGD with momentum 0.9",
    "adam": "Adam",
    "adamw": "Adam, weight decay 0.01 apart from the gradient",
}
PROBLEMS = {
    "network": "a network with a hidden layer",
    "linear": "linear regression",
    "logistic": "logistic regression",
}
_AUTOMATIC = "automatic"
_RATE = "0.1"


class Setups(Task, inherit_bindings=False):
    """A screen whose question says how weights are trained."""

    OWN = [
        Binding("m", "remedies", "Remedies", id="train.remedies", tooltip="Mark the remedies that stand side by side"),
        Binding("w", "form", "What", id="train.form", tooltip="Many steps, one, networks, gradients"),
        Binding("g", "given", "Update or gradient", id="train.given", show=False),
        Binding("o", "optimizer", "Optimizer", id="train.optimizer", show=False),
        Binding("s", "stages", "Formats of stages", id="train.stages", show=False),
        Binding("d", "seed", "Seed", id="train.seed", show=False),
        Binding("x", "subject", "Problem or function", id="train.problem", show=False),
    ]

    @property
    def form(self) -> str:
        """Which form the question has."""
        return form_of(self.question)

    @property
    def remedy(self) -> str:
        """The remedy of the line under the cursor."""
        raise NotImplementedError

    @property
    def labels(self) -> tuple[str, ...]:
        """The remedies, or configurations, of all lines."""
        raise NotImplementedError

    def change(self, **options: Any) -> bool:
        """Ask with other options."""
        return self.open(self.question.having(**options))

    def with_format(self, question: Question, format: Format) -> Question:
        """Keep the weights in this format; gradients, where it is about them alone."""
        return question.replace(formats=(format,)).having(**{"grads" if self.form == "underflow" else "weights": None})

    # The line of controls.

    def controls(self) -> tuple[tuple[str, str], ...]:
        """Return what a click can change, as it is."""
        question, form = self.question, self.form
        rows = [("form", f"{FORMS[form][0]} ▾")]
        many = form in ("run", "step")
        if many and not self.small:
            rows.append(("given", "gradient ▾" if question.option("grad") is not None else "update ▾"))
        if form == "network":
            rows.append(("subject", f"{question.option('problem', 'network')} ▾"))
        if form == "check":
            rows.append(("subject", f"{question.values[1]} ▾"))
        if form != "network":
            own = question.option("weights") or next((short_name(each) for each in question.formats), None)
            rows.append(("format", f"in {own or ('fp32' if form == 'check' else 'fp16')} ▾"))
        set_apart = [name for name in STAGES if name != "weights" and question.option(name) is not None]
        if many and (set_apart or not self.small):
            rows.append(("stages", f"{len(set_apart)} stages apart ▾" if set_apart else "stages ▾"))
        if form == "network" or (many and question.option("grad") is not None):
            rows.append(("optimizer", f"{question.option('optimizer', 'sgd')} ▾"))
        if self.labels or form == "step":
            kinds = ("configuration", "configurations") if form == "network" else ("remedy", "remedies")
            words = f"{len(self.labels):,} {plural(len(self.labels), *kinds)}"
            if not self.labels:
                words = "+".join(question.option("remedies", ("plain",)))
            rows.append(("remedies", f"{words} ▾"))
        if many or form == "network":
            rows += [("seed", f"seed {question.context.seed} ▾")] * (not self.small or bool(question.context.seed))
        return tuple(rows)

    # Pickers.

    def action_form(self) -> None:
        """Pick what is asked: many steps, one, networks, or what becomes of gradients."""
        rows = [Choice(name, f"{words:<12} {' '.join(start[1:])}") for name, (words, start) in FORMS.items()]
        self.app.push_screen(Picker("What to train, or to look at", rows, (self.form,)), self.take_form)

    def take_form(self, name: str | None) -> None:
        """Ask in another form: about the same numbers where that can be, else where it was left, or where it starts."""
        if name is not None and name != self.form:
            question = in_form(self.question, name, self.remedy)
            self.open(question or self.left_in(name) or self.app.read_question(list(FORMS[name][1])))

    def left_in(self, form: str) -> Question | None:
        """Return the last question in a form."""
        return None

    def action_given(self) -> None:
        """Take the update for a gradient, or the other way round."""
        self.open(turned(self.question, _RATE))

    def action_optimizer(self) -> None:
        """Pick an optimizer."""
        rows = [Choice(name, f"{name:<9} {words}") for name, words in OPTIMIZERS.items()]
        current = self.question.option("optimizer", "sgd")
        self.app.push_screen(Picker("Optimizer", rows, (current,)), self.take_optimizer)

    def take_optimizer(self, name: str | None) -> None:
        """Take an optimizer; an update becomes a gradient."""
        if name is None:
            return
        question = self.question
        if self.form != "network" and question.option("grad") is None:
            question = turned(question, _RATE)
        self.open(question.having(optimizer=None if name == "sgd" else name))

    def action_stages(self) -> None:
        """Pick a stage, and then its format."""
        question = self.question
        own = {name: question.option(name) or "automatic" for name in STAGES}
        own["weights"] = own["weights"] if question.option("weights") else "with f"
        rows = [Choice(name, f"{name:<13} {own[name]:<10} {words}") for name, words in STAGES.items()]
        self.app.push_screen(Picker("Which stage is to have a format of its own?", rows), self.take_stage)

    def take_stage(self, name: str | None) -> None:
        """Ask for the format of a stage."""
        if name == "weights":
            self.action_format()
        elif name is not None:
            rows = (Choice(_AUTOMATIC, f"{_AUTOMATIC:<12} as it follows from the weights and the remedy"),)
            self.app.push_screen(self.format_picker(rows), partial(self._take_stage_format, name))

    def _take_stage_format(self, name: str, text: str | None) -> None:
        if text is not None:
            self.change(**{name: None if text == _AUTOMATIC else text})

    def remedy_choices(self) -> list[Choice]:
        """Return what a line can be: remedies, or configurations of a network."""
        if self.form == "network":
            return [Choice(name, name) for name in CONFIGURATIONS]
        return [Choice(name, f"{name:<12} {row.what.partition(',')[0]}") for name, row in REMEDIES.items()]

    def action_remedies(self) -> None:
        """Mark the remedies that stand side by side."""
        if self.form == "network":
            title = "Configurations: space marks; or type one, such as bf16+kahan"
            marked = self.question.option("configs", NETWORKS)
        else:
            title = "Remedies: space marks; or type one, such as bf16+stochastic"
            marked = self.question.option("remedies") or self.labels
        self.app.push_screen(Marking(title, self.remedy_choices(), tuple(marked)), self.take_remedies)

    def take_remedies(self, text: str | None) -> None:
        """Take the remedies that are to stand side by side."""
        if text is not None:
            self.change(**{"configs" if self.form == "network" else "remedies": tuple(text.split(","))})

    def action_seed(self) -> None:
        """Ask for the seed of what is random."""
        now = self.question.context.seed
        rows = [Choice(str(seed), f"{seed}") for seed in (0, 1, 2, 3, 4)]
        title = "Seed of stochastic rounding, and of a network's data"
        self.app.push_screen(Picker(title, rows, (str(now),), free=True), self.take_seed)

    def take_seed(self, text: str | None) -> None:
        """Take a seed."""
        if text is None:
            return
        if not text.isdecimal() or len(text) > 18:
            self.complain(f"a seed is a whole number, not {text}")
            return
        self.open(self.question.replace(context=self.question.context.replace(seed=int(text))))

    def action_subject(self) -> None:
        """Pick a problem for networks, or a function whose derivative is checked."""
        if self.form == "network":
            rows = [Choice(name, f"{name:<9} {words}") for name, words in PROBLEMS.items()]
            current = self.question.option("problem", "network")
            self.app.push_screen(Picker("Problem", rows, (current,)), self.take_subject)
        else:
            rows = [Choice(name, name) for name in FUNCTIONS]
            title = "Function, or any module:function"
            self.app.push_screen(Picker(title, rows, self.question.values[1:2], free=True), self.take_subject)

    def take_subject(self, name: str | None) -> None:
        """Take a problem, or a function."""
        if name is None:
            return
        if self.form == "network":
            self.change(problem=None if name == "network" else name)
        else:
            self.open(self.question.replace(values=("check", name, self.question.values[2])))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide what does not belong to this form."""
        wanted = {
            "given": ("run", "step"),
            "stages": ("run", "step"),
            "optimizer": ("run", "step", "network"),
            "remedies": ("run", "step", "network"),
            "seed": ("run", "step", "network"),
            "subject": ("network", "check"),
            "format": ("run", "step", "underflow", "check"),
            "rules": ("run", "step", "underflow"),
        }.get(action)
        if wanted is not None and self.form not in wanted:
            return False
        return super().check_action(action, parameters)

    def commands(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        """Offer forms, optimizers, and whatever else has a picker."""
        for name, (words, start) in FORMS.items():
            yield f"Train: {words}", " ".join(start[1:]), partial(self.take_form, name)
        if self.form in ("run", "step", "network"):
            for name, words in OPTIMIZERS.items():
                yield f"Optimizer: {name}", words, partial(self.take_optimizer, name)
            yield "Remedies", "mark those that stand side by side", self.action_remedies
            yield "Seed", "of what is random", self.action_seed
        if self.form in ("run", "step"):
            yield "Update or gradient", "take the one for the other", self.action_given
            for name, words in STAGES.items():
                yield f"Format of {name.replace('_', ' ')}", words, partial(self.take_stage, name)
