"""Times of calls with few elements, against NumPy's and ml_dtypes' casts: python benchmarks/small_calls.py [WORD ...]

Times are processor times of one thread. The cases alternate in one process; in each round, a case is called several
dozen times. The shortest time of all rounds counts, since other processes can only increase it. The ratio is to NumPy's
cast of the same float32 numbers to float16. Only lines that contain one of the words are shown. `--elements N` is the
number of elements (default 1,024, a multiple of the block lengths).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np

import floatlab as fl

ours = fl.arrays
ROUNDS, CALLS = 200, 20


def cases(count: int) -> dict[str, Callable[[], object]]:
    """Return the calls, by name."""
    rng = np.random.default_rng(1)
    x, y, z = (rng.standard_normal(count).astype(np.float32) for _ in range(3))
    wide, codes, halves = x.astype(np.float64), ours.encode(x, "e4m3"), ours.encode(x, "fp16")
    into, stochastic = np.empty(count, np.uint8), fl.Context("SR", seed=3)
    blocks = {name: ours.encode(x, name) for name in ("mxfp4", "mxfp8_e4m3", "nvfp4")}
    found: dict[str, Callable[[], object]] = {
        "numpy astype float16": lambda: x.astype(np.float16),
        "encode e4m3": lambda: ours.encode(x, "e4m3"),
        "encode e4m3, out": lambda: ours.encode(x, "e4m3", out=into),
        "encode e4m3 RTZ": lambda: ours.encode(x, "e4m3", "RTZ"),
        "encode e4m3 SR": lambda: ours.encode(x, "e4m3", context=stochastic),
        "encode e4m3, flags": lambda: ours.encode(x, "e4m3", return_flags=True),
        "encode e4m3, counts": lambda: ours.encode(x, "e4m3", return_flags="counts"),
        "encode fp16": lambda: ours.encode(x, "fp16"),
        "encode fp16 of float64": lambda: ours.encode(wide, "fp16"),
        "quantize e4m3": lambda: ours.quantize(x, "e4m3"),
        "quantize bf16": lambda: ours.quantize(x, "bf16"),
        "decode e4m3": lambda: ours.decode(codes, "e4m3"),
        "decode fp16": lambda: ours.decode(halves, "fp16"),
        "add bf16": lambda: ours.add(x, y, "bf16"),
        "add fp32": lambda: ours.add(x, y, "fp32"),
        "multiply fp16": lambda: ours.multiply(x, y, "fp16"),
        "divide fp16": lambda: ours.divide(x, y, "fp16"),
        "fma bf16": lambda: ours.fma(x, y, z, "bf16"),
        "quantize mxfp4": lambda: ours.quantize(x, "mxfp4"),
        "quantize mxfp8_e4m3": lambda: ours.quantize(x, "mxfp8_e4m3"),
        "quantize mxint8": lambda: ours.quantize(x, "mxint8"),
        "quantize nvfp4": lambda: ours.quantize(x, "nvfp4"),
        "encode mxfp4": lambda: ours.encode(x, "mxfp4"),
        "encode nvfp4": lambda: ours.encode(x, "nvfp4"),
        **{f"decode {name}": lambda given=given, name=name: ours.decode(given, name) for name, given in blocks.items()},
    }
    try:
        import ml_dtypes
    except ImportError:
        return found
    return {**found, "ml_dtypes astype e4m3": lambda: x.astype(ml_dtypes.float8_e4m3fn)}


def measured(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Return the time of every call in microseconds, the shortest of all rounds."""
    least = dict.fromkeys(calls, float("inf"))
    for round in range(1 + ROUNDS):
        for name, call in calls.items():
            began = time.process_time_ns()
            for _ in range(CALLS):
                call()
            took = (time.process_time_ns() - began) / CALLS / 1000
            if round:  # round 0 is the warm-up
                least[name] = min(least[name], took)
    return least


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("words", nargs="*", metavar="WORD", help="show only lines that contain one of these words")
    parser.add_argument("--elements", type=int, default=1024, metavar="N", help="default: 1024")
    given = parser.parse_args()
    calls = cases(given.elements)
    first = next(iter(calls))
    chosen = {k: v for k, v in calls.items() if k == first or not given.words or any(w in k for w in given.words)}
    found = measured(chosen)
    for name, took in found.items():
        print(f"{name:24} {took:8.2f} us {took / found[first]:8.2f} x")


if __name__ == "__main__":
    main()
