"""`Laboratory`: a training session that can pause and restart, and change its remedies during the run."""

from __future__ import annotations

from itertools import chain

from floatlab.errors import UnsupportedError
from floatlab.training.learner import Learner, Learning
from floatlab.training.networks import Configuration, make_problem
from floatlab.training.setup import parse_remedy
from floatlab.training.trace import UpdateTrace
from floatlab.training.trainer import Trainer
from floatlab.training.trajectories import Training
from floatlab.verbs.question import Answer, Question
from floatlab.verbs.reduce.node import RoundingQuestion, as_questions
from floatlab.verbs.train.answer import STEPS, network_answer, network_of, setup_of, train_question, training_answer
from floatlab.verbs.train.live_page import Look, Switch, look_at_losses, look_at_weights
from floatlab.verbs.train.network_page import Learnings
from floatlab.verbs.train.options import VERB, form_of

_KEPT = 1 << 20  # without --every, each line (see `Laboratory`) records about this many numbers at most
_MOST = 1 << 23  # limit for these numbers if more steps are added


class Laboratory:
    """A training session that has done `steps` of `goal` steps.

    A *line* is all weights with one remedy, or the networks (one per seed) in one configuration. All lines do the same
    steps. Changes of remedies are recorded, so that a restart can repeat them.
    """

    limit: int | None = None  # the number of steps for which there are gradients or updates; None if unlimited
    every = 1  # every N-th step is recorded
    width = 1  # how many numbers each line records at such a step

    def __init__(self, question: Question) -> None:
        """Start at step 0; raises FloatlabError for a question that cannot be answered."""
        self.question = question
        self.changes: tuple[Switch, ...] = ()
        self.goal = self.wanted = 0  # `wanted` is the goal of the question
        self.restart()

    # For subclasses to implement.

    def _begin(self) -> None:
        """Create the trainers again, at step 0."""
        raise NotImplementedError

    def _advance(self, steps: int) -> None:
        raise NotImplementedError

    def _change(self, place: int, word: str) -> None:
        raise NotImplementedError

    def look(self) -> Look:
        """Return a snapshot of the current state."""
        raise NotImplementedError

    def answer(self) -> Answer:
        """Return the answer that the command line would show at this step."""
        raise NotImplementedError

    def next_step(self, place: int) -> UpdateTrace:
        """Return the next step of the line with index `place`, with all roundings.

        The docstring of `Laboratory` explains what a line is. Raises UnsupportedError if there is no next step.
        """
        raise NotImplementedError

    @property
    def labels(self) -> list[str]:
        """The current name of each line: its remedy or its configuration."""
        raise NotImplementedError

    @property
    def _trainers(self) -> list[Trainer]:
        raise NotImplementedError

    # Shared by all subclasses.

    @property
    def has_ended(self) -> bool:
        """Whether all weights or networks have diverged, so that no further step is possible."""
        return all(trainer.diverged is not None for trainer in self._trainers)

    def restart(self, changes: tuple[Switch, ...] = ()) -> None:
        """Return to step 0. Each change of remedy in `changes` will be made again at its step."""
        self.steps, self.changes = 0, ()
        self._ahead = list(changes)
        self._begin()

    def begin_again(self) -> None:
        """Return to step 0, forget all changes of remedy, and set the goal to the number of steps in the question."""
        self.goal = 0
        self.restart()

    def advance(self, steps: int) -> None:
        """Do `steps` more steps. After a restart, make each earlier change of a remedy at its step again."""
        end = self.steps + steps
        while True:
            while self._ahead and self._ahead[0].step <= self.steps:
                each = self._ahead.pop(0)
                self.change(each.place, each.word)
            if self.steps >= end:
                return
            stop = min(end, self._ahead[0].step) if self._ahead else end
            self._advance(stop - self.steps)
            self.steps = stop

    def change(self, place: int, word: str) -> None:
        """From now on, use the remedy or configuration `word` for the line with index `place`.

        Raises FloatlabError if `word` is unknown.
        """
        self._change(place, word)
        self.changes = (*self.changes, Switch(self.steps, place, word))

    def extend(self, steps: int) -> None:
        """Increase the goal by `steps`, at most to `limit`.

        Raises UnsupportedError if the goal is already `limit`, if too many numbers would be recorded, or if all weights
        or networks have diverged.
        """
        if self.has_ended:
            raise UnsupportedError("no line can continue: no weight is finite any more")
        goal = self.goal + steps
        if self.limit is not None and goal > self.limit:
            if self.goal >= self.limit:
                raise UnsupportedError(f"the gradients or updates cover only {self.limit:,} steps, and all are done")
            goal = self.limit
        if goal // self.every * self.width > _MOST:
            raise UnsupportedError("there is no room to record more: --every N records one step in N")
        self.goal = goal

    @property
    def command(self) -> str:
        """The command that reaches this step; changes of remedies during the run are not part of it."""
        return VERB.command(self.question.having(steps=self.steps))


class Weights(Laboratory):
    """A session that trains weights with several remedies.

    >>> from floatlab.verbs.question import Question
    >>> asked = Question("train", ("1.125",)).having(update="0.00041999", steps=101, remedies=("plain",))
    >>> found = Weights(asked)
    >>> found.advance(50)
    >>> found.change(0, "master")
    >>> found.advance(51)
    >>> found.training.lines[0].final
    1.146484375
    """

    training: Training

    def _begin(self) -> None:
        question = self.question
        every = question.option("every") or 1
        self.training = train_question(question.having(steps=0, every=every))
        first = self.training.trainers[0]
        steps = question.option("steps")
        usual = (first.gradients.length or STEPS) if steps is None else steps
        self.wanted, self.goal = usual, max(usual, self.goal)
        first.gradients.check_last(self.goal)
        wanted = max(1, -(-usual * first.count // _KEPT))
        if question.option("every") is None and wanted > 1:
            self.training = train_question(question.having(steps=0, every=wanted))
        first = self.training.trainers[0]
        self.limit, self.every, self.width = first.gradients.length, first.every, first.count

    def _advance(self, steps: int) -> None:
        self.training.advance(steps)

    def _change(self, place: int, word: str) -> None:
        trainer = self.training.trainers[place]
        trainer.change(parse_remedy(word)(setup_of(self.question)))
        trainer.label = word

    def look(self) -> Look:
        """Return the chart of the weights so far, and the table of remedies."""
        return look_at_weights(self.training, self.goal, self.changes)

    def answer(self) -> Answer:
        """Return the answer that the command line would show at this step."""
        return training_answer(self.question, self.training)

    def next_step(self, place: int) -> UpdateTrace:
        """Return the next step with the remedy at index `place`, traced for the first weight.

        Raises UnsupportedError if there is no next step.
        """
        return self.training.trainers[place].next_step()

    @property
    def labels(self) -> list[str]:
        """The remedies."""
        return [trainer.label for trainer in self._trainers]

    @property
    def _trainers(self) -> list[Trainer]:
        return self.training.trainers


class Networks(Laboratory):
    """A session that trains networks: for each configuration, one network for each seed."""

    learners: list[list[Learner]]

    def _begin(self) -> None:
        question = self.question
        chosen, seeds, self.wanted, shape = network_of(question)
        self.goal = max(self.wanted, self.goal)
        problems = [make_problem(question.option("problem", "network"), seed, **shape) for seed in seeds]
        lr, optimizer, every = question.option("lr"), question.option("optimizer"), max(self.wanted // 100, 1)
        self.learners = [
            [Learner(problem, each, lr=lr, optimizer=optimizer, every=every) for problem in problems] for each in chosen
        ]

    def _advance(self, steps: int) -> None:
        for each in chain.from_iterable(self.learners):
            each.advance(steps)

    def _change(self, place: int, word: str) -> None:
        others = [label for i, label in enumerate(self.labels) if i != place]
        label = word
        while label in others:  # configurations need distinct names in tables
            label += "'"
        made = Configuration.named(word).replace(label=label)
        for each in self.learners[place]:
            each.change(made)

    @property
    def _learnings(self) -> list[list[Learning]]:
        return [[each.learning for each in row] for row in self.learners]

    def look(self) -> Look:
        """Return the loss curves so far, and the table of configurations."""
        return look_at_losses(Learnings.of(self._learnings), self.goal, self.changes)

    def answer(self) -> Answer:
        """Return the answer that the command line would show at this step."""
        return network_answer(self._learnings)

    def next_step(self, place: int) -> UpdateTrace:
        """Raise UnsupportedError: a step of a network has too many roundings to show."""
        raise UnsupportedError(
            "a step of a network has thousands of roundings: train a single weight to see every rounding"
        )

    @property
    def labels(self) -> list[str]:
        """The configurations."""
        return [row[0].configuration.label for row in self.learners]

    @property
    def _trainers(self) -> list[Trainer]:
        return [each.trainer for row in self.learners for each in row]


def laboratory_for(question: Question) -> Laboratory | None:
    """Return a new session for a question; None for subcommands without steps.

    Raises FloatlabError for a question that cannot be answered.
    """
    kinds: dict[str, type[Laboratory]] = {"run": Weights, "network": Networks}
    kind = kinds.get(form_of(question))
    return None if kind is None else kind(question)


def stage_questions(found: UpdateTrace) -> list[RoundingQuestion]:
    """Return a question for each stage of a step, in order.

    The question is the operation of the stage, with the codes of its operands.

    >>> from floatlab.training import step
    >>> from floatlab.verbs.registry import command_of
    >>> [command_of(each.question) for each in stage_questions(step("1.125", "0.00041999"))]
    ['floatlab add bits:0x3c80@fp16 bits:0x0ee2@fp16 --fp16']
    """
    return [each for stage in found.stages for each in as_questions([stage.derivation])]


def check_remedy(question: Question, word: str) -> None:
    """Raise FloatlabError for an unknown remedy or configuration."""
    if form_of(question) == "network":
        Configuration.named(word)
    else:
        parse_remedy(word)(setup_of(question))
