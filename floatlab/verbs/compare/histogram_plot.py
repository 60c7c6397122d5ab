"""The histogram of `compare --plot`, drawn by matplotlib. `histogram_text` draws it as text."""

from __future__ import annotations

from floatlab.arrays.compare.differences import Differences
from floatlab.errors import printable
from floatlab.page.figures import SIZE, require_matplotlib, save_figure
from floatlab.page.measures import bin_label
from floatlab.page.model import Role
from floatlab.page.svg import SVG, SVG_TEXT
from floatlab.verbs.compare.page import verdict_words

_MANY = 8  # the labels of more bins than this do not fit side by side


def difference_figure(found: Differences, path: str) -> None:
    """Draw the histogram of distances in ulps into a file (.png, .pdf or .svg).

    Raises MissingPartError without matplotlib, and FileFormatError for a file that cannot be written.
    """
    require_matplotlib()
    from textwrap import fill

    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    ulps = found.ulps
    bins = _without_gaps(ulps.histogram) if ulps is not None else []
    labels = [bin_label(low, high).replace("from 2^", "2^") for low, high, _ in bins]
    axes.bar(range(len(bins)), [count for _, _, count in bins], color=SVG[Role.SIGNIFICAND])
    is_turned = len(bins) > _MANY
    axes.set_xticks(range(len(bins)), labels, rotation=45 if is_turned else 0, ha="right" if is_turned else "center")
    if bins:
        axes.set_yscale("log")
        axes.set_ylim(bottom=0.5)
    axes.set_xlabel("distance in ulps" + (f" of {ulps.format.name}" if ulps is not None else ""))
    axes.set_ylabel("elements")
    axes.set_title(fill(printable(verdict_words(found)), 80), fontsize=9, color=SVG_TEXT, parse_math=False)
    save_figure(figure, axes, path)


def _without_gaps(bins: tuple[tuple[int, int, int], ...]) -> list[tuple[int, int, int]]:
    """Return the bins and the empty bins between them, so that the axis has no gaps."""
    counts = {low: count for low, _, count in bins}
    lows = [0, *(1 << n for n in range(63))]
    kept = [low for low in lows if counts and min(counts) <= low <= max(counts)]
    return [(low, max(2 * low - 1, 0), counts.get(low, 0)) for low in kept]
