"""Where two arrays differ, in words (such as "only in every 8th column") and as a map."""

from __future__ import annotations

from floatlab.arrays.compare.differences import Differences, Extent, Map, Structure
from floatlab.page.measures import at_index, percent
from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, heading, hint, line
from floatlab.page.words import counted, listed

_FEW = 0.05  # rows or columns with differences are counted if they are at most this share of all
_NONE, _SHADES, _ALL = "·", "░▒▓", "█"  # signs for the share of differing elements in a part of the array
_SHARES = ("none", "up to a third", "two thirds", "more", "all")


def where_blocks(found: Differences) -> list[Block]:
    """Describe the positions of the differences in words; the list is empty if nothing differs."""
    structure, noun = (found.failing, "beyond tolerance") if found.failing else (found.differing, "that differ")
    if structure is None:
        return []
    noun = noun if structure.count > 1 else noun.replace("differ", "differs")
    head = f"Where: {counted(structure.count, 'element')} {noun}"
    rows = [Row("", words) for words in where_words(structure)]
    return [heading(head), *rows]


def map_page(found: Differences) -> Page:
    """Return the page of the positions of differences: in words, and as a map with a sign for each part of the array.

    >>> import numpy as np
    >>> from floatlab.arrays.compare.measure import compare
    >>> from floatlab.page.text_layout import to_text
    >>> x = np.zeros((6, 40))
    >>> y = x.copy()
    >>> y[2:4, 10:21] = 1
    >>> print(to_text(map_page(compare(x, y))), end="")
      Where: 22 elements beyond tolerance
                   exactly the block [2:4, 10:21]
    <BLANKLINE>
      0 ····················
      1 ····················
      2 ·····█████▒·········
      3 ·····█████▒·········
      4 ····················
      5 ····················
      a sign stands for 2 columns, a line begins with the number of its first row:
      · none  ░ up to a third  ▒ two thirds  ▓ more  █ all
    """
    none = "Arrays of these shapes have no elements in common." if found.shape is None else "No element differs."
    return Page(tuple(map_blocks(found)) or (Note(none),))


def map_blocks(found: Differences) -> list[Block]:
    """Describe the positions of the differences in words and as a map; the list is empty if nothing differs."""
    structure = found.failing or found.differing
    blocks = where_blocks(found)
    if structure is not None and structure.size > 1:
        blocks += [Gap(), *_map_rows(structure.map)]
    return blocks


def _map_rows(found: Map) -> list[Block]:
    (rows, columns), (down, across) = found.sides, found.part
    blocks: list[Block] = []
    for y, counts in enumerate(found.counts):
        height = min(down, rows - y * down)
        signs = [_sign(count, height * min(across, columns - x * across)) for x, count in enumerate(counts)]
        place = "" if rows == 1 else f"{y * down:>{len(str(rows))}} "
        drawn = (Span(sign, Role.HINT if sign == _NONE else Role.CHANGED) for sign in signs)
        blocks.append(Note(line(Span(place, Role.LABEL), *drawn)))
    parts = [counted(n, noun) for n, noun in ((down, "row"), (across, "column" if rows > 1 else "element")) if n > 1]
    scale = f"a sign stands for {' of '.join(parts)}" if parts else "a sign stands for an element"
    scale += ", a line begins with the number of its first row" if rows > 1 else ""
    shares = "  ".join(f"{sign} {words}" for sign, words in zip((_NONE, *_SHADES, _ALL), _SHARES, strict=True))
    return [*blocks, hint(f"{scale}:"), hint(shares)]


def _sign(count: int, size: int) -> str:
    """Return the map's character for a part of the array with `size` elements, of which `count` differ."""
    if count in (0, size):
        return _ALL if count else _NONE
    return _SHADES[len(_SHADES) * count // size]


def where_words(structure: Structure) -> list[str]:
    """Return descriptions of the elements' positions in words, the most specific description first.

    >>> import numpy as np
    >>> from floatlab.arrays.compare.differences import Finder
    >>> finder = Finder((400, 400))
    >>> finder.add(np.arange(7, 160_000, 8))
    >>> where_words(finder.result())
    ['only in every 8th column, from column 7 on']
    """
    s = structure
    if s.count == s.size:
        return ["everywhere: every element"]
    if s.count == 1:
        return [f"only{at_index(tuple(each.low for each in s.extents))}"]
    words = [said for axis, each in enumerate(s.extents) for said in _axis_words(s, axis, each)]
    if s.last - s.first + 1 == s.count:
        ends = "the last" if s.last == s.size - 1 else "the first" if not s.first else ""
        words.insert(
            0, f"exactly {ends} {s.count:,} elements" if ends else (f"{s.count:,} consecutive elements in memory")
        )
    elif s.first >= s.size // 2:
        rest = s.size - s.first
        words.append(f"only among the last {counted(rest, 'element')} ({percent(rest, s.size)})")
    if 2 * s.box <= s.size and s.box > s.count and sum(each.low < each.high for each in s.extents) > 1:
        inside = ", ".join(f"{each.low}:{each.high + 1}" for each in s.extents)
        words.append(f"inside the block [{inside}], in {percent(s.count, s.box)} of it")
    elif s.box == s.count and len(s.shape) > 1 and not words:
        words.append(f"exactly the block [{', '.join(f'{each.low}:{each.high + 1}' for each in s.extents)}]")
    return words or [_spread_words(s)]


def _axis_words(s: Structure, axis: int, extent: Extent) -> list[str]:
    """Describe the pattern of positions along one axis; the list is empty if there is no pattern."""
    length = s.shape[axis]
    if length == 1:
        return []
    if extent.low == extent.high:
        return [f"all in {_along(s, axis, extent.low)}"] if len(s.shape) > 1 else []
    if extent.distinct is None or extent.step is None:
        return []
    if extent.step > 1 and extent.distinct > 2:
        whole = extent.distinct == len(range(extent.low, extent.high + 1, extent.step))
        every = "" if whole else ", not in all of them"
        return [
            f"only in every {_ordinal(extent.step)} {_along(s, axis)}, from {_along(s, axis, extent.low)} on{every}"
        ]
    if len(s.shape) > 1 and extent.distinct <= _FEW * length:
        return [f"only in {extent.distinct:,} of {length:,} {_along(s, axis, many=True)}"]
    return []


def _along(s: Structure, axis: int, index: int | None = None, many: bool = False) -> str:
    """Return a name for one or more positions along an axis, such as `row 3`, `columns` or `index 3 of axis 2`."""
    names = {1: ("element",), 2: ("row", "column")}.get(len(s.shape))
    noun, of = (names[axis], "") if names else ("indice" if many else "index", f" of axis {axis}")
    return f"{noun}{'s' * many}{'' if index is None else f' {index}'}{of}"


def _ordinal(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def _spread_words(s: Structure) -> str:
    parts = [
        f"{extent.distinct:,} of {s.shape[axis]:,} {_along(s, axis, many=True)}"
        for axis, extent in enumerate(s.extents)
        if extent.distinct is not None and s.shape[axis] > 1 and len(s.shape) > 1
    ]
    share = percent(s.count, s.size)
    return f"spread: {share} of all elements" + (f", in {listed(parts)}" if parts else "")
