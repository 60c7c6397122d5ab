"""The histogram of `compare` as text: a bar for each range of distances in ulps, and the page of one bar."""

from __future__ import annotations

from floatlab.arrays.compare.differences import Differences, Ulps
from floatlab.page.measures import bin_label, percent
from floatlab.page.model import Axis, AxisInterval, Block, Lane, Note, Page, Role, Span, heading, line
from floatlab.page.words import counted, plural


def histogram_blocks(found: Differences) -> list[Block]:
    """Return a heading, and a histogram with a row for each range of distances in ulps.

    The result is empty if no distance is above 0.
    """
    ulps = found.ulps
    if ulps is None or not ulps.count or not ulps.largest or not ulps.largest.value:
        return []
    most = max(count for _, _, count in ulps.histogram)
    lanes = []
    for low, high, count in ulps.histogram:
        label = line(f"{count:,}", Span(f"  {percent(count, ulps.count)}", Role.HINT))
        # Room for the label is kept on the right; the shortest bar is one character.
        bar = AxisInterval(0.0, 0.62 * count / most, label, line(f"{count:,}"), Role.CHANGED, heavy=True, ends=False)
        lanes.append(Lane(bin_label(low, high), (), (bar,)))
    head = f"Number of elements by their distance in ulps of {ulps.format.name}"
    return [heading(head), Axis(tuple(lanes))]


def bin_page(ulps: Ulps, place: int) -> Page:
    """Return the page of one bin of the histogram: the shares of the elements in, below and above this bin.

    >>> import numpy as np
    >>> from floatlab.arrays.compare.measure import compare
    >>> from floatlab.page.text_layout import to_text
    >>> x = np.float32([1, 2, 3, 4])
    >>> print(to_text(bin_page(compare(x, x + np.float32([0, 0, 1e-6, 2e-6])).ulps, 1)), end="")
      4 to 7 ulps: 2 of 4 elements, 50 %; 50 % are nearer, none is further apart
    """
    low, high, count = ulps.histogram[place]
    nearer = sum(each[2] for each in ulps.histogram[:place])
    sides = ((nearer, "nearer"), (ulps.count - nearer - count, "further apart"))
    said = [f"{percent(n, ulps.count)} are {words}" if n else f"none is {words}" for n, words in sides]
    where = f"{bin_label(low, high)} {plural(high, 'ulp')}: "
    share = f" of {counted(ulps.count, 'element')}, {percent(count, ulps.count)}; "
    return Page((Note(line(where, Span(f"{count:,}", Role.VALUE), share, Span(", ".join(said), Role.HINT))),))
