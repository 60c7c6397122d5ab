"""Layout of an axis in a given width: marks and intervals drawn to scale, and labels that never overlap."""

from __future__ import annotations

from floatlab.page.model import Axis, AxisInterval, Lane, Line, Mark, Role, Span, text_of
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Place = Callable[[float], float]

LITTLE_ROOM = 48  # with fewer columns than this, only the part `Axis.middle` of an axis is drawn
_BETWEEN = 2  # columns between labels on one line
_LEAST = 8


class _Ink(Record):
    """The characters with which an axis and its intervals are drawn."""

    thin: str
    thick: str
    left: str
    right: str
    both: str
    leader: str
    past_left: str
    past_right: str


class _Cells:
    """A line of character cells, each with its role."""

    __slots__ = ("cells",)

    def __init__(self, width: int, text: str = " ", role: Role = Role.PLAIN) -> None:
        self.cells = [(text, role)] * width

    def free(self, start: int, stop: int) -> bool:
        """Return whether the columns from `start` up to `stop` are blank; columns outside the line are ignored."""
        return all(text == " " for text, _ in self.cells[max(start, 0) : stop])

    def write(self, column: int, runs: Line) -> None:
        """Write `runs` over the previous characters, beginning at a column."""
        for run in runs:
            self.cells[column : column + len(run.text)] = [(ch, run.role) for ch in run.text]
            column += len(run.text)

    def line(self) -> Line:
        """Return the line, with adjacent characters of the same role joined into runs."""
        runs: list[Span] = []
        for text, role in self.cells:
            if runs and runs[-1].role is role:
                runs[-1] = Span(runs[-1].text + text, role)
            else:
                runs.append(Span(text, role))
        return tuple(runs)


def lanes_of(axis: Axis, width: int) -> list[tuple[str, list[Line], list[Line]]]:
    """For each lane, return its label, the lines above the axis line, and the axis line with all lines below it.

    >>> lane = Lane("x", marks=(Mark(0.25, "●", (Span("1"),)), Mark(0.75, "▼", (Span("here"),), pointer=True)))
    >>> [(label, above, rest)] = lanes_of(Axis((lane,)), 21)
    >>> for each in (*above, *rest):
    ...     print(text_of(each).rstrip())
                   ▼ here
    ─────●───────────────
         1
    """
    width = max(width, _LEAST)
    low, high = axis.middle if width < LITTLE_ROOM else (0.0, 1.0)

    def place(x: float) -> float:
        return (x - low) / (high - low)

    found, ink = [], _Ink(*axis.ink)
    for lane in axis.lanes:
        above = _pointers([mark for mark in lane.marks if mark.pointer], place, width, ink)
        below = _marks(lane, place, width, ink) + _spans(lane.spans, place, width, ink)
        found.append((lane.label, [each.line() for each in above], [each.line() for each in below] or [()]))
    return found


def _column(place: float, width: int) -> int:
    return min(max(int(place * (width - 1) + 0.5), 0), width - 1)


def _pointers(marks: list[Mark], place: Place, width: int, ink: _Ink) -> list[_Cells]:
    """Draw the pointers above the line; a pointer outside the range is drawn as an arrowhead at the nearer end."""
    row, labels = _Cells(width), _Cells(width)
    set_at = []
    for mark in sorted(marks, key=lambda mark: mark.priority):
        x = place(mark.place)
        column = _column(x, width)
        row.write(column, (Span(ink.past_left if x < 0 else ink.past_right if x > 1 else mark.symbol, mark.role),))
        set_at.append((mark, column))
    for mark, column in reversed(set_at):
        length = len(text_of(mark.label))
        if not length:
            continue
        if column + 2 + length <= width and row.free(column + 1, column + 2 + length + _BETWEEN):
            row.write(column + 2, mark.label)
        elif column - 1 - length >= 0 and row.free(column - 1 - length - _BETWEEN, column):
            row.write(column - 1 - length, mark.label)
        else:
            _label([labels], column, mark)
    return [each for each in (labels, row) if not each.free(0, width)]


def _marks(lane: Lane, place: Place, width: int, ink: _Ink) -> list[_Cells]:
    """Draw a line with its marks, and the marks' labels below it; a more important mark covers a less important one."""
    marks = [mark for mark in lane.marks if not mark.pointer]
    if not lane.marks:
        return []
    base = _Cells(width, ink.thin, Role.RULER)
    seen = [(mark, _column(place(mark.place), width)) for mark in marks if 0 <= place(mark.place) <= 1]
    seen.sort(key=lambda pair: pair[0].priority)
    for mark, column in seen:
        base.write(column, (Span(mark.symbol, mark.role),))
    rows = [_Cells(width) for _ in range(lane.rows)]
    while seen:
        mark, column = seen.pop()
        _label(rows, column, mark, ink.leader, {other for _, other in seen if other != column})
    return [base, *(row for row in rows if not row.free(0, width))]


def _label(
    rows: list[_Cells], column: int, mark: Mark, leader: str = "", waiting: set[int] | frozenset[int] = frozenset()
) -> None:
    """Write the label of a mark on the first line that has room near the mark's column.

    If no line has room, the short label is tried, and then the label is omitted. A leader (a stroke) is drawn from the
    mark to the label. `waiting` are the columns of marks that have no label yet: a label may cover or touch these
    columns only on the last line.
    """
    for label in (mark.label, mark.short):
        length = len(text_of(label))
        for depth, row in enumerate(rows if length else []):
            start = _spot(row, column, length, waiting if depth < len(rows) - 1 else frozenset())
            if start is not None:
                row.write(start, label)
                for upper in rows[:depth]:
                    upper.write(column, (Span(leader, Role.RULER),))
                return
            if not row.free(column - 1, column + 2):  # another label is in the path of the leader
                break


def _spot(row: _Cells, column: int, length: int, waiting: set[int] | frozenset[int]) -> int | None:
    """Return the start column that centres the label on `column` as well as possible, or None if there is no room."""
    width = len(row.cells)
    centred = column - length // 2
    starts = range(max(column - length + 1, 0), min(column, width - length) + 1)
    for start in sorted(starts, key=lambda start: abs(start - centred)):
        free = row.free(start - _BETWEEN, start + length + _BETWEEN)
        if free and not any(start - 1 <= other <= start + length for other in waiting):
            return start
    return None


def _spans(spans: tuple[AxisInterval, ...], place: Place, width: int, ink: _Ink) -> list[_Cells]:
    """Draw intervals without overlap, on as few lines as possible."""
    rows: list[_Cells] = []
    reached: list[float] = []
    bars: list[tuple[_Cells, AxisInterval]] = []
    for span in sorted(spans, key=lambda span: (span.start, span.end)):
        if place(span.end) <= 0 or place(span.start) >= 1:
            continue
        index = next((i for i, end in enumerate(reached) if end <= span.start), len(rows))
        if index == len(rows):
            rows.append(_Cells(width))
            reached.append(span.end)
        reached[index] = span.end
        if span.ends:
            _bin(rows[index], span, place(span.start), place(span.end), ink)
        else:
            first, last = _column(place(span.start), width), _column(place(span.end), width)
            rows[index].write(first, (Span((ink.thick if span.heavy else ink.thin) * (last - first + 1), span.role),))
            bars.append((rows[index], span))
    for row, span in bars:
        _beside(row, span, _column(place(span.start), width), _column(place(span.end), width))
    return rows


def _bin(row: _Cells, span: AxisInterval, start: float, end: float, ink: _Ink) -> None:
    """Draw an interval with a bar at each end; an end outside the axis has no bar."""
    width = len(row.cells)
    first, last = _column(start, width), _column(end, width)
    met = not row.free(first, first + 1)
    row.write(first, (Span((ink.thick if span.heavy else ink.thin) * (last - first + 1), span.role),))
    if start >= 0:
        row.write(first, (Span(ink.both if met or first == last else ink.left, Role.RULER),))
        first += 1
    if end <= 1:
        row.write(last, (Span(ink.both if first > last else ink.right, Role.RULER),))
        last -= 1
    for label in (span.label, span.short):
        length = len(text_of(label))
        spare = last - first + 1 - length
        if length and spare >= 2:
            row.write(first + spare // 2 - 1, (Span(" "), *label, Span(" ")))
            return


def _beside(row: _Cells, span: AxisInterval, first: int, last: int) -> None:
    """Write the label beside an interval that has no bars, if possible on the side that `span.before` selects."""
    for label in (span.label, span.short):
        length = len(text_of(label))
        after, before = (last + 2, 1, _BETWEEN), (first - 1 - length, _BETWEEN, 1)
        for column, left, right in ((before, after) if span.before else (after, before)) if length else ():
            room = column >= 0 and column + length <= len(row.cells)
            if room and row.free(column - left, column + length + right):
                row.write(column, label)
                return
