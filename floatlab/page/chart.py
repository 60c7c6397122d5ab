"""Charts from columns of numbers: letters and roles for the curves, and no more points than a picture can show."""

from __future__ import annotations

from floatlab.page.model import Chart, Curve, Line, Role, Span, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MARKS = "abcdefghijklmnopqrstuvwxyz0123456789"
REFERENCE = "·"
POINTS = 240  # of a curve
_ROLES = (Role.SIGN, Role.SIGNIFICAND, Role.EXPONENT, Role.LOST, Role.CODE, Role.IMPLICIT, Role.VALUE)


def thinned(count: int, most: int = POINTS) -> list[int]:
    """Return the places of at most so many of `count` things, evenly spread, with both ends.

    >>> thinned(5), thinned(101, 5)
    ([0, 1, 2, 3, 4], [0, 25, 50, 75, 100])
    """
    if count <= most:
        return [*range(count)]
    return [round(i * (count - 1) / (most - 1)) for i in range(most)]


def mark_of(place: int) -> str:
    """Return the letter of the curve at a place."""
    return MARKS[place % len(MARKS)]


def role_of(place: int) -> Role:
    """Return the role of the curve at a place."""
    return _ROLES[place % len(_ROLES)]


def curve(place: int | None, label: str, across: Sequence[float], up: Sequence[float]) -> Curve:
    """Return the curve at a place of a chart's list, or its reference (None), through as many points as can be seen.

    >>> curve(1, "master", [0, 1], [1.125, 1.25])
    Curve(mark='b', label='master', points=((0.0, 1.125), (1.0, 1.25)), role=<Role.SIGNIFICAND: 'significand'>)
    """
    points = tuple((float(across[i]), float(up[i])) for i in thinned(len(across)))
    if place is None:
        return Curve(REFERENCE, label, points, Role.HINT)
    return Curve(mark_of(place), label, points, role_of(place))


def named(place: int, label: str) -> Line:
    """Return the name of a curve with its letter before it, as a table has it."""
    return line(Span(mark_of(place), role_of(place)), " ", Span(label, Role.VALUE))


def legend(chart: Chart) -> Line:
    """Return all letters of a chart with what they stand for."""
    runs: list[Span | str] = []
    for each in chart.curves:
        runs += ["  " if runs else "", Span(each.mark, each.role), f" {each.label}".replace(" ", "\N{NO-BREAK SPACE}")]
    return line(*runs)
