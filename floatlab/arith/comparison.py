"""Comparisons (IEEE 754-2019 clause 5.11): four relations, quiet and signaling predicates."""

from __future__ import annotations

from enum import Enum

from floatlab.arith.operands import begin, is_infinite, is_nan
from floatlab.formats import Format
from floatlab.numbers.context import DEFAULT, Context, Flags
from floatlab.numbers.datum import Datum, NumberClass
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Relation(Enum):
    """How two data stand: exactly one of four."""

    LESS = "less"
    EQUAL = "equal"
    GREATER = "greater"
    UNORDERED = "unordered"


class Comparison(Record):
    """A predicate's answer; it is true or false as itself."""

    operation: str
    operands: tuple[Datum, ...]
    relation: Relation
    holds: bool
    flags: Flags

    def __bool__(self) -> bool:
        """Return whether the predicate holds."""
        return self.holds


def compare(
    a: Any, b: Any, format: Format | str | None = None, context: Context = DEFAULT, signaling: bool = False
) -> Comparison:
    """Return how a and b stand; a NaN is unordered with everything, and −0 equals +0.

    `signaling` makes any NaN raise invalid; else only signaling NaNs do. The operands may be of
    different formats: their values are compared, exactly.

    >>> compare("-0", "0", "fp16").relation.value, compare("nan", "1", "fp16").relation.value
    ('equal', 'unordered')
    """
    work = begin("compare", (a, b), format, context)
    x, y = work.operands
    if is_nan(x) or is_nan(y):
        loud = signaling or any(d.is_signaling or d.number_class is NumberClass.UNSUPPORTED for d in (x, y))
        return Comparison("compare", work.operands, Relation.UNORDERED, False, Flags.INVALID if loud else Flags.NONE)
    if is_infinite(x) or is_infinite(y):
        ranks = [(-1 if d.sign_bit else 1) if is_infinite(d) else 0 for d in (x, y)]
        order = ranks[0] - ranks[1]
    else:
        left, right = work.exact(0), work.exact(1)
        order = 0 if left == right else -1 if left < right else 1
    relation = Relation.LESS if order < 0 else Relation.GREATER if order else Relation.EQUAL
    return Comparison("compare", work.operands, relation, relation is Relation.EQUAL, Flags.NONE)


def _predicate(name: str, holds: tuple[Relation, ...], a: Any, b: Any, format: Any, signaling: bool) -> Comparison:
    found = compare(a, b, format, signaling=signaling)
    return found.replace(operation=name, holds=found.relation in holds)


def equal(a: Any, b: Any, signaling: bool = False, format: Format | str | None = None) -> Comparison:
    """Say whether a = b (compareQuietEqual, or compareSignalingEqual).

    >>> bool(equal("0.1", "0.2", format="fp16")), bool(equal("-0", "0", format="fp16"))
    (False, True)
    """
    return _predicate("equal", (Relation.EQUAL,), a, b, format, signaling)


def less(a: Any, b: Any, signaling: bool = False, format: Format | str | None = None) -> Comparison:
    """Say whether a < b (compareQuietLess, or compareSignalingLess).

    >>> bool(less("1", "2", format="fp16")), less("nan", "1", signaling=True, format="fp16").flags.names
    (True, ['invalid'])
    """
    return _predicate("less", (Relation.LESS,), a, b, format, signaling)


def less_equal(a: Any, b: Any, signaling: bool = False, format: Format | str | None = None) -> Comparison:
    """Say whether a ≤ b (compareQuietLessEqual, or compareSignalingLessEqual).

    >>> bool(less_equal("2", "2", format="fp16"))
    True
    """
    return _predicate("less_equal", (Relation.LESS, Relation.EQUAL), a, b, format, signaling)
