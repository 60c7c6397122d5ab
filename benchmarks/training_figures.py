"""The figures of docs/training.md, drawn by floatlab, and the table of the networks.

    python -m benchmarks.training_figures [--seeds 10] [--steps 1500] [--into docs/images]

For each seed, all configurations are trained on the same data. The table (in Markdown) compares the final losses with
binary32. The figures depend only on the numbers of seeds and steps, so that they can be reproduced.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from floatlab import train
from floatlab.page.model import Chart
from floatlab.page.svg import chart_to_svg
from floatlab.training.gradient_check import sweep_steps
from floatlab.training.learner import compare_learnings, learn
from floatlab.verbs.train.gradients_page import errors_chart
from floatlab.verbs.train.network_page import losses_chart, mean_loss
from floatlab.verbs.train.run_page import values_chart

SHAPE = {"samples": 32, "features": 8, "hidden": 16}
USUAL = "fp32 fp16 fp16+master fp16+master+dynamic bf16 bf16+stochastic bf16+kahan bf16+master fp8 fp8+master"
SMALL = "fp32 fp16 fp16+dynamic fp16+master fp16+master+dynamic"


def network(title: str, names: str, seeds: int, steps: int, **more: float) -> Chart:
    """Train networks in these configurations; print a comparison, and return the losses as a chart."""
    rows = []
    for name in names.split():
        start = time.perf_counter()
        rows += learn("network", name, seeds=seeds, steps=steps, every=max(steps // 60, 1), **SHAPE, **more)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    print(f"\n{title}, {seeds} seeds\n")
    print("| configuration | loss, geometric mean | ratio to fp32 | deviation of the mean | verdict |")
    print("|---|---|---|---|---|")
    for each in compare_learnings(rows):
        loss = mean_loss(each)
        said = "reference" if each.label == "fp32" else "worse" if each.worse else "within noise"
        cells = [f"{each.diverged} diverged", "", ""]
        if loss is not None:
            cells = [f"{loss:.2e}", f"{each.ratio:.3f}", f"{100 * (each.spread - 1):.1f} %"]
        print(f"| {each.label} | {' | '.join(cells)} | {said} |")
    return losses_chart(rows)


def quick() -> dict[str, tuple[str, Chart]]:
    """Return the titles and charts of the figures that do not need a long training, by name."""
    curves = [sweep_steps(lambda x: x * x * x, 1.5, "fp32", way) for way in ("forward", "central")]
    updates = train("1.125", update="0.00041999", steps=101)
    return {
        "train-updates": ("1.125 and 101 updates of 0.00041999, in binary16", values_chart(updates)),
        "train-check": ("Difference quotients of x³ at 1.5 in binary32", errors_chart(curves)),
    }


def main() -> None:
    """Draw all figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1500)
    parser.add_argument("--into", type=Path, default=Path(__file__).parents[1] / "docs" / "images")
    asked = parser.parse_args()
    charts = quick() | {
        "train-network": (
            f"A network of 161 parameters, mean of {asked.seeds} seeds",
            network("Learning rate 0.02", USUAL, asked.seeds, asked.steps),
        ),
        "train-scaled": (
            "The same with gradients 2^18 times smaller",
            network(
                "The loss times 2^-18, learning rate 5000", SMALL, asked.seeds, asked.steps, weight=2.0**-18, lr=5000
            ),
        ),
    }
    for name, (title, chart) in charts.items():
        (asked.into / f"{name}.svg").write_text(chart_to_svg(chart, title), encoding="utf-8")


if __name__ == "__main__":
    main()
