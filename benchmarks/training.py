"""Losses of a small network in several configurations, over seeds: the tables of docs/training.md.

python -m benchmarks.training --seeds 10 --steps 1500
"""

import argparse
import sys
import time

from floatlab.training.learner import compare_learnings, learn

SHAPE = {"samples": 32, "features": 8, "hidden": 16}
PLAIN = (
    "fp32 fp16 fp16+master fp16+master+dynamic bf16 bf16+stochastic bf16+kahan bf16+master fp8 fp8+stochastic "
    "fp8+master"
)
SMALL = "fp32 fp16 fp16+dynamic fp16+master fp16+master+dynamic"


def table(title: str, names: str, seeds: int, steps: int, **more: float) -> None:
    print(f"\n{title}\n")
    print("| configuration | loss, geometric mean | ratio to fp32 | ± | verdict |")
    print("|---|---|---|---|---|")
    rows = []
    for name in names.split():
        start = time.perf_counter()
        rows += learn("network", name, seeds=seeds, steps=steps, **SHAPE, **more)
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr)
    for line in compare_learnings(rows):
        mean = 1.0
        for each in line.finals:
            mean *= each ** (1 / len(line.finals))
        said = f"{line.diverged} diverged" if line.diverged else "worse" if line.worse else ""
        print(f"| {line.label} | {mean:.2e} | {line.ratio:.3f} | {100 * (line.spread - 1):.1f} % | {said} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1500)
    asked = parser.parse_args()
    table("Learning rate 0.02", PLAIN, asked.seeds, asked.steps)
    table(
        "The loss times 2^-18, and the learning rate 5000",
        SMALL, asked.seeds, asked.steps, weight=2.0**-18, lr=5000,
    )  # fmt: skip


if __name__ == "__main__":
    main()
