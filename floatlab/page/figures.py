"""Figures drawn by matplotlib (the optional dependency `plot`) for papers and slides."""

from __future__ import annotations

import os
from typing import Any

from floatlab.atomic_write import replacing
from floatlab.errors import FileFormatError, MissingPartError, printable, quoted
from floatlab.page.model import Chart
from floatlab.page.svg import SVG, SVG_TEXT

SIZE = (7.0, 3.8)  # inches


def require_matplotlib(path: str = "") -> None:
    """Raise MissingPartError with the install command if matplotlib is not installed.

    Also raise FileFormatError for a path whose extension is not a figure format.
    """
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise MissingPartError("--plot needs matplotlib: pip install 'floatlab[plot]'") from None
    if not path:
        return
    from matplotlib.backend_bases import FigureCanvasBase

    if _kind_of(path) not in (known := FigureCanvasBase.get_supported_filetypes()):
        few = ", ".join(f".{kind}" for kind in ("png", "pdf", "svg") if kind in known)
        raise FileFormatError(f"--plot {quoted(path)} has no extension of a figure format: use {few} …")


def _kind_of(path: str) -> str:
    return os.path.splitext(path)[1][1:].lower() or "png"


def chart_figure(chart: Chart, title: str, path: str) -> None:
    """Draw a chart's curves into a file; the extension of the file name (.png, .pdf, .svg) selects the format.

    Raises MissingPartError without matplotlib, and FileFormatError for a file that cannot be written.
    """
    require_matplotlib()
    from itertools import cycle
    from textwrap import fill

    from matplotlib.figure import Figure

    figure = Figure(figsize=SIZE, layout="constrained")
    axes = figure.add_subplot()
    styles = cycle(("-", "--", "-.", ":"))  # curves can be distinguished without colour, too
    for each in chart.curves:
        across, up = [x for x, _ in each.points], [y for _, y in each.points]
        axes.plot(across, up, next(styles), color=SVG.get(each.role, SVG_TEXT), label=each.label, linewidth=1.4)
    axes.set_xscale("log" if chart.log_across else "linear")
    axes.set_yscale("log" if chart.log_up else "linear")
    axes.set_xlabel(chart.across)
    axes.set_ylabel(chart.up)
    axes.set_title(fill(printable(title), 80), fontsize=9, color=SVG_TEXT, parse_math=False)
    axes.legend(fontsize=8, frameon=False)
    save_figure(figure, axes, path)


def save_figure(figure: Any, axes: Any, path: str) -> None:
    """Write a figure into a file; the extension of the file name selects the format. Raises FileFormatError."""
    axes.spines[["top", "right"]].set_visible(False)
    try:
        with replacing(path) as file:
            figure.savefig(file, dpi=150, format=_kind_of(path))
    except FileFormatError as trouble:
        raise FileFormatError(f"--plot {quoted(path)} cannot be written: it {trouble}") from None
    except (OSError, ValueError) as trouble:
        reason = getattr(trouble, "strerror", None) or str(trouble).partition("(")[0].strip()
        raise FileFormatError(f"--plot {quoted(path)} cannot be written: {reason}") from None
