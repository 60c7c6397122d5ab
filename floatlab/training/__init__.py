"""Floor 3: the mixed-precision laboratory: why updates vanish, and what saves them.

The rooms, from the doors down:

* `network/`: networks in chosen formats, trained on generated problems, side by side over seeds;
* `run/`: many steps under several remedies, against exact arithmetic;
* `update/`: the program of one step, its trace for one weight, and the smallest update that moves the weight;
* `gradients`, `optimizers`, `setup` (formats and remedies), `scaling` (the loss scale): the parts of a step;
* `gradient_check`: difference quotients, and whether a mismatch is rounding or a bug.
"""

from floatlab.faces import face

__all__, __getattr__, __dir__ = face(__name__, {
    "gradient_check": "Check Point StepSweep advised_step check_gradient sweep_steps",
    "network.learner": "Learner Learning LearningComparison compare_learnings learn",
    "network.networks": "Configuration Network",
    "network.problems": "Problem exact_loss make_problem",
    "optimizers": "Adam SGD Updates",
    "run.laboratory": "Reference Training Trajectory parse_optimizer train",
    "run.trainer": "Trainer",
    "run.training_run": "Divergence TrainingRun",
    "scaling": "LossScale Scaler Underflow measure_underflow",
    "setup": "REMEDIES Remedy Setup parse_remedy",
    "update.program": "Program",
    "update.thresholds": "Threshold",
    "update.trace": "TracedStage UpdateTrace Why step",
})  # fmt: skip
