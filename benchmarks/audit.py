"""Times of what an audit does: round a float32 file by recipes, decode it, and compute its errors.

    pip install ml_dtypes
    python benchmarks/audit.py [--elements N] [--rounds N] [--recipes NAME,...] [--markdown] [--sparse GIB]

All rows run in one process, alternately and after a warm-up, on the same file of normally distributed numbers, which is
in the system's cache. Times are the shortest processor time of a row, in nanoseconds per element. "script" is a plain
program for the same counts and errors, with NumPy and ml_dtypes. "audit" is the whole command `audit --to`.
--sparse GIB also audits a sparse file of this size in a separate process, and prints the peak memory of the process. To
measure the code for processors without AVX-512, build the extension with CFLAGS=-DFLOATLAB_MOST=3.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path

import numpy as np

from floatlab import arrays
from floatlab.arrays.lanes import compiled
from floatlab.arrays.round_trips.tally import tally

PIECE = 1 << 18  # the number of elements that are read at a time
LARGEST, BEYOND, SMALLEST = 448, float(np.nextafter(464.0, np.inf)), 2.0**-6
Row = Callable[[], object]


def script(path: Path) -> dict[str, object]:
    """Round the file to e4m3 and compute counts and errors, as a user would; numbers beyond 448 saturate."""
    kind = import_module("ml_dtypes").float8_e4m3fn
    x = np.load(path)
    finite = np.isfinite(x)
    y = np.where(finite, np.clip(x, -LARGEST, LARGEST), x).astype(kind).astype(np.float32)
    wide, rounded = x.astype(np.float64), y.astype(np.float64)
    error = rounded - wide
    nonzero = finite & (x != 0)
    relative = np.abs(error[nonzero]) / np.abs(wide[nonzero])
    return {
        "counts": [
            int(np.count_nonzero(each))
            for each in (
                ~finite, x == 0, x == y, np.abs(x) >= BEYOND, nonzero & (y == 0), (y != 0) & (np.abs(y) < SMALLEST),
                finite & ~np.isfinite(y),
            )
        ],
        "exponents": np.unique(np.frexp(x[nonzero])[1], return_counts=True),
        "range": (np.abs(x[finite]).max(), np.abs(x[nonzero]).min()),
        "errors": (np.abs(error).max(), relative.mean(), np.quantile(relative, 0.999), int(np.abs(relative).argmax())),
        "sums": [float((a * b).sum()) for a, b in ((error, error), (wide, wide), (rounded, rounded), (wide, rounded))],
    }  # fmt: skip


def pieces(path: Path, work: Callable[[np.ndarray], object]) -> None:
    """Read the file part by part into one buffer, and call `work` on each part."""
    buffer = np.empty(PIECE, np.float32)
    with path.open("rb", buffering=0) as file:
        file.seek(128)  # the header of a .npy file
        while count := file.readinto(buffer.view(np.uint8)):
            work(buffer[: count // 4])


def rows(path: Path, recipes: list[str]) -> dict[str, Row]:
    """Return the functions whose times are measured, by the names of their rows in the table."""
    found: dict[str, Row] = {"read": lambda: pieces(path, lambda x: None), "script, e4m3": lambda: script(path)}
    into = np.empty(PIECE, np.float32)

    def rounded(x: np.ndarray, lane: str) -> np.ndarray:
        return arrays.quantize(x, "e4m3", overflow="saturate", out=into[: x.size], threads=1, lane=lane)

    def measured(x: np.ndarray, lane: str) -> None:
        tally(x, rounded(x, lane), smallest=SMALLEST, threshold=BEYOND, lane=lane)

    def tallied(lane: str) -> None:
        for _ in range(times):
            tally(some, some_rounded, smallest=SMALLEST, threshold=BEYOND, lane=lane)

    some = np.load(path, mmap_mode="r").reshape(-1)
    times = -(-some.size // (1 << 20))
    some = np.array(some[: 1 << 20])
    some_rounded = arrays.quantize(some, "e4m3", overflow="saturate")
    for lane in ("compiled", "numpy") if compiled.is_built() else ("numpy",):
        found[f"e4m3 and tally, {lane}"] = partial(pieces, path, partial(measured, lane=lane))
        found[f"tally, {lane}"] = partial(tallied, lane)
        for name in ("mxfp4", "mxfp8_e4m3", "nvfp4"):
            for verb in (arrays.encode, arrays.quantize):
                work = partial(verb, format=name, lane=lane)
                found[f"{verb.__name__} {name}, {lane}"] = partial(pieces, path, work)
    try:
        audit = import_module("floatlab.auditing.survival.survey").audit_recipes
    except ImportError:
        return found
    return found | {f"audit --to {name}": partial(audit, str(path), name) for name in recipes}


def measure(found: dict[str, Row], count: int, rounds: int) -> dict[str, float]:
    """Return the shortest processor time of each row, in nanoseconds per element."""
    took = dict.fromkeys(found, float("inf"))
    for round in range(1 + rounds):
        for name, row in found.items():
            began = time.process_time()
            row()
            if round:  # round 0 is the warm-up
                took[name] = min(took[name], (time.process_time() - began) / count * 1e9)
    return took


def sparse(gibibytes: int, recipe: str) -> None:
    """Audit a sparse file in a separate process, and print its time and memory."""
    code = "import sys; from floatlab.auditing.survival.survey import audit_recipes as audit; audit(*sys.argv[1:])"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "sparse.npy")
        np.lib.format.open_memmap(path, "w+", np.float32, (gibibytes << 16, 1 << 12))
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code, path, recipe], check=True)
        seconds = time.perf_counter() - began
    memory = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10
    print(f"{gibibytes} GiB in {recipe}: {seconds:.0f} s, {memory} MiB of memory\n")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--elements", type=int, default=1 << 24)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--recipes", default="e4m3,bf16,mxfp4,nvfp4,e4m3/tensor,e4m3/128x128,int8/channel")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--sparse", type=int, metavar="GIB")
    given = parser.parse_args()
    count = given.elements >> 12 << 12
    if given.sparse:  # first, because the peak memory of a child process is never below that of its parent
        sparse(given.sparse, "e4m3")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "weights.npy")
        np.save(path, (np.random.default_rng(0).standard_normal((count >> 12, 1 << 12)) * 0.02).astype(np.float32))
        took = measure(rows(path, given.recipes.split(",")), count, given.rounds)
    table = [("row", "ns per element", "MB/s", "× faster than the script")]
    table += [(name, f"{ns:.2f}", f"{4e3 / ns:,.0f}", f"{took['script, e4m3'] / ns:.1f}") for name, ns in took.items()]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    if given.markdown:
        table.insert(1, tuple("-" * (width - (i > 0)) + ":" * (i > 0) for i, width in enumerate(widths)))
    for row in table:
        cells = [f"{cell:{'<>'[i > 0]}{width}}" for i, (cell, width) in enumerate(zip(row, widths, strict=True))]
        print(f"| {' | '.join(cells)} |" if given.markdown else "  ".join(cells))


if __name__ == "__main__":
    main()
