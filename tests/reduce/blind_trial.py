"""Diagnoses of blind cases: counts of right and wrong diagnoses, and the confusion matrix."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from floatlab.reduce.explain.diagnosis import diagnose

STATUSES = ("identical", "rounding", "bug", "unknown")


@dataclass
class Trial:
    """Counts over blind cases; `wrong` holds the labels of wrong claims, `missed` those of other misses."""

    cases: int = 0
    status: int = 0
    name: int = 0
    placed: int = 0
    place: int = 0
    wrong: list = field(default_factory=list)
    missed: list = field(default_factory=list)
    table: Counter = field(default_factory=Counter)

    def add(self, case):
        found = diagnose(case.x, case.y, case.actual, case.expected)
        names = set(found.names)
        status = found.status == case.status
        name = status and any(each <= names <= each | case.also for each in case.names)
        self.cases += 1
        self.status += status
        self.name += name
        self.table[case.label.partition(" float")[0].partition(" fp16")[0].partition(" bf16")[0], answer(found)] += 1
        allowed = frozenset().union(*case.names) | case.also
        definite = found.status != "unknown" and found.status not in case.statuses
        if (not status and definite) or (status and names - allowed):
            self.wrong.append(f"{case.label}: {found.first} {sorted(names)}")
        elif not name and found.status not in case.statuses:
            self.missed.append(f"{case.label}: {found.first} {sorted(names)}")
        if name and isinstance(case.where, tuple) and case.where[0] in ("elements", "region"):
            self.placed += 1
            good = np.array_equal(mask_of(found, case.where[1].shape), filled(case.where[1], names))
            self.place += good
            if not good:
                self.missed.append(f"{case.label}: place")

    def summary(self):
        return (
            f"{self.cases} cases: status {self.status / self.cases:.2%}, name {self.name / self.cases:.2%}, "
            f"place {self.place / max(1, self.placed):.2%} of {self.placed}, wrong claims {len(self.wrong)}"
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
