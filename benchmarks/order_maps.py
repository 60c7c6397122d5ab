"""Order maps of numpy.matmul under every OpenBLAS kernel that this processor can run, replayed bit for bit.

    python benchmarks/order_maps.py [--shapes N] [--most-terms N] [--kernels NAME,...] [--threads 1,2]
    python benchmarks/order_maps.py --target torch.matmul [--shapes N] …

An order map says, for each element of a matrix product, in which order its terms are added. Each kernel runs in a
separate process (`OPENBLAS_CORETYPE`), which checks the kernel that OpenBLAS has selected. The shapes are three fixed
ones and random ones: 1 to 600 rows and columns, 1 to `--most-terms` terms; half of the shapes are uniformly
distributed, half log-uniformly. For each shape, the map is made, and then two products of new random
matrices are replayed. `explained` is the share of elements for which the map has an order, `replayed` is the share of
elements whose replay has the same bits. With `--target`, the function of another library is examined instead, once for
each number of threads (OMP_NUM_THREADS).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from floatlab.reduce.reveal.order_map import order_map
from floatlab.reduce.reveal.sized_target import SizedTarget, values_of
from floatlab.reduce.reveal.targets import target_of
from tests.reduce.openblas_kernel import kernel as kernel_in_use

NUMPY = "numpy.matmul"
KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
FIXED = ((64, 64, 64), (400, 400, 400), (5, 33, 7))


def random_shapes(count: int, most_terms: int, seed: int) -> list[tuple[int, int, int]]:
    """Return random shapes: the sides of one half are log-uniformly distributed, those of the other half uniformly."""
    rng = np.random.default_rng(seed)
    most = np.array([600, most_terms, 600])
    by_magnitude = np.exp(rng.uniform(0, np.log(most), (count, 3))).astype(int)
    evenly = rng.integers(1, most + 1, (count, 3))
    shapes = np.where(np.arange(count)[:, None] % 2, evenly, by_magnitude)
    return [(int(m), int(k), int(n)) for m, k, n in shapes]


def measure(shapes: list[tuple[int, int, int]], name: str) -> None:
    """Map and replay products with the kernel of this process; write a line of JSON for each shape."""
    rng = np.random.default_rng(9)
    target = target_of(name, "matmul")
    print(json.dumps({"kernel": kernel_in_use() if name == NUMPY else target.device.words}), flush=True)
    for shape in shapes:
        for dtype in ("float32", "float64"):
            began = time.process_time()
            found = order_map(name, shape, dtype, kind="matmul")
            took = time.process_time() - began
            sized = SizedTarget(target, shape[1], dtype, (shape[0], shape[2]))
            alike = []
            for _ in range(2):
                a = rng.standard_normal(shape[:2]).astype(dtype)
                b = rng.standard_normal(shape[1:]).astype(dtype)
                alike.append(float((found.replay(a, b) == values_of(sized.multiply(a, b))).mean()))
            print(
                json.dumps(
                    {
                        "shape": shape, "dtype": dtype, "classes": len(found.classes), "explained": found.share,
                        "replayed": min(alike), "seconds": took, "products": found.products,
                    }
                ),
                flush=True,
            )  # fmt: skip


def measured(
    kernel: str, threads: int, shapes: list[tuple[int, int, int]], target: str = NUMPY
) -> list[dict[str, Any]]:
    """Measure in a process with one kernel; return its lines: the kernel, then one for each shape and dtype."""
    chosen = {"OPENBLAS_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    if target == NUMPY:
        chosen["OPENBLAS_CORETYPE"] = kernel
    command = [sys.executable, __file__, "--target", target, "--measure", json.dumps(shapes)]
    made = subprocess.run(command, env=os.environ | chosen, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in made.stdout.splitlines()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=str(__doc__).partition("\n")[0])
    parser.add_argument("--shapes", type=int, default=10, metavar="N", help="random shapes for each kernel (10)")
    parser.add_argument("--most-terms", type=int, default=5000, metavar="N")
    parser.add_argument("--kernels", default=",".join(KERNELS), metavar="NAME,...")
    parser.add_argument("--threads", default="1,2", metavar="N,...")
    parser.add_argument("--target", default=NUMPY, metavar="NAME", help="the function of another library")
    parser.add_argument("--verbose", action="store_true", help="a line for each shape")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        measure([tuple(shape) for shape in json.loads(given.measure)], given.target)
        return
    print("| kernel | threads | dtype | shapes | explained, least | replayed, least | exact | median | longest |")
    print("|---|---|---|---|---|---|---|---|---|")
    for kernel in given.kernels.split(",") if given.target == NUMPY else [given.target]:
        place = KERNELS.index(kernel) if kernel in KERNELS else len(KERNELS)
        for threads in map(int, given.threads.split(",")):
            shapes = [*FIXED, *random_shapes(given.shapes, given.most_terms, 100 * place + threads)]
            chosen, *rows = measured(kernel, threads, shapes, given.target)
            for dtype in ("float32", "float64"):
                own = [row for row in rows if row["dtype"] == dtype]
                least, replayed = min(row["explained"] for row in own), min(row["replayed"] for row in own)
                times = sorted(row["seconds"] for row in own)
                print(
                    f"| {kernel} ({chosen['kernel']}) | {threads} | {dtype} | {len(own)} | {100 * least:.4g} % "
                    f"| {100 * replayed:.4g} % | {sum(row['replayed'] == 1 for row in own)} "
                    f"| {times[len(times) // 2]:.2f} s | {times[-1]:.2f} s |",
                    flush=True,
                )
            for row in rows if given.verbose else [row for row in rows if row["replayed"] < 1]:
                print("   ", row, flush=True)


if __name__ == "__main__":
    main()
