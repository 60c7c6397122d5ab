"""The confusion matrix of diagnoses: `python -m benchmarks.diagnosis [cases of each kind] [first seed] [kinds]`."""

import sys
import time

from tests.reduce.blind_cases import INPUT_KINDS, KINDS, cases
from tests.reduce.blind_trial import Trial


def main(count: int, start: int, kinds: list[str]) -> None:
    """Print how generated cases of each kind are diagnosed, the totals, and every wrong diagnosis.

    `count` is the number of cases of each kind, and `start` the first seed. The default of `kinds` is all of them.
    """
    total = Trial()
    began = time.process_time()
    for kind in kinds or (*KINDS, *INPUT_KINDS):
        for case in cases(count, start, kind):
            total.add(case)
        rows = sorted(((n, answer) for (name, answer), n in total.table.items() if name == kind), reverse=True)
        print(f"{kind:28}", ", ".join(f"{n} {answer}" for n, answer in rows), flush=True)
    seconds = (time.process_time() - began) / total.cases
    print(f"\n{total.summary()}, {1000 * seconds:.0f} ms of processor time each")
    for head, labels in (("wrong claims", total.wrong), ("misses", total.missed)):
        print(f"\n{head}:", *(labels or ["none"]), sep="\n  ")


if __name__ == "__main__":
    words = [*sys.argv[1:], "20", "0"]
    main(int(words[0]), int(words[1]) if len(sys.argv) > 2 else 0, sys.argv[3:])
