"""Figures by matplotlib, the optional part `plot`: for papers and slides, where a page of text will not do."""

from __future__ import annotations

import os

from floatlab.errors import FileFormatError, MissingPartError, printable, quoted
from floatlab.render.theme import SVG, SVG_TEXT
from floatlab.views.differences import verdict_words
from floatlab.views.measures import bin_label
from floatlab.views.page import Role
from floatlab.writing import replacing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.arrays.errors import Differences
    from floatlab.views.page import Chart

_MANY = 8  # bins whose names do not fit side by side
_SIZE = (7.0, 3.8)  # inches


def require_matplotlib() -> None:
    """Raise MissingPartError, with what installs it, where matplotlib is not there."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingPartError("--plot needs matplotlib: pip install 'floatlab[plot]'") from None


def difference_figure(found: Differences, path: str) -> None:
    """Draw how many elements are how many ulps apart into a file, whose name says in what way (.png, .pdf, .svg).

    Raises MissingPartError without matplotlib, and FileFormatError for a file that cannot be written.
    """
    require_matplotlib()
    from textwrap import fill

    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    ulps = found.ulps
    bins = _without_gaps(ulps.histogram) if ulps is not None else []
    labels = [bin_label(low, high).replace("from 2^", "2^") for low, high, _ in bins]
    axes.bar(range(len(bins)), [count for _, _, count in bins], color=SVG[Role.SIGNIFICAND])
    turned: dict[str, Any] = {"rotation": 45, "ha": "right"} if len(bins) > _MANY else {}
    axes.set_xticks(range(len(bins)), labels, **turned)
    if bins:
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
    axes.set_xlabel("distance in ulps" + (f" of {ulps.format.name}" if ulps is not None else ""))
    axes.set_ylabel("elements")
    axes.set_title(fill(printable(verdict_words(found)), 80), fontsize=9, color=SVG_TEXT, parse_math=False)
    _save(figure, axes, path)


def chart_figure(chart: Chart, title: str, path: str) -> None:
    """Draw the curves of a chart into a file; raises MissingPartError and FileFormatError likewise."""
    require_matplotlib()
    from itertools import cycle
    from textwrap import fill

    from matplotlib.figure import Figure

    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    styles = cycle(("-", "--", "-.", ":"))  # told apart without colour, too
    for each in chart.curves:
        across, up = [x for x, _ in each.points], [y for _, y in each.points]
        axes.plot(across, up, next(styles), color=SVG.get(each.role, SVG_TEXT), label=each.label, linewidth=1.4)
    axes.set_xscale("log" if chart.log_across else "linear")
    axes.set_yscale("log" if chart.log_up else "linear")
    axes.set_xlabel(chart.across)
    axes.set_ylabel(chart.up)
    axes.set_title(fill(printable(title), 80), fontsize=9, color=SVG_TEXT, parse_math=False)
    axes.legend(fontsize=8, frameon=False)
    _save(figure, axes, path)


def _save(figure: Any, axes: Any, path: str) -> None:
    axes.spines[["top", "right"]].set_visible(False)
    kind = os.path.splitext(path)[1][1:] or "png"
    try:
        with replacing(path) as file:
            figure.savefig(file, dpi=150, format=kind)
    except FileFormatError as trouble:
        raise FileFormatError(f"--plot {quoted(path)} cannot be written: it {trouble}") from None
    except (OSError, ValueError) as trouble:
        reason = getattr(trouble, "strerror", None) or str(trouble).partition("(")[0].strip()
        raise FileFormatError(f"--plot {quoted(path)} cannot be written: {reason}") from None


def _without_gaps(bins: tuple[tuple[int, int, int], ...]) -> list[tuple[int, int, int]]:
    """Return bins with the empty ones between them: on an axis they take their room."""
    counts = {low: count for low, _, count in bins}
    lows = [0, *(1 << n for n in range(63))]
    kept = [low for low in lows if counts and min(counts) <= low <= max(counts)]
    return [(low, max(2 * low - 1, 0), counts.get(low, 0)) for low in kept]
