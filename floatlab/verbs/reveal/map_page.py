"""The pages of `reveal` on a whole product: the orders of its elements, and what changes the bits of a row."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from floatlab.arrays.types import Array
from floatlab.page.model import Block, Gap, Line, Note, Page, Role, Row, Span, Strip, heading, hint, line
from floatlab.page.words import counted
from floatlab.record import Record
from floatlab.reduce.reveal.invariance import Invariance, circumstance_text
from floatlab.reduce.reveal.order_map_record import OrderClass, OrderMap
from floatlab.reduce.reveal.stripes import stripes_text

_MOST_ROWS, _MOST_COLUMNS, _MOST_CLASSES = 16, 48, 16
_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_ROLES = (Role.SIGNIFICAND, Role.SIGN, Role.EXPONENT, Role.LOST, Role.CODE, Role.IMPLICIT, Role.PLAIN)


def map_page(found: OrderMap) -> Page:
    """Return the page of an order map.

    Elements that are computed in the same way form a class: in the same order and by the same arithmetic. The page
    shows the computation and the positions of each class.

    >>> from floatlab.page.text_layout import to_text
    >>> from floatlab.reduce.reveal.order_map import order_map
    >>> def tail(a, b):
    ...     made = np.cumsum(a[:, :, None] * b, axis=1)[:, -1]
    ...     made[4:] = np.cumsum(a[4:, ::-1, None] * b[::-1], axis=1)[:, -1]
    ...     return made
    >>> print(to_text(map_page(order_map(tail, (6, 5, 4), kind="matmul"))))
      floatlab.tail: 6 × 5 × 4, 2 orders
      all 24 elements are explained: replays gave the same bits
    <BLANKLINE>
      A 66.7 %     serial
                   16 elements: rows 0–3, all columns
      B 33.3 %     reversed
                   8 elements: rows 4–5, all columns
    <BLANKLINE>
                   rows 0–3  A
                   rows 4–5  B
      one letter per block of columns: 0–3
    <BLANKLINE>
      probing      12 probes in 97 products of binary32
    <BLANKLINE>
    """
    rows, _, columns = found.shape
    title, blocks = _title_blocks(found)
    listed = found.classes[:_MOST_CLASSES]
    blocks.append(Gap())
    for i, each in enumerate(listed):
        blocks += _class_rows(each, i, rows, columns)
    if len(listed) < len(found.classes):
        blocks.append(hint(f"and {counted(len(found.classes) - len(listed), 'smaller class')}"))
    if len(found.classes) > 1:
        blocks += [Gap(), *_picture(found)]
    asked = f"{counted(found.probes, 'probe')} in {counted(found.products, 'product')} of {found.terms_format.name}"
    return Page((*blocks, Gap(), Row("probing", asked)), title)


class MapPicture(Record):
    """An order map drawn with a letter for each class; `lines` are the lines of text.

    A block is a rectangle of elements of one class. For each block, `places` has its line, column and width in
    the text. `heights` has the number of lines of each block. `elements` has the row and column of each block's first
    element in the product.
    """

    lines: tuple[Line, ...]
    places: tuple[tuple[int, int, int], ...]
    heights: tuple[int, ...]
    elements: tuple[tuple[int, int], ...]
    breadth: int  # the number of blocks side by side


def draw_map(found: OrderMap, width: int, height: int) -> MapPicture:
    """Return a picture of a map that fits into `width` and, if possible, into `height`.

    If there is room, each element has one letter. Otherwise, blocks of elements of the same class are reduced in
    proportion, down to one letter. Blocks that do not fit into the width are omitted at the right. Every block of rows
    has at least one line, even if the picture becomes higher than `height`.

    >>> from floatlab.page.model import text_of
    >>> from floatlab.reduce.reveal.order_map import order_map
    >>> from floatlab.verbs.reveal.map_page import draw_map
    >>> def tail(a, b):
    ...     made = np.cumsum(a[:, :, None] * b, axis=1)[:, -1]
    ...     made[4:] = np.cumsum(a[4:, ::-1, None] * b[::-1], axis=1)[:, -1]
    ...     return made
    >>> for line in draw_map(order_map(tail, (6, 5, 9), kind="matmul"), 40, 4).lines:
    ...     print(text_of(line))
      rows 0–3  AAAAAAAAA
                AAAAAAAAA
      rows 4–5  BBBBBBBBB
    """
    rows, columns = _blocks(found)
    names = _row_names(rows)
    margin = max(map(len, names)) + 4
    heights = _scaled([high - low + 1 for low, high in rows], max(height, len(rows)))
    widths = _scaled([high - low + 1 for low, high in columns], width - margin)
    lines: list[Line] = []
    places, elements, tall = [], [], []
    for (row, _), name, lines_high in zip(rows, names, heights, strict=True):
        letters, left = [], margin
        for (column, _), wide in zip(columns, widths, strict=False):
            label = int(found.labels[row, column])
            letters.append(Span(_letter(label) * wide, _ROLES[label % len(_ROLES)]))
            places.append((len(lines), left, wide))
            elements.append((row, column))
            tall.append(lines_high)
            left += wide
        more = [Span("…", Role.LABEL)] * (len(widths) < len(columns))
        lines.append(line(f"  {name:{margin - 4}}  ", *letters, *more))
        lines += [line(" " * margin, *letters, *more)] * (lines_high - 1)
    return MapPicture(tuple(lines), tuple(places), tuple(tall), tuple(elements), len(widths))


def class_page(found: OrderMap, number: int) -> Page:
    """Return the page of one class of a map. The page begins with the title of the map."""
    rows, _, columns = found.shape
    one = found.classes[number]
    others = [(i, each) for i, each in enumerate(found.classes[:_MOST_CLASSES]) if i != number]
    names = [(Span(_letter(i), _ROLES[i % len(_ROLES)]), f" {100 * each.share:.3g} %  ") for i, each in others]
    listed = [Row("others", line(*(part for name in names for part in name)))] if names else []
    return Page((*_title_blocks(found)[1], *_class_rows(one, number, rows, columns), *listed))


def _scaled(sizes: list[int], room: int) -> list[int]:
    """Reduce sizes in proportion so that their sum fits into `room`. Each size remains at least 1.

    If there are more than `room` sizes, only the first `room` sizes are returned (at least one).

    >>> _scaled([4, 2], 9), _scaled([60, 39, 1], 10), _scaled([1, 1, 1], 2)
    ([4, 2], [5, 3, 1], [1, 1])
    """
    if sum(sizes) <= room:
        return sizes
    spare, total = max(room - len(sizes), 0), sum(sizes)
    return [1 + spare * size // total for size in sizes][: max(room, 1)]


def invariance_page(found: Invariance) -> Page:
    """Return the page that says which circumstances change the bits of a row of the product."""
    rows, terms, columns = found.shape
    name = "function" if "<lambda>" in found.target else found.target
    title = f"{name}: {rows} × {terms} × {columns}, {found.dtype}"
    role = Role.GOOD if found.is_invariant else Role.FLAG
    blocks: list[Block] = [heading(title), Note(Span(found.verdict, role)), Gap()]
    blocks += (
        Row(each.name, Span(circumstance_text(each), Role.FLAG if each.changes else Role.GOOD))
        for each in found.circumstances
    )
    for each in found.circumstances:
        if each.changes and len(each.groups) <= _MOST_CLASSES:
            blocks += [Gap(), heading(f"{each.name}: equal bits")]
            blocks += [Row(str(i + 1), _numbers(group)) for i, group in enumerate(each.groups)]
    return Page(tuple(blocks), title)


def _title_blocks(found: OrderMap) -> tuple[str, list[Block]]:
    """Return the title of a map, and the first rows of its page: the title, and how many elements are explained."""
    rows, terms, columns = found.shape
    name = "function" if "<lambda>" in found.target else found.target
    size = f"{rows // found.batch} × {terms} × {columns}" + ("" if found.layout == "A@B" else f", {found.layout}")
    size = size if found.batch == 1 else f"{found.batch} products of {size}"
    title = f"{name}: {size}, {counted(len(found.classes), 'order')}"
    missing = sum(each.elements for each in found.classes if each.candidate is None)
    explained = "the element is" if rows * columns == 1 else f"all {rows * columns:,} elements are"
    settled: Note = Note(f"{explained} explained: replays gave the same bits")
    if missing:
        share = 100 * missing / (rows * columns)
        settled = Note(Span(f"the order of {share:.3g} % of the elements ({missing:,}) was not found", Role.FLAG))
    return title, [heading(title), settled]


def _class_rows(one: OrderClass, number: int, rows: int, columns: int) -> list[Block]:
    role = Role.FLAG if one.candidate is None else Role.VALUE
    return [
        Row(f"{_letter(number)} {100 * one.share:.3g} %", Span(one.text, role)),
        Row("", f"{counted(one.elements, 'element')}: {_where(one, rows, columns)}"),
    ]


def _where(one: OrderClass, rows: int, columns: int) -> str:
    return f"{stripes_text(one.rows, rows, 'rows')}, {stripes_text(one.columns, columns, 'columns')}"


def _letter(number: int) -> str:
    return _LETTERS[number] if number < len(_LETTERS) else "*"


def _runs(changes: Array, count: int) -> list[tuple[int, int]]:
    """Return the runs of equal rows or columns, as (first, last).

    `changes` is true where a row (or column) differs from the next one.
    """
    starts = [0, *(int(i) + 1 for i in np.flatnonzero(changes)), count]
    return [(low, high - 1) for low, high in pairwise(starts)]


def _blocks(found: OrderMap) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Return the runs of equal rows and those of equal columns of a map."""
    labels = found.labels
    rows = _runs((labels[1:] != labels[:-1]).any(axis=1), len(labels))
    return rows, _runs((labels[:, 1:] != labels[:, :-1]).any(axis=0), labels.shape[1])


def _row_names(rows: list[tuple[int, int]]) -> list[str]:
    return [f"rows {low}–{high}" if low < high else f"row {low}" for low, high in rows]


def _picture(found: OrderMap) -> list[Block]:
    """Draw the map with one letter per block of elements of the same class."""
    labels = found.labels
    rows, columns = _blocks(found)
    lines: list[Line] = []
    names = _row_names(rows[:_MOST_ROWS])
    width = max(map(len, names))
    for (row, _), name in zip(rows, names, strict=False):
        cells = [int(labels[row, column]) for column, _ in columns[:_MOST_COLUMNS]]
        lines.append(line(f"{name:{width}}  ", *(Span(_letter(i), _ROLES[i % len(_ROLES)]) for i in cells)))
    parts = [f"{low}–{high}" if low < high else str(low) for low, high in columns[:_MOST_COLUMNS]]
    shown = ", ".join(parts[:8]) + ", …" * (len(columns) > 8)
    more = "" if len(rows) <= _MOST_ROWS else f"; {len(rows) - _MOST_ROWS:,} more blocks of rows are not drawn"
    return [Strip("", tuple(lines)), hint(f"one letter per block of columns: {shown}{more}")]


def _numbers(group: tuple[int, ...]) -> str:
    """Return ascending numbers as text, with ranges.

    >>> _numbers((1, 2, 3, 7, 9))
    '1–3, 7, 9'
    """
    runs: list[list[int]] = []
    for each in group:
        if runs and each == runs[-1][1] + 1:
            runs[-1][1] = each
        else:
            runs.append([each, each])
    words = [str(low) if low == high else f"{low}–{high}" for low, high in runs]
    return ", ".join(words[:12]) + ", …" * (len(words) > 12)
