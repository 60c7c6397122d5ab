"""Start-up time: `floatlab show 1.5 --fp16` as a process, compared with `python -c "import numpy"`.

    python benchmarks/startup.py [RUNS]

The two commands run alternately in pairs, so that a change of the machine's speed affects both. The output has the
medians of the times, and the median and the range of the ratio over the pairs. The goal is a ratio of at most 0.6.
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
    commands = {
        "floatlab show 1.5 --fp16": [*show, "show", "1.5", "--fp16"],
        'python -c "import numpy"': [sys.executable, "-c", "import numpy"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    times: dict[str, list[float]] = {name: [] for name in commands}
    for name, command in commands.items():
        wall(command)  # warm the file cache
        times[name].clear()
    for _ in range(runs):
        for name, command in commands.items():
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
