"""Start-up: `floatlab show 1.5 --fp16` as a whole process, beside `python -c "import numpy"`.

    python benchmarks/startup.py [RUNS]

The two are run in turn, pair by pair, so that a change of the machine's speed touches both; what is
printed are medians, and the ratio's median and range over the pairs. The goal is at most 0.6.
"""

import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path


def wall(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def main(runs: int) -> None:
    program = shutil.which("floatlab", path=str(Path(sys.executable).parent))
    show = [program] if program else [sys.executable, "-m", "floatlab"]
    contestants = {
        "floatlab show 1.5 --fp16": [*show, "show", "1.5", "--fp16"],
        'python -c "import numpy"': [sys.executable, "-c", "import numpy"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    times: dict[str, list[float]] = {name: [] for name in contestants}
    for name, command in contestants.items():
        wall(command)  # warm the file cache
        times[name].clear()
    for _ in range(runs):
        for name, command in contestants.items():
            times[name].append(wall(command))
    for name, measured in times.items():
        print(f"{name:28} median {1000 * statistics.median(measured):6.1f} ms   min {1000 * min(measured):6.1f} ms")
    ours, numpy, _ = times.values()
    ratios = sorted(a / b for a, b in zip(ours, numpy, strict=True))
    print(
        f"ratio to import numpy        median {statistics.median(ratios):6.2f}      "
        f"from {ratios[0]:.2f} to {ratios[-1]:.2f}"
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 31)
