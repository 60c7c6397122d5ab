"""Layer 3: training in mixed precision. This layer shows why updates vanish, and which techniques prevent this.

The main modules are:

* `networks`, `learner`: networks in chosen formats, trained on generated problems, and compared over seeds;
* `trainer`, `trajectories`: runs of many steps, with several remedies side by side, compared with exact results;
* `optimizers`, `trace`, `thresholds`: an optimizer step as a program, its trace for one weight, and the smallest update
  that moves the weight;
* `setup`, `loss_scale`, `gradients`: formats and remedies, the loss scale, and the gradients of all steps;
* `underflow`: what a format's range does to gradients;
* `gradient_check`: difference quotients, and whether a mismatch is rounding or a bug.
"""

from floatlab.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(__name__, {
    "gradient_check": "Check Point StepSweep advised_step check_gradient sweep_steps",
    "trajectories": "Reference Training Trajectory train",
    "learner": "Learner Learning LearningComparison compare_learnings learn",
    "networks": "Configuration Network Problem exact_loss make_problem",
    "optimizers": "Adam Program SGD Updates parse_optimizer",
    "loss_scale": "LossScale Scaler",
    "setup": "REMEDIES Remedy Setup parse_remedy",
    "thresholds": "Threshold",
    "trace": "TracedStage UpdateTrace Why step",
    "trainer": "Divergence Trainer TrainingRun",
    "underflow": "Underflow measure_underflow",
})  # fmt: skip
