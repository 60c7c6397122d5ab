"""Arrays as Python prints them: nested lists, `array([[…]])`, `tensor([[…]])`, `Array([[…]])`, with their dtype."""

from __future__ import annotations

import re
from contextlib import suppress

import numpy as np

from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE
from floatlab.arrays.sources import ArraySource, HeldSource, array_format
from floatlab.arrays.types import DType
from floatlab.errors import FileFormatError, FloatlabError, LiteralError, printable, quoted
from floatlab.files.raw import parse_dtype
from floatlab.files.safe_open import length_of, named, open_file, read_bytes
from floatlab.files.text import CALL, MAX_TEXT, Reader
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.record import Record

MOST_AXES = 32
_HEAD = re.compile(rf"\s*(?:{CALL})?")
_INSIDE = re.compile(r"[^\[\]]*")
_GAP = re.compile(r"\s*,?\s*")
_HOLE = re.compile(r"^\s*,|,\s*,")
_SCALAR = re.compile(r"[^,()\[\]]*")
_KEYWORD = re.compile(
    r"\s*,\s*(\w+)\s*=\s*('[^']*'|\"[^\"]*\"|<[^<>]*>|\([^()]*\)|[\w.]+(?:\([^()]*\))?)"  # as in grad_fn=<MmBackward0>
)
_CLOSE = re.compile(r"\s*,?\s*\)\s*")
_DTYPE = re.compile(r"(?:dtype\()?['\"]?[=|]?((?:\w+\.)*)([<>]?\w+)['\"]?\)?")
_NUMPY_SCALAR = re.compile(r"(?:np|numpy)\.(\w+)\(([^()]*)\)")
_REMARK = re.compile(r"#[^\n]*")
_WORD, _SPACES = r"[^][(),\s]+", str.maketrans("[],", "   ")
_SHORT_ROW, _ROWS = 64, 1024  # rows of up to _SHORT_ROW numbers are read together, up to _ROWS at a time
_PYTHON = {"float": "float64", "int": "int64", "long": "int64", "short": "int16"}
_TORCH = {"float": "float32", "int": "int32"}
_LEFT_OUT = (
    "has an ellipsis (…), so some numbers are missing: print all numbers, after "
    "numpy.set_printoptions(threshold=sys.maxsize) or torch.set_printoptions(profile='full')"
)


class PrintedLayout(Record):
    """Where the numbers of a printed array are in the text, and the dtype that the text states or implies.

    If the text of an array of floats states no dtype, it implies the default of its library: float64 for NumPy, float32
    for others.

    `first` is the index of the first bracket, and `stop` is the index after the last one. Without brackets, as in
    `tensor(1.5)`, `first` and `stop` are the start and the end of the only number.
    """

    first: int
    stop: int
    kind: Format | DType | None  # None for lists, and for integers without a dtype in the text
    states_dtype: bool  # whether the text contains the dtype


@in_default_mode
def parse_nested(text: str, format: Format, name: str = "", own: bool = False) -> ArraySource:
    r"""Return the array in a nested list or a printed array.

    The numbers are rounded into the dtype that the text states or implies (`PrintedLayout`), otherwise into `format`.

    If `own` is true, the user asked for `format` for this array. A dtype that the text states must then be equal to
    `format`, and a dtype that the text only implies is ignored. Raises LiteralError.

    >>> from floatlab.formats import parse_format
    >>> found = parse_nested("tensor([[1, 2],\n [3, 4]], device='cuda:0', dtype=torch.float16)", parse_format("fp32"))
    >>> found.shape, found.kind
    ((2, 2), 'float16')
    """
    name = name or _glance(text)
    try:
        return _parse(text, format, name, own)
    except LiteralError as trouble:
        raise LiteralError(f"'{printable(name)}' {trouble}") from None


@in_default_mode
def open_nested(path: str, format: Format) -> ArraySource:
    """Open a file with a nested list or a printed array; # begins a comment. Raises FileFormatError."""
    text = _read(path)
    with named(path):
        try:
            return _parse(text, format, path, False)
        except LiteralError as trouble:
            raise FileFormatError(str(trouble)) from None


def has_dtype(text: str) -> bool:
    """Return whether a printed array states or implies a dtype; False for text that is not an array."""
    try:
        return layout_of(text).kind is not None
    except FloatlabError:
        return False


def file_has_dtype(path: str) -> bool:
    """Return whether the printed array in a file states or implies a dtype."""
    return has_dtype(_read(path))


def split_arrays(text: str) -> tuple[str, ...]:
    """Split text at the commas outside of brackets and parentheses.

    >>> split_arrays("[[1,2],[3,4]],[[1,2],[3,5]]"), split_arrays("1,2")
    (('[[1,2],[3,4]]', '[[1,2],[3,5]]'), ('1', '2'))
    """
    parts, depth, first = [], 0, 0
    for found in re.finditer(r"[][(),]", text):
        mark = found[0]
        depth = max(depth + (mark in "[(") - (mark in "])"), 0)
        if mark == "," and not depth:
            parts.append(text[first : found.start()])
            first = found.end()
    return (*parts, text[first:])


def layout_of(text: str) -> PrintedLayout:
    """Return where the numbers of a printed array are, and the dtype of the array; raises LiteralError."""
    if "..." in text or "…" in text:
        raise LiteralError(_LEFT_OUT)
    head = _HEAD.match(text)
    assert head is not None
    first, call = head.end(), head[1]
    if text.startswith("[", first):
        stop = text.rfind("]") + 1
        if not stop:
            raise LiteralError("has brackets that are not closed")
    else:
        found = _SCALAR.match(text, first)
        assert found is not None
        stop = found.end()
    keywords, at = dict[str, str](), stop
    if call:
        while (keyword := _KEYWORD.match(text, at)) is not None:
            keywords[keyword[1]] = keyword[2]
            at = keyword.end()
        closed = _CLOSE.match(text, at)
        at = len(text) if closed is None else closed.end()
        if closed is None and not text[stop:].strip():
            raise LiteralError(f"begins with {call}( and does not end with )")
        if closed is None:
            raise LiteralError(f"has {quoted(text[stop:].strip())} after its numbers; only dtype=… and ) may follow")
    if rest := text[at:].strip():
        raise LiteralError(f"has {quoted(rest)} after its end")
    if "dtype" in keywords:
        return PrintedLayout(first, stop, _parse_kind(keywords["dtype"]), True)
    if scalar := _NUMPY_SCALAR.search(text, first, min(stop, first + 1000)):
        return PrintedLayout(first, stop, _parse_kind(scalar[1]), True)
    if not call or all(text.find(mark, first, stop) < 0 for mark in ".en"):
        return PrintedLayout(first, stop, None, False)
    return PrintedLayout(first, stop, DOUBLE if call in ("array", "asarray", "matrix") else SINGLE, False)


def _glance(text: str) -> str:
    """Return a name for the array in `text`: the text on one line, cut if it is long."""
    line = " ".join(text[:200].split())
    return line if len(line) <= 60 and len(text) <= 200 else f"{line[:56]} …"


def _read(path: str) -> str:
    with open_file(path) as file, named(path):
        length = length_of(file)
        if length > MAX_TEXT:
            raise FileFormatError(f"has {length:,} bytes; text is read up to {MAX_TEXT:,}")
        raw = read_bytes(file, 0, length).removeprefix(b"\xef\xbb\xbf")
        if b"\0" in raw:
            raise FileFormatError("is neither text nor a file of arrays: --dtype NAME reads it as raw numbers")
    text = raw.decode("utf-8", "backslashreplace")
    return _REMARK.sub("", text) if "#" in text else text


def _parse_kind(text: str) -> Format | DType:
    """Return the format or the integer dtype with this name; raises LiteralError for other dtypes."""
    found = _DTYPE.fullmatch(text)
    name = found[2] if found else text
    name = (_TORCH if found and "torch" in found[1] else {}).get(name) or _PYTHON.get(name, name)
    try:
        kind = parse_dtype(name)[0]
    except FloatlabError:
        kind = np.dtype(bool)
    if isinstance(kind, Format) or kind.kind in "iu":
        return kind
    if kind.kind != "f":
        raise LiteralError(f"has dtype {quoted(text)}; supported are floats up to float64, and integers")
    return array_format(kind)


def _parse(text: str, format: Format, name: str, own: bool) -> ArraySource:
    layout = layout_of(text)
    kind = format if layout.kind is None or (own and not layout.states_dtype) else layout.kind
    if own and layout.states_dtype and kind != format:
        said = kind.name
        raise LiteralError(f"has dtype {said}, which contradicts @{format.name}: leave one out")
    reader = Reader(kind if isinstance(kind, Format) else DOUBLE)
    if text.startswith("[", layout.first):
        shape = _BracketReader(text, layout, reader).read()
    else:
        shape = ()
        try:
            reader.take(text[layout.first : layout.stop].strip())
        except LiteralError as trouble:
            raise LiteralError(f"is not a number: {trouble}") from None
    found = reader.array(name, shape)
    if isinstance(kind, Format):
        return found
    numbers = np.asarray(found.whole())
    with np.errstate(invalid="ignore"):
        whole = numbers.astype(kind)
    if (found.origin is not None and found.origin.inexact) or not np.array_equal(whole, numbers):
        raise LiteralError(f"has dtype {kind.name}, and numbers that are not of this dtype")
    return HeldSource(whole, name)


class _BracketReader:
    """Reads numbers in nested brackets; all rows must have the same depth and the same number of elements."""

    def __init__(self, text: str, layout: PrintedLayout, reader: Reader) -> None:
        self.text, self.first, self.stop, self.reader = text, layout.first, layout.stop, reader
        self.widths: dict[int, int] = {}  # the length of the lists at each depth
        self.leaf = 0  # the depth of the rows of numbers

    def read(self) -> tuple[int, ...]:
        """Read all numbers and return the shape; raises LiteralError, with the line number in text of several lines."""
        text, at, stop = self.text, self.first, self.stop
        counts = [0] * (MOST_AXES + 1)  # number of elements so far in the open list at each depth
        depth = 0
        while at < stop:
            mark = text[at]
            if mark == "[":
                depth += 1
                if depth > MOST_AXES:
                    self._fail(at, f"has more than {MOST_AXES} nested brackets")
                row = _INSIDE.match(text, at + 1)
                assert row is not None
                end = row.end()
                if text[end] == "[":
                    if row[0].strip():
                        self._fail(at, "has numbers and lists in one list")
                    counts[depth] = 0
                    at = end
                    continue
                self._take_row(at, depth, row[0])
                counts[depth - 1], at = self._take_more(counts[depth - 1], end + 1, depth)
                at -= 1
            elif mark == "]":
                self._close(at, depth, counts[depth])
            else:
                gap = _GAP.match(text, at)
                at = at if gap is None else gap.end()
                if text[at] not in "[]":
                    self._fail(at, "has numbers and lists in one list, or an extra comma")
                continue
            at += 1  # past the closing bracket
            depth -= 1
            counts[depth] += 1
            if not depth and at < stop:
                self._fail(at, "holds more than one array: text follows the last bracket of the first one")
            if text.startswith("[", at):
                self._fail(at, "has no comma between two lists")
        if depth:
            which = f"{depth} brackets that are" if depth > 1 else "a bracket that is"
            self._fail(stop, f"has {which} not closed")
        return tuple(self.widths[depth] for depth in range(1, self.leaf + 1))

    def _fail(self, at: int, what: str) -> None:
        line = self.text.count("\n", 0, at) + 1
        raise LiteralError(what + (f" (line {line:,})" if line > 1 or "\n" in self.text else ""))

    def _take_row(self, at: int, depth: int, row: str) -> None:
        self.leaf = self.leaf or depth
        if depth != self.leaf:
            self._fail(at, "has rows of numbers at different depths")
        if "," in row:
            if _HOLE.search(row):
                self._fail(at, "has a comma without a number before it")
            words = [word.strip() for word in row.split(",")]
            if not words[-1]:
                words.pop()
        else:
            words = row.split()
        if not words:
            self._fail(at, "has an empty list; arrays without numbers are not supported")
        if "(" in row:
            words = [self._bare(at, word) for word in words]
        try:
            self.reader.extend(words)
        except FloatlabError as trouble:
            self._fail(at, f"has something that is not a number: {trouble}")
        self._close(at, depth, len(words))

    def _take_more(self, count: int, at: int, depth: int) -> tuple[int, int]:
        """Read many short rows at once, beginning at position `at`.

        `count` is the number of rows that were read before. Returns the new number of rows, and the position after the
        last row read. Unusual or invalid rows are left to `_take_row`, which reports errors.
        """
        width = self.widths[depth]
        if width > _SHORT_ROW or depth == 1:
            return count, at
        rows = re.compile(rf"(?:\s*,\s*\[\s*(?:{_WORD}\s*,\s*){{{width - 1}}}{_WORD}\s*\]){{1,{_ROWS}}}")
        while (found := rows.match(self.text, at)) is not None:
            words = found[0].translate(_SPACES).split()
            with suppress(FloatlabError):
                self.reader.extend(words)
                count, at = count + len(words) // width, found.end()
                continue
            break
        return count, at

    def _bare(self, at: int, word: str) -> str:
        """Return the literal in a word such as `np.float32(1.5)`."""
        found = _NUMPY_SCALAR.fullmatch(word)
        if found is None:
            self._fail(at, f"has {quoted(word)} in place of a number")
            return ""
        if _parse_kind(found[1]) != self.reader.format:
            self._fail(at, f"has numbers of several dtypes, such as {quoted(found[1])}")
        return found[2]

    def _close(self, at: int, depth: int, count: int) -> None:
        wanted = self.widths.setdefault(depth, count)
        if count != wanted:
            what = "numbers" if depth == self.leaf else "lists"
            self._fail(at, f"has lists of {wanted:,} {what} and one of {count:,}")
