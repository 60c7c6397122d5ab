"""Whole arrays into formats: floatlab's lanes beside the peers that are installed, as ratios to a copy of the input.

    python benchmarks/arrays.py [elements]

All in one process, by turns; the median of the processor's time. float32 in, codes out.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import numpy as np

from floatlab.arrays import encode

ROUNDS = 5
PEERS = {
    "fp16": ("numpy", "float16"),
    "bf16": ("ml_dtypes", "bfloat16"),
    "e4m3": ("ml_dtypes", "float8_e4m3fn"),
    "e5m2": ("ml_dtypes", "float8_e5m2"),
}


def peer_of(format: str) -> tuple[str, Callable[[np.ndarray], object]] | None:
    """Return a peer's name and its cast, if it is installed."""
    package, name = PEERS[format]
    try:
        kind = np.dtype(getattr(__import__(package), name))
    except ImportError:
        return None
    return f"{package} {name}", lambda x: x.astype(kind)


def main() -> None:
    """Print nanoseconds an element, and the ratio to the copy."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 1 << 20
    x = np.random.default_rng(0).standard_normal(count).astype(np.float32)
    copy = np.empty_like(x)
    ways: dict[str, Callable[[], object]] = {"numpy.copyto": lambda: np.copyto(copy, x)}
    for format in PEERS:
        ways[f"floatlab {format}"] = lambda name=format: encode(x, name)
        ways[f"floatlab {format} RTZ"] = lambda name=format: encode(x, name, "RTZ")
        ways[f"floatlab {format} SR"] = lambda name=format: encode(x, name, "SR")
        if peer := peer_of(format):
            ways[f"{peer[0]}"] = lambda cast=peer[1]: cast(x)
    took: dict[str, list[float]] = {name: [] for name in ways}
    with np.errstate(all="ignore"):
        for _ in range(ROUNDS):
            for name, way in ways.items():
                began = time.process_time()
                way()
                took[name].append(time.process_time() - began)
    base = statistics.median(took["numpy.copyto"])
    for name, times in took.items():
        each = statistics.median(times)
        print(f"{name:<28} {each / count * 1e9:8.2f} ns an element   {each / base:7.1f} × the copy")


if __name__ == "__main__":
    main()
