"""Speed of `vectors check` in lines per second, on generated vectors, in one process.

    python benchmarks/vectors.py [LINES]

For each function, vectors are first generated and written to a file, which `vectors check` then reads. Both speeds are
printed. The goal is 20,000 lines per second.
"""

import contextlib
import io
import sys
import tempfile
import time
from pathlib import Path

from floatlab.cli.main import main as floatlab
from floatlab.numbers.rounding import DEFAULT
from floatlab.vectors import generate_lines, parse_function

FUNCTIONS = ("f16_add", "f32_mulAdd", "f64_div", "f128_sqrt")
ROUNDS = 3


def measured(name: str, count: int, folder: Path) -> tuple[float, float]:
    """Return the lines generated and written per second, and the lines checked per second (best of several rounds)."""
    path = folder / f"{name}.txt"
    context = DEFAULT.replace(nan="x86")
    start = time.perf_counter()
    path.write_text("".join(f"{line}\n" for line in generate_lines(parse_function(name), context, lines=count)))
    written = time.perf_counter() - start
    checked = []
    for _ in range(ROUNDS):
        start = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()):
            status = floatlab(["vectors", "check", name, str(path)])
        checked.append(time.perf_counter() - start)
        assert status == 0
    return count / written, count / min(checked)


def main(count: int) -> None:
    print(f"{'':12} {'written':>10} {'checked':>10}  lines per second, {count:,} lines")
    with tempfile.TemporaryDirectory() as folder:
        for name in FUNCTIONS:
            written, checked = measured(name, count, Path(folder))
            print(f"{name:12} {written:10,.0f} {checked:10,.0f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
