"""Diagnoses of blind cases: counts of right and wrong diagnoses, and the confusion matrix."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from floatlab.reduce.explain.diagnosis import diagnose

_SUMS = frozenset({"order", "fma", "accumulator", "compensated"})


@dataclass
class Trial:
    """Counts over blind cases; `wrong` holds the labels of wrong claims, `missed` those of other misses.

    `doubted` counts the cases that an ideal observer could not decide, for which several statuses are right; `decided`
    counts those of them that were diagnosed as what they are.
    """

    cases: int = 0
    status: int = 0
    name: int = 0
    placed: int = 0
    place: int = 0
    doubted: int = 0
    decided: int = 0
    wrong: list = field(default_factory=list)
    missed: list = field(default_factory=list)
    table: Counter = field(default_factory=Counter)

    def add(self, case):
        found = diagnose(case.x, case.y, case.actual, case.expected)
        names, label = set(found.names), f"{case.label}: {found.first} {sorted(found.names)}"
        allowed = frozenset().union(*case.names) | case.also
        in_doubt = found.status != case.status and found.status in case.statuses
        status = found.status == case.status or in_doubt
        name = names <= allowed | _SUMS if in_doubt else any(each <= names <= each | case.also for each in case.names)
        name = status and name
        self.cases += 1
        self.status += status
        self.name += name
        self.doubted += bool(case.statuses)
        self.decided += bool(case.statuses) and found.status == case.status
        self.table[case.label.partition(" float")[0].partition(" fp16")[0].partition(" bf16")[0], answer(found)] += 1
        if (not status and found.status != "unknown") or (status and names - allowed - (_SUMS if in_doubt else set())):
            self.wrong.append(label)
        elif not name:
            self.missed.append(label)
        if name and not in_doubt and isinstance(case.where, tuple) and case.where[0] in ("elements", "region"):
            self.placed += 1
            good = np.array_equal(mask_of(found, case.where[1].shape), filled(case.where[1], names))
            self.place += good
            if not good:
                self.missed.append(f"{case.label}: place")

    def summary(self):
        return (
            f"{self.cases} cases: status {self.status / self.cases:.2%}, name {self.name / self.cases:.2%}, "
            f"place {self.place / max(1, self.placed):.2%} of {self.placed}, wrong claims {len(self.wrong)}; "
            f"of which {self.doubted} cases allow doubt, {self.decided} of them decided"
        )


def answer(found):
    return f"{found.status}: {' '.join(sorted(set(found.names) - {'order', 'fma'})) or 'order'}"


def filled(mask, names):
    """Return the rectangle around the wrong elements if the diagnosis names a region."""
    if "region" not in names or not mask.any():
        return mask
    rows, columns = np.flatnonzero(mask.any(1)), np.flatnonzero(mask.any(0))
    made = np.zeros_like(mask)
    made[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] = True
    return made


def mask_of(found, shape):
    made = np.zeros(shape, bool)
    for cause in found.causes:
        if cause.name == "region":
            for (top, bottom), (left, right) in cause.where:
                made[top:bottom, left:right] = True
        elif cause.name in ("elements", "nan"):
            for index in cause.where:
                made[index] = True
    return made
