"""Floor 3: the mixed-precision laboratory: why updates vanish, and what saves them.

The rooms, from the doors down:

* `run/`: many steps under several remedies, against exact arithmetic; `step/`: one update, bit by bit, with the
  thresholds that it would have had to pass;
* `network/`: networks in formats, on generated problems, side by side over seeds;
* `gradients`, `optimizers`, `setup` (formats and remedies), `scaling` (the loss scale): what a step is made of;
* `gradient_check`: difference quotients, and whether a mismatch is rounding or a bug.
"""

from floatlab.training.gradient_check import Check, Point, StepSweep, advised_step, check_gradient, sweep_steps
from floatlab.training.network.learner import Learner, Learning, LearningComparison, compare_learnings, learn
from floatlab.training.network.networks import Configuration, Network
from floatlab.training.network.problems import Problem, exact_loss, make_problem
from floatlab.training.optimizers import SGD, Adam, Updates
from floatlab.training.run.laboratory import Reference, Training, Trajectory, parse_optimizer, train
from floatlab.training.run.program import Program
from floatlab.training.run.trainer import Trainer
from floatlab.training.run.training_run import Divergence, TrainingRun
from floatlab.training.scaling import LossScale, Scaler, Underflow, measure_underflow
from floatlab.training.setup import REMEDIES, Remedy, Setup, parse_remedy
from floatlab.training.step.thresholds import Threshold
from floatlab.training.step.update import TracedStage, UpdateTrace, Why, step

__all__ = [
    "REMEDIES", "SGD", "Adam", "Check", "LearningComparison", "Configuration", "StepSweep", "Divergence", "Learner", "Learning",
    "LossScale", "Network", "Point", "Problem", "Program", "Reference", "Remedy", "Scaler", "Setup", "Threshold",
    "TracedStage", "Trainer", "Training", "TrainingRun", "Trajectory", "Underflow", "UpdateTrace", "Updates", "Why",
    "advised_step", "check_gradient", "compare_learnings", "exact_loss", "learn", "make_problem",
    "measure_underflow", "parse_optimizer", "parse_remedy", "step", "sweep_steps", "train",
]  # fmt: skip
