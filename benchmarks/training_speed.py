"""Times of training: a million steps of one weight with each remedy, and a network with a thousand parameters.

    python -m benchmarks.training_speed [--steps 1000000] [--rounds 3] [--numpy]

Times are the shortest wall times of a few rounds, with the compiled extension if it was built. --numpy adds the NumPy
lane, with a thousandth of the steps.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from floatlab import train
from floatlab.training.learner import Learner
from floatlab.training.networks import make_problem
from floatlab.training.setup import USUAL

NETWORKS = ("fp32", "fp16+master+dynamic", "bf16+stochastic", "fp8+master")


def shortest(what: Callable[[], object], rounds: int) -> float:
    """Return the shortest wall time of a few rounds."""
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        what()
        times.append(time.perf_counter() - start)
    return min(times)


def scalar(name: str, steps: int, lane: str | None, optimizer: str | None = None) -> None:
    """Do `steps` steps of one weight; only the final weight is recorded."""
    given = {"update": "1e-7"} if optimizer is None else {"gradient": "1e-3", "lr": "1e-4", "optimizer": optimizer}
    train("1.125", steps=steps, remedies=[name], every=steps, lane=lane, **given)


def network(name: str) -> None:
    """Do a thousand steps of a network with 1,009 parameters."""
    Learner(make_problem("network"), name, every=100).advance(1000)


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--numpy", action="store_true")
    asked = parser.parse_args()
    print(f"| one weight | seconds for {asked.steps:,} steps |\n|---|---|")
    rows = [(name, None) for name in USUAL] + [("fp32", "momentum"), ("fp32", "adam"), ("bf16+kahan", "adam")]
    for name, optimizer in rows:
        seconds = shortest(lambda: scalar(name, asked.steps, None, optimizer), asked.rounds)  # noqa: B023
        line = f"{seconds:.3f}"
        if asked.numpy:
            few = max(asked.steps // 1000, 1)
            plain = shortest(lambda: scalar(name, few, "numpy", optimizer), asked.rounds)  # noqa: B023
            line += f" (NumPy: {few / plain:,.0f} steps per second)"
        print(f"| {name}{', ' + optimizer if optimizer else ''} | {line} |")
    print("\n| 1,009 parameters | seconds for 1,000 steps |\n|---|---|")
    for name in NETWORKS:
        print(f"| {name} | {shortest(lambda: network(name), asked.rounds):.1f} |")  # noqa: B023


if __name__ == "__main__":
    main()
