"""Honest pairs: products of one input by NumPy under two OpenBLAS kernels, or by two different calls."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tests.reduce.blind_cases import inputs
from tests.reduce.blind_ways import RUNS

KERNELS = ("Prescott", "Nehalem", "Sandybridge", "Haswell", "Zen", "SkylakeX")
_ROOT = Path(__file__).parents[2]
_WORK = """
import sys
import numpy as np
from tests.reduce.blind_ways import run
for line in sys.stdin:
    folder, how, seed = line.split("\\t")
    x, y = np.load(folder + "/x.npy"), np.load(folder + "/y.npy")
    made = x @ y if how == "whole" else run(x, y, np.random.default_rng(int(seed)), how)
    np.save(folder + "/made.npy", made)
    print("done", flush=True)
"""


class Kernels:
    """Processes in which NumPy multiplies with a kernel and a number of threads; each is started when it is needed."""

    def __init__(self, folder):
        self.folder, self.processes = Path(folder), {}

    def product(self, kernel, threads, x, y, how, seed):
        """Return the product of x and y; `how` is "whole" or one of `RUNS`."""
        process = self.processes.get((kernel, threads))
        if process is None:
            variables = {**os.environ, "OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": str(threads)}
            process = self.processes[kernel, threads] = subprocess.Popen(
                [sys.executable, "-c", _WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                env=variables, cwd=_ROOT,
            )  # fmt: skip
        np.save(self.folder / "x.npy", x)
        np.save(self.folder / "y.npy", y)
        process.stdin.write(f"{self.folder}\t{how}\t{seed}\n")
        process.stdin.flush()
        # A processor without the kernel's instructions ends the process.
        return np.load(self.folder / "made.npy") if process.stdout.readline() else None

    def close(self):
        for process in self.processes.values():
            process.stdin.close()
            process.wait()
            process.stdout.close()


@contextmanager
def kernels(folder):
    made = Kernels(folder)
    try:
        yield made
    finally:
        made.close()


def shape_of(rng):
    if rng.random() < 0.4:
        return tuple(int(n) for n in rng.choice([1, 2, 5, 16, 31, 33, 37, 48, 64, 97, 100, 128, 130], 3))
    return tuple(int(np.exp(rng.uniform(0, np.log(600)))) for _ in range(3))


def pair(seed, library):
    """Return inputs, two correct products of them, and their description; None if the products are identical."""
    rng = np.random.default_rng([seed, 77])
    m, k, n = shape_of(rng)
    if m * k * n > 1 << 23 or k < 3:
        return None
    distribution = str(rng.choice(["normal", "positive", "lognormal", "sparse", "badly scaled"]))
    x, y = inputs(rng, (m, k, n), str(rng.choice(["float32", "float64"])), distribution)
    made, words = [], []
    first = str(rng.choice(KERNELS))
    for kernel in (first, first if rng.random() < 0.6 else str(rng.choice(KERNELS))):
        how = "whole" if not made and rng.random() < 0.8 else str(rng.choice(["whole", *RUNS]))
        threads = int(rng.integers(1, 3))
        made.append(library.product(kernel, threads, x, y, how, int(rng.integers(1 << 30))))
        words.append(f"{kernel} {threads} {how}")
    if any(each is None for each in made) or np.array_equal(*made):
        return None
    return x, y, *made, f"seed {seed} {x.dtype} {distribution} {m}x{k}x{n}: {' and '.join(words)}"
