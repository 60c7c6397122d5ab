"""Times of simulated products and sums (against plain loops) and of `reveal` (against the published algorithm).

    pip install ml_dtypes
    python benchmarks/reductions.py [--only product,reveal,sums] [--rounds N] [--published N] [--markdown]

Products are 400 x 400, binary32, serial, with and without fused multiply-adds. They are compared with a plain C loop
that is compiled first (`cc -O3 -march=native -ffp-contract=off`), whose bits must be equal. Serial sums are compared
with NumPy's own loop, `numpy.add.accumulate` in the format, which also rounds every sum. Pairwise sums are compared
with `numpy.sum`, which adds 16-bit formats in higher precision. The calls alternate in one process. Times are the
shortest processor times of a few rounds, and ratios are medians over the rounds.

For `reveal`, the times are the processor time of `examine`, which includes replays of random data, and that of the
probing alone. They are compared with the published algorithm in tests/reduce/reveal/published.py. That algorithm
evaluates one probe at a time, and for matrix products a whole product for each probe. Therefore it is run only up to
--published terms (default 1024).
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import floatlab as fl
from floatlab.arrays.lanes import compiled
from floatlab.reduce.reveal.revelation import examine
from tests.reduce.reveal.published import multiplied, revealed

SIDE = 400
LOOP = """
void product(long n, const float *a, const float *b, float *c) {
    for (long i = 0; i < n; i++)
        for (long k = 0; k < n; k++)
            for (long j = 0; j < n; j++)
                c[i * n + j] = %s;
}
"""
BODIES = {
    "multiply, then add": "c[i * n + j] + a[i * n + k] * b[k * n + j]",
    "fused multiply-add": "__builtin_fmaf(a[i * n + k], b[k * n + j], c[i * n + j])",
}
# The times that the authors of the algorithm published, on their machine.
PUBLISHED = {
    ("numpy.sum", 4096): "0.36 s",
    ("numpy.dot", 4096): "0.37 s",
    ("numpy.matmul", 1024): "83 s",
    ("numpy.matmul", 4096): "infeasible",
}
Work = Callable[[], Any]


def table(rows: list[list[str]], markdown: bool) -> None:
    """Print rows as a table; the first row is the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    if markdown:
        rows.insert(1, ["-" * (width - (i > 1)) + ":" * (i > 1) for i, width in enumerate(widths)])
    for row in rows:
        cells = [f"{cell:{'<>'[i > 1]}{width}}" for i, (cell, width) in enumerate(zip(row, widths, strict=True))]
        print(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells), flush=True)
    print()


def seconds(time: float) -> str:
    """Return a time as text, to three digits."""
    return f"{time:.3g} s" if time >= 1 else f"{time * 1e3:.3g} ms"


def timed(clock: Callable[[], float], work: Work) -> float:
    """Return the time of `work` in seconds, by a clock."""
    began = clock()
    work()
    return clock() - began


def by_turns(first: Work, others: list[Work], rounds: int) -> list[tuple[float, float]]:
    """Call the functions in alternating rounds, after a warm-up.

    Return, for each function, its shortest processor time, and the median of its ratios to the first function.
    """
    works = [first, *others]
    for work in works:
        work()
    took = [[timed(time.process_time, work) for work in works] for _ in range(rounds)]
    best = [min(column) for column in zip(*took, strict=True)]
    return [(each, statistics.median(row[i] / max(row[0], 1e-9) for row in took)) for i, each in enumerate(best)]


def without_extension() -> AbstractContextManager[Any]:
    """Return a context in which floatlab does not find its extension."""
    return patch.object(compiled, "is_built", return_value=False)


def lanes() -> list[tuple[str, Callable[[], AbstractContextManager[Any]]]]:
    """Return the available lanes of floatlab.

    Each has a name, and a function that makes the context manager (for `with`) in which floatlab uses this lane.
    """
    mine: list[tuple[str, Callable[[], AbstractContextManager[Any]]]] = [("without extension", without_extension)]
    return [("with extension", nullcontext), *mine] if compiled.is_built() else mine


def within(context: Callable[[], AbstractContextManager[Any]], work: Work) -> Work:
    """Return a function that does the work in a context."""

    def inside() -> None:
        with context():
            work()

    return inside


def c_loop(body: str, folder: Path) -> Callable[[Any, Any], Any] | None:
    """Return a function that multiplies square matrices by a plain C loop; None if there is no compiler."""
    source, library = folder / "loop.c", folder / f"loop{abs(hash(body))}.so"
    source.write_text(LOOP % body)
    flags = ["-O3", "-march=native", "-ffp-contract=off", "-shared", "-fPIC"]
    try:
        subprocess.run(["cc", *flags, str(source), "-o", str(library)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    product = ctypes.CDLL(str(library)).product
    pointer = np.ctypeslib.ndpointer(np.float32, flags="C")
    product.argtypes, product.restype = [ctypes.c_long, pointer, pointer, pointer], None

    def multiply(a: Any, b: Any) -> Any:
        made = np.zeros_like(a)
        product(len(a), a, b, made)
        return made

    return multiply


def products(rounds: int, markdown: bool) -> None:
    """Print the times of simulated products and of the C loop."""
    a, b = np.random.default_rng(1).random((2, SIDE, SIDE), np.float32)
    rows = [[f"{SIDE} × {SIDE}, binary32", "who", "time", "× C"]]
    with tempfile.TemporaryDirectory() as folder:
        for body, text in BODIES.items():
            plain = c_loop(text, Path(folder))
            fma = body.startswith("fused")
            works = [within(lane, lambda fma=fma: fl.matmul(a, b, fma=fma)) for _, lane in lanes()]
            if plain is None:
                print("no C compiler: no ratios")
                plain = fl.matmul
            else:
                for _, lane in lanes():
                    with lane():
                        assert np.array_equal(plain(a, b).view(np.uint32), fl.matmul(a, b, fma=fma).view(np.uint32))
            names = ["C loop", *(f"floatlab, {name}" for name, _ in lanes())]
            for name, (best, ratio) in zip(
                names, by_turns(lambda plain=plain: plain(a, b), works, rounds), strict=True
            ):
                rows.append([body, name, seconds(best), f"{ratio:.2f}"])
    table(rows, markdown)


def orders(rounds: int, most: int, markdown: bool) -> None:
    """Print the times of `examine` and `reveal`, which find the order of the additions in a sum."""
    rows = [["target", "terms", "everything", "probing", "FPRev here", "ratio", "FPRev's authors"]]
    functions = {"numpy.sum": np.sum, "numpy.dot": lambda x: np.dot(x, np.ones_like(x))}

    def shortest(work: Work, rounds: int = rounds) -> float:
        return min(timed(time.process_time, work) for _ in range(rounds))

    for name in ("numpy.sum", "numpy.dot", "numpy.matmul"):
        for n in (64, 128, 256, 512, 1024, 2048, 4096):
            function = functions.get(name) or (multiplied(n) if n <= most else None)
            whole = shortest(lambda name=name, n=n: claimed(name, n))
            probing = shortest(lambda name=name, n=n: fl.reveal(name, n), 4 * rounds)
            theirs, ratio = "–", "–"
            if function is not None:
                took = shortest(lambda f=function, n=n: revealed(f, n), max(1, rounds if n <= 512 else 1))
                theirs, ratio = seconds(took), f"{probing / took:.2g}"
            rows.append(
                [name, f"{n:,}", seconds(whole), seconds(probing), theirs, ratio, PUBLISHED.get((name, n), "–")]
            )
    table(rows, markdown)


def claimed(name: str, n: int) -> None:
    """Call `examine` for a function; print a line if it claims no order."""
    found = examine(name, n)
    if found.claim is None:
        print(f"{name} {n}: no claim", found.replays[:1])


def sums(rounds: int, markdown: bool) -> None:
    """Print the times of simulated sums and of NumPy's loops."""
    rows = [["sum", "terms", "NumPy", *(f"floatlab {name}" for name, _ in lanes()), "× NumPy"]]
    types: dict[str, Any] = {"fp32": np.float32, "fp16": np.float16}
    try:
        import ml_dtypes

        types["bf16"] = ml_dtypes.bfloat16
    except ImportError:
        print("not installed: ml_dtypes (pip install ml_dtypes), without which NumPy has no loops for bf16")
    for format, dtype in types.items():
        for schedule, loop in (("serial", lambda x: np.add.accumulate(x)[-1]), ("numpy", np.sum)):
            for n in (10**5, 10**6):
                x = np.random.default_rng(1).standard_normal(n).astype(dtype)
                works = [
                    within(lane, lambda x=x, order=schedule, name=format: fl.sum(x, order, name)) for _, lane in lanes()
                ]
                if format == "fp32" or schedule == "serial":
                    assert float(fl.sum(x, schedule, format)) == float(loop(x)), (format, schedule)
                found = by_turns(lambda loop=loop, x=x: loop(x), works, rounds)
                ratios = " and ".join(f"{ratio:.3g}" for _, ratio in found[1:])
                rows.append([f"{format}, {schedule}", f"{n:,}", *(seconds(best) for best, _ in found), ratios])
    table(rows, markdown)


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--only", default="product,reveal,sums", metavar="WORD,...")
    parser.add_argument("--rounds", type=int, default=5, metavar="N")
    parser.add_argument(
        "--published",
        type=int,
        default=1024,
        metavar="N",
        help=("most terms of a matrix product for the published algorithm (1024)"),
    )
    parser.add_argument("--markdown", action="store_true")
    given = parser.parse_args()
    chosen = given.only.split(",")
    if "product" in chosen:
        products(given.rounds, given.markdown)
    if "reveal" in chosen:
        orders(given.rounds, given.published, given.markdown)
    if "sums" in chosen:
        sums(given.rounds, given.markdown)


if __name__ == "__main__":
    main()
