"""Times of the NumPy lane on easy and on hard data: python benchmarks/numpy_lane.py [FORMAT ...]

The unit is nanoseconds of processor time per element, with one thread. Of the two numbers in a cell, the first is the
time without flags, the second the time with the flags of all elements. A time is the minimum of alternating rounds,
since other processes can only increase it. The last column is the cast of NumPy or ml_dtypes, if there is one.
`--elements N` (default 1,048,576), `--rounds N` (default 7).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from functools import partial

import numpy as np

import floatlab as fl

DIRECTIONS = ("RNE", "RTZ", "RTP", "RTO", "RNA", "SR")
FORMATS = {"fp16": "float16", "bf16": "bfloat16", "tf32": "", "e4m3": "float8_e4m3fn", "e8m0": "float8_e8m0fnu"}


def data(count: int) -> dict[str, np.ndarray]:
    """Return arrays of float32 with several distributions, and an array of float64, by name."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(count).astype(np.float32)
    wide = x * np.exp2(rng.integers(-30, 20, count)).astype(np.float32)
    odd = np.where(rng.random(count) < 0.5, np.inf, np.nan)
    return {
        "N(0, 1)": x,
        "N(0, 1) 2^-30…2^19": wide,  # in fp16, a third of these overflow or are subnormal
        "N(0, 1) 2^-16": x * np.float32(2.0**-16),
        "1 % inf and NaN": np.where(rng.random(count) < 0.01, odd, x).astype(np.float32),
        "float64, wide": wide.astype(np.float64),
    }


def peer(name: str, x: np.ndarray) -> Callable[[], object] | None:
    """Return the cast of NumPy or ml_dtypes; None if there is none."""
    if name == "float16":
        return lambda: x.astype(np.float16)
    try:
        import ml_dtypes

        kind = np.dtype(getattr(ml_dtypes, name))
    except (ImportError, AttributeError):
        return None
    return lambda: x.astype(kind)


def least(calls: list[Callable[[], object]], rounds: int, count: int) -> list[float]:
    """Return the nanoseconds per element of all calls."""
    found = [float("inf")] * len(calls)
    for _ in range(1 + rounds):
        for i, call in enumerate(calls):
            began = time.process_time_ns()
            call()
            found[i] = min(found[i], (time.process_time_ns() - began) / count)
    return found


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("formats", nargs="*", metavar="FORMAT", help=f"default: {' '.join(FORMATS)}")
    parser.add_argument("--elements", type=int, default=1 << 20, metavar="N")
    parser.add_argument("--rounds", type=int, default=7, metavar="N")
    given = parser.parse_args()
    print(f"| into | data | {' | '.join(DIRECTIONS)} | NumPy, ml_dtypes |")
    print(f"|---|---|{'---:|' * (len(DIRECTIONS) + 1)}")
    for format in given.formats or FORMATS:
        for name, x in data(given.elements).items():
            calls: list[Callable[[], object]] = []
            for direction in DIRECTIONS:
                how = {"context": fl.Context(direction, seed=1), "lane": "numpy", "threads": 1}
                encode = partial(fl.arrays.encode, x, format, **how)
                calls += [encode, partial(encode, return_flags=True)]
            theirs = peer(FORMATS.get(format, ""), x)
            with np.errstate(all="ignore"):
                found = least([*calls, *([theirs] if theirs else [])], given.rounds, given.elements)
            pairs = [f"{found[i]:.1f} / {found[i + 1]:.1f}" for i in range(0, len(calls), 2)]
            print(f"| {format} | {name} | {' | '.join(pairs)} | {f'{found[-1]:.1f}' if theirs else '–'} |", flush=True)


if __name__ == "__main__":
    main()
