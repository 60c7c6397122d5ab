"""Training of a network in a configuration (formats and remedies), and comparison of configurations over seeds."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from floatlab.arrays.types import Array
from floatlab.errors import UnsupportedError
from floatlab.fpmode import in_default_mode, methods_in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Individual, Record
from floatlab.training.networks import Configuration, Network, Problem, exact_loss, make_problem, parse_configurations
from floatlab.training.optimizers import Optimizer, parse_optimizer
from floatlab.training.trainer import Divergence, Trainer
from floatlab.training.validation import checked_whole


@methods_in_default_mode
class Learning(Answering, Individual):
    """Result of a training run: the loss at recorded steps, and the final loss in binary64.

    `at` has the recorded steps; 0 is the start. `losses` has the losses at these steps: the network computes the
    outputs in its own formats, and the loss of these outputs is computed in binary64. `final` is the loss of the final
    weights, with the whole network evaluated in binary64. If the run diverged, `final` is NaN, and usually the last of
    the `losses`, too.
    """

    configuration: Configuration
    problem: Problem
    optimizer: Optimizer
    steps: int
    at: Array
    losses: Array
    final: float
    weights: Array
    skipped: tuple[int, ...]
    scales: tuple[tuple[int, float], ...]
    unmoved: int  # number of weights whose `TrainingRun.moves` is 0
    diverged: Divergence | None
    seconds: float

    _ASKS = ".losses"

    def __repr__(self) -> str:
        """Show the configuration, the problem and the losses."""
        end = self.diverged.why if self.diverged else f"loss {self.losses[0]:.4g} → {self.final:.4g}"
        return f"Learning({self.configuration.label}, {self.problem.name}: {self.steps:,} steps, {end[:80]})"


@methods_in_default_mode
class Learner:
    """A resumable training run: `advance` continues it.

    The loss is recorded every `every` steps. The losses in `learning` also include the loss after the last step done so
    far. Without `lr`, the learning rate is 0.02 for SGD, and 0.001 for Adam and AdamW. Raises UnsupportedError for an
    unknown optimizer.

    >>> learner = Learner(make_problem("linear", seed=1), "fp16+master+dynamic", lr=0.05)
    >>> learner.advance(100)
    >>> learner.learning
    Learning(fp16+master+dynamic, linear: 100 steps, loss 1.954 → 0.002042)
    """

    def __init__(
        self,
        problem: Problem,
        configuration: Configuration | str,
        *,
        lr: object = None,
        optimizer: Optimizer | str | None = None,
        every: int = 10,
        lane: str | None = None,
    ) -> None:
        """Start at the initial weights of the problem."""
        (self.configuration,) = parse_configurations([configuration])
        self.network = Network(problem, self.configuration)
        rate = 0.02 if lr is None and optimizer in (None, "sgd", "momentum") else lr
        chosen = parse_optimizer(optimizer, rate, False)
        self.every = checked_whole(every, "every", 1)
        self.trainer = Trainer(problem.start, 0.0, chosen, self.configuration.setup, every=1 << 40, lane=lane)
        self._at: list[int] = []
        self._losses: list[float] = []
        self.seconds = 0.0
        self.gradients = np.zeros(problem.parameters)  # gradients of the last step, divided by the loss scale

    def change(self, configuration: Configuration | str) -> None:
        """Continue in another configuration, from the current weights.

        >>> learner = Learner(make_problem("linear", seed=1), "bf16", lr=0.05)
        >>> learner.advance(50)
        >>> learner.change("bf16+master")
        >>> learner.advance(50)
        >>> learner.learning
        Learning(bf16+master, linear: 100 steps, loss 1.956 → 0.002041)
        """
        (self.configuration,) = parse_configurations([configuration])
        self.network = Network(self.network.problem, self.configuration)
        self.trainer.change(self.configuration.setup)

    def advance(self, steps: int, tick: Callable[[int], None] | None = None) -> None:
        """Do `steps` more steps, or fewer if the run diverges (see `Divergence`)."""
        start = time.perf_counter()
        for _ in range(checked_whole(steps, "steps", 0)):
            if self.trainer.diverged is not None:
                break
            self._step()
            if tick is not None:
                tick(1)
        self.seconds += time.perf_counter() - start

    def _step(self) -> None:
        trainer = self.trainer
        scale = 1.0 if trainer.scaler is None else trainer.scaler.scale
        found = self.network.step(trainer.weights, scale)
        if trainer.steps % self.every == 0:
            self._at.append(trainer.steps)
            self._losses.append(self.network.problem.loss_of(found.outputs))
        self.gradients = found.gradients / scale
        trainer.take(found.gradients)

    @property
    def learning(self) -> Learning:
        """The results so far."""
        trainer, problem = self.trainer, self.network.problem
        weights = trainer.weights
        at, losses = list(self._at), list(self._losses)
        final = math.nan if trainer.diverged else exact_loss(problem, weights)
        if not at or at[-1] != trainer.steps:
            at.append(trainer.steps)
            losses.append(math.nan if trainer.diverged else problem.loss_of(self.network.forward(weights)))
        run = trainer.run
        return Learning(
            configuration=self.configuration, problem=problem, optimizer=trainer.optimizer, steps=trainer.steps,
            at=np.array(at), losses=np.array(losses), final=final, weights=weights, skipped=run.skipped,
            scales=run.scales, unmoved=int((run.moves == 0).sum()), diverged=run.diverged, seconds=self.seconds,
        )  # fmt: skip


class LearningComparison(Record):
    """The final losses of one configuration compared with a reference, over seeds.

    `finals` has one loss per seed. `ratio` is the geometric mean, over the seeds, of the final loss divided by the
    reference's loss for the same seed. `spread` is e^s, where s is the standard error of the mean logarithm (1.05 means
    about 5 %); for a single seed, it is 1. If a run of the configuration or of the reference diverged, `ratio` is NaN,
    and so is `spread` for several seeds. `diverged` is the number of runs of the configuration that diverged.

    `worse` is true if a run of the configuration diverged, or if its loss is clearly larger than the reference's. The
    loss is clearly larger if `ratio` is above 1.02 and one of two conditions holds: `ratio` exceeds the square of
    `spread` (two standard errors), or the loss is more than 2 % larger for every seed.
    """

    label: str
    finals: tuple[float, ...]
    ratio: float
    spread: float
    worse: bool
    diverged: int


@in_default_mode
def learn(
    problem: Problem | str = "network",
    configurations: object = None,
    *,
    seeds: int | range = 1,
    steps: int = 1000,
    lr: object = None,
    optimizer: Optimizer | str | None = None,
    every: int = 10,
    lane: str | None = None,
    tick: Callable[[int], None] | None = None,
    **shape: Any,
) -> list[list[Learning]]:
    """Train a network in several configurations, for several seeds.

    Parameters
    ----------
    problem
        `linear`, `logistic` or `network`: a new problem is generated for every seed. If a Problem is given, it is the
        only one, and `seeds` is ignored.
    configurations
        Names such as `fp32`, `fp16+master+dynamic`, `bf16+stochastic`, `fp8+master`; by default those in
        `networks.USUAL`.
    seeds
        Number of seeds, or a range.
    lr
        Learning rate; by default 0.02 for SGD, and 0.001 for Adam and AdamW.
    steps, optimizer, lane
        As in `trajectories.train`.
    every
        Record the loss every N steps.
    tick
        Function that is called with the argument 1 after each step of each run.
    **shape
        Sizes and noise of the problem, as in `make_problem`.

    Returns
    -------
    list of lists of Learning
        One list per configuration. A list has one Learning per seed, or a single Learning if a Problem is given.

    Raises
    ------
    UnsupportedError, FormatError, ContextError
        For unknown names, and for other invalid arguments.

    Examples
    --------
    >>> learn("linear", "fp32 bf16", steps=50, samples=8)[1]
    [Learning(bf16, linear: 50 steps, loss 2.23 → 0.01158)]
    """
    chosen = parse_configurations(configurations)
    numbers = range(seeds) if isinstance(seeds, int) else seeds
    if not hasattr(numbers, "__len__") or not len(numbers):
        raise UnsupportedError("seeds must be a whole number from 1 up, or a range that is not empty")
    if isinstance(problem, Problem):
        if shape:
            raise UnsupportedError(f"{next(iter(shape))} is for a problem given by name, not for a Problem")
        problems = [problem]
    else:
        problems = [make_problem(problem, seed, **shape) for seed in numbers]

    def learned(problem: Problem, configuration: Configuration) -> Learning:
        learner = Learner(problem, configuration, lr=lr, optimizer=optimizer, every=every, lane=lane)
        learner.advance(steps, tick)
        return learner.learning

    return [[learned(each, configuration) for each in problems] for configuration in chosen]


@in_default_mode
def compare_learnings(learnings: list[list[Learning]], reference: str = "fp32") -> list[LearningComparison]:
    """Compare the final losses of each configuration with those of a reference, over the same seeds.

    Parameters
    ----------
    learnings
        The result of `learn`: a list for each configuration, with a Learning for each seed.
    reference
        Label of the configuration that the others are compared with.

    Returns
    -------
    list of LearningComparison
        One per configuration.

    Raises
    ------
    UnsupportedError
        If no configuration has the label `reference`.

    Examples
    --------
    >>> found = compare_learnings(learn("linear", "fp32 bf16", seeds=2, steps=100, lr=0.01, samples=8))
    >>> [(each.label, each.worse) for each in found]
    [('fp32', False), ('bf16', True)]
    """
    labels = [row[0].configuration.label for row in learnings]
    if reference not in labels:
        raise UnsupportedError(f"the reference, {reference}, is not among {' '.join(labels)}")
    against = np.log([each.final for each in learnings[labels.index(reference)]])
    found = []
    for label, row in zip(labels, learnings, strict=True):
        finals = [each.final for each in row]
        logs = np.log(finals) - against
        mean, many = float(np.mean(logs)), len(logs)
        deviation = float(np.std(logs, ddof=1) / math.sqrt(many)) if many > 1 else 0.0
        diverged = [each.diverged is not None for each in row].count(True)
        least = math.log(1.02)
        worse = diverged > 0 or (mean > least and (mean > 2 * deviation or bool(np.all(logs > least))))
        found.append(LearningComparison(label, tuple(finals), math.exp(mean), math.exp(deviation), worse, diverged))
    return found
