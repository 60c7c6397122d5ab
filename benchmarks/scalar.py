"""The time of a traced operation: floatlab's binary32 add and fma, compared with fpy2's untraced operations.

    pip install fpy2
    python benchmarks/scalar.py [ROUNDS]

floatlab's time includes reading the steps, the result and the flags; nothing is printed. Both libraries run alternately
in one process. A time is the shortest processor time of all rounds. The goal is that floatlab's add takes less time
than fpy2's. On an AMD EPYC (Zen 4) with Python 3.11, add takes 8.7 µs (fpy2: 19.6), fma 10.8 µs (fpy2: 26.5).
"""

import sys
import time

import floatlab as fl
from floatlab.formats import parse_format

COUNT = 2_000


def timed(work) -> float:
    start = time.process_time()
    for _ in range(COUNT):
        work()
    return 1e6 * (time.process_time() - start) / COUNT


def ours():
    fp32 = parse_format("fp32")
    a, b, c = (fl.encode(x, fp32) for x in ("1.1", "2.3e-4", "-0.7"))

    def add():
        done = fl.add(a, b, fp32)
        return done.result, done.flags, done.steps

    def fma():
        done = fl.fma(a, b, c, fp32)
        return done.result, done.flags, done.steps

    return {"add": add, "fma": fma}


def theirs():
    try:
        import fpy2
        from fpy2.ops import add, fma
    except ImportError:
        return {}
    context = fpy2.FP32
    a, b, c = (context.round(x) for x in (1.1, 2.3e-4, -0.7))
    return {"add": lambda: add(a, b, ctx=context), "fma": lambda: fma(a, b, c, ctx=context)}


def main(rounds: int) -> None:
    mine, other = ours(), theirs()
    if not other:
        print("fpy2 is not installed: pip install fpy2")
    for name, work in mine.items():
        pairs = [(timed(work), timed(other[name]) if other else float("nan")) for _ in range(rounds)]
        a, b = (min(column) for column in zip(*pairs, strict=True))
        print(f"{name:4} floatlab, traced {a:6.1f} µs   fpy2, untraced {b:6.1f} µs   ratio {a / b:.2f}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 9)
