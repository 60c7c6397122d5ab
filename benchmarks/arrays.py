"""Times of array conversions: floatlab's lanes and all other installed libraries, as ratios to a copy.

    pip install ml_dtypes torch jax gfloat pychop apytypes
    python benchmarks/arrays.py [--elements N]... [--threads one|all] [--only WORD,...] [--markdown]

All libraries run in one process, alternately and after a warm-up, on the same array of normally distributed numbers
(float32; for fp32, float64). With one thread, the time is the median of the processor time of the process. With all
threads, it is the shortest wall time, since wall times depend on other processes. "new" is a call that creates its
result; "out" is a call that writes into an existing array, if the library has one. The ratio is to `numpy.copyto` of
the float array in the same rounds. A library that would take too long gets fewer elements; the last column has their
number. The number of jax's threads cannot be set, so its processor time includes all threads. pychop and apytypes are
measured only for formats with IEEE specials. To measure the code for processors without AVX-512, build the extension
with CFLAGS=-DFLOATLAB_MOST=3, and set ATEN_CPU_CAPABILITY=avx2 for torch.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import math
import os
import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from itertools import product

import numpy as np
from array_peers import (
    ABSENT,
    FORMATS,
    OPERATIONS,
    PEERS,
    TABLES,
    TASKS,
    THREADS,
    Call,
    Calls,
    buffer,
    floatlab,
    values,
)

EVERY_TASK = (*TASKS, *OPERATIONS)
ROUNDS = 7
FEW = 1 << 14  # number of elements of a trial run
MOST_SECONDS = 0.2  # most seconds for a run


def implementations(task: str, format: str) -> Iterator[tuple[str, Callable[[int], Calls]]]:
    """Yield the implementations of a task: the name, and a function that returns the calls for a number of elements."""
    lanes = {f"floatlab {lane}": partial(floatlab, lane) for lane in ("compiled", "numpy")}
    for name, make in {**lanes, **PEERS}.items():
        try:
            for _ in range(2):  # the first call may compile code or import modules
                _ = [call and call() for call in make(task, format, FEW)]
        except ABSENT[name in PEERS]:
            continue
        named = "ml_dtypes" if name == "numpy" and format not in ("fp16", "fp32") else name
        yield named, partial(make, task, format)


def timed(clock: Callable[[], float], call: Call) -> float:
    """Return the time of a call in seconds, by a clock."""
    began = clock()
    call()
    return clock() - began


def compare(task: str, format: str, count: int) -> list[tuple[str, list[float], int]]:
    """Measure all implementations of a task.

    Return, for each one: its name, the nanoseconds per element with a new result and with an existing array (NaN if
    there is no such call), and the number of elements.
    """
    clock = time.process_time if THREADS[0] == 1 else time.perf_counter
    x, copy = values(format, count), buffer(values(format, 1).dtype, count, 1)
    running: list[tuple[str, Calls, int]] = [("copy", (None, lambda: np.copyto(copy, x)), count)]
    for name, make in implementations(task, format):
        first = make(FEW)[0]
        each = min(timed(time.perf_counter, first) for _ in range(3)) / FEW
        some = min(count, max(FEW, int(MOST_SECONDS / each)))
        running.append((name, make(some), some))
    took: dict[tuple[str, int], list[float]] = {}
    for round in range(1 + ROUNDS):
        for name, calls, some in running:
            for i, call in enumerate(calls):
                if call:
                    ns = timed(clock, call) / some * 1e9
                    if round:  # round 0 is the warm-up
                        took.setdefault((name, i), []).append(ns)
                    time.sleep(0.01 * (THREADS[0] > 1))  # wait until the threads of the last call are idle
    middle = statistics.median if THREADS[0] == 1 else min
    return [(name, [middle(took.get((name, i), [math.nan])) for i in (0, 1)], some) for name, _, some in running]


def slower_cases(found: list[tuple[str, list[float], int]]) -> Iterator[str]:
    """Yield a line for each call in which another library is faster than floatlab's first lane."""
    mine = next((times for name, times, _ in found if name.startswith("floatlab")), [math.nan] * 2)
    for name, times, _ in found[1:]:
        for kind, ns, our in zip(("new", "out"), times, mine, strict=True):
            if ns < our and not name.startswith("floatlab"):
                yield f"{kind}, {name} {ns:.2f} ns, floatlab {our:.2f}"


def report(tasks: list[str], formats: list[str], count: int, markdown: bool) -> None:
    """Print a table, and the cases in which floatlab is slower."""
    rows, losses = [["task", "format", "library", "new, ns", "× copy", "out, ns", "× copy", "elements"]], []
    for task, format in product(tasks, formats):
        if task in OPERATIONS and format not in ("fp16", "bf16", "e4m3"):
            continue
        found = compare(task, format, count)
        if len(found) == 1:
            continue  # only the copy was measured: no library has this task
        for name, times, some in found:
            cells = [f"{each:.{places}f}" for ns in times for each, places in ((ns, 2), (ns / found[0][1][1], 1))]
            rows.append([task, format, name, *(cell.replace("nan", "–") for cell in cells), f"{some:,}"])
        losses += [f"- {task} {format}: {line}" for line in slower_cases(found)]
    how = "one thread, processor time" if THREADS[0] == 1 else f"{THREADS[0]} threads, shortest wall time"
    print(f"\n{count:,} elements, {how}\n")
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if markdown:
        rows.insert(1, ["-" * (width - (i > 2)) + ":" * (i > 2) for i, width in enumerate(widths)])
    for row in rows:
        cells = [f"{cell:{'<>'[i > 2]}{width}}" for i, (cell, width) in enumerate(zip(row, widths, strict=True))]
        print(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells))
    lines = ["floatlab is slower:", "", *losses] if losses else ["floatlab is slower nowhere."]
    print("", *lines, sep="\n", flush=True)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--elements", type=int, action="append", metavar="N", help="default: 1000000 and 16000000")
    parser.add_argument("--threads", choices=("one", "all"), action="append", help="default: one, then all")
    parser.add_argument(
        "--only", default="", metavar="WORD,...", help=f"some of {', '.join((*EVERY_TASK, *FORMATS, *TABLES))}"
    )
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    words = {word.strip() for word in given.only.split(",")} - {""}
    tasks, formats = (
        [each for each in all if each in words or not words & {*all}] for all in (EVERY_TASK, (*FORMATS, *TABLES))
    )
    for name in ("ml_dtypes", *PEERS):
        found = importlib.util.find_spec(name) is not None
        print(f"{name} {version(name)}" if found else f"not installed: {name} (pip install {name})")
    for count, threads in product(given.elements or (1_000_000, 16_000_000), given.threads or ("one", "all")):
        THREADS[0] = 1 if threads == "one" else os.cpu_count() or 1
        if importlib.util.find_spec("torch"):
            importlib.import_module("torch").set_num_threads(THREADS[0])
        with np.errstate(all="ignore"):
            report(tasks, formats, count, given.markdown)


if __name__ == "__main__":
    main()
