"""Numbers as text: rows in a file, or a list on the command line. Each number is rounded once into a format."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from io import BufferedReader
from math import isfinite
from typing import IO

import numpy as np

from floatlab.arrays.conversion import encode as encode_all
from floatlab.arrays.conversion import quantize
from floatlab.arrays.lanes.parameters import DOUBLE, container
from floatlab.arrays.sources import CHANGED, ArraySource, HeldSource, Origin, Source, array_format, native_dtype
from floatlab.arrays.types import Array
from floatlab.errors import FileFormatError, FloatlabError, LiteralError, counted, quoted
from floatlab.files.safe_open import length_of, named, open_file
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import read

MAX_TEXT = 1 << 26  # the largest text file in bytes
MAX_EXACT = 1 << 18  # the most literals that are read exactly, which is slow; those from the cache do not count
MAX_LINE = 1 << 22
_BATCH = 1 << 16  # the number of literals that are rounded at once
_DIGITS = 15  # decimals of up to this many digits are distinct in binary64
_SHORT = 40  # literals shorter than this are cached
# The beginning of a printed array: the name of a constructor.
CALL = r"(?:Parameter containing:\s*)?(?:[A-Za-z_]\w{0,40}\.){0,3}(tensor|Tensor|array|asarray|Array|matrix)\s*\(\s*"
_BEGINS = re.compile(rf"\s*(?:\[|{CALL})")
_PLAIN = frozenset("0123456789.eE+-_")


def is_nested(text: str) -> bool:
    """Return whether text begins as a nested list or a printed array.

    >>> is_nested("[[1, 2]]"), is_nested("torch.tensor([1.])"), is_nested("1,2;3,4")
    (True, True, False)
    """
    return _BEGINS.match(text) is not None


class Reader:
    """Converts literals to codes of a format.

    A decimal is converted to binary64, and then to the format, if this certainly gives the right code. Other literals
    are read exactly, which is slower.
    """

    def __init__(self, format: Format) -> None:
        """Start without literals; raises FormatError for a format that arrays do not support."""
        self.format = array_format(format)
        self._done: list[Array] = []
        self._words: list[str] = []
        self._values: list[float] = []
        self._exact: dict[int, tuple[int, bool]] = {}
        self._read: dict[str, tuple[int, bool]] = {}  # cache of exactly read literals, such as 0 and nan, which recur
        self._slow = 0
        self._changed = 0

    def take(self, word: str) -> None:
        """Read one literal; raises LiteralError for an invalid one."""
        value = 0.0
        if _PLAIN.issuperset(word):
            with suppress(ValueError):  # `_exactly` raises the error
                value = float(word)
        if value == 0.0 or not isfinite(value):  # zero, not a decimal, or outside binary64's range
            self._exact[len(self._words)] = self._exactly(word)
            value = 0.0
        self._words.append(word)
        self._values.append(value)
        if len(self._words) >= _BATCH:
            self._settle()

    def extend(self, words: list[str]) -> None:
        """Read literals; this is fast if all are nonzero decimals within binary64's range. Raises LiteralError."""
        if _PLAIN.issuperset("".join(words)):
            with suppress(ValueError):  # `take` raises the error
                values = list(map(float, words))
                if 0.0 not in values and isfinite(sum(values)):
                    self._words += words
                    self._values += values
                    if len(self._words) >= _BATCH:
                        self._settle()
                    return
        for word in words:
            self.take(word)

    def _exactly(self, word: str) -> tuple[int, bool]:
        """Read a literal exactly; return its code, and whether the number was changed.

        Raises LiteralError if too many literals must be read exactly, since this is slow.
        """
        if (known := self._read.get(word)) is None:
            self._slow += 1
            if self._slow > MAX_EXACT:
                raise LiteralError(f"there are over {MAX_EXACT:,} literals that are not plain decimals")
            done = read(word, self.format)
            known = done.result.code, bool(done.flags & CHANGED)
            if len(self._read) < _BATCH and len(word) < _SHORT:
                self._read[word] = known
        return known

    def _settle(self) -> None:
        """Round the literals that have been taken but not rounded.

        Literals beyond the largest number are read exactly if rounding them up or down gives ∞ or NaN. Literals whose
        binary64 value is a tie are also read exactly, because the literal itself may lie slightly below or above the
        tie.
        """
        values = np.array(self._values, np.float64)
        codes = np.asarray(encode_all(values, self.format))
        held = np.ones(len(values), bool)  # True if the binary64 value is a number of the format
        if self.format != DOUBLE:
            with np.errstate(all="ignore"):
                down, up = (quantize(values, self.format, each) for each in ("RTN", "RTP"))
                decided = (values - down < up - values) | (values - down > up - values) | (down == up)
            held = (down == up) & (down == values)  # beyond the largest number, both may be the largest number
            for place in np.flatnonzero(~decided | ~np.isfinite(up - down)).tolist():
                self._exact[place] = self._exactly(self._words[place])
        for place, (code, inexact) in self._exact.items():
            codes[place], held[place] = code, False
            self._changed += inexact
        self._changed += int((~held).sum()) - len(self._exact)
        with np.errstate(invalid="ignore"):
            whole = (values == np.floor(values)) & (np.abs(values) < 10**_DIGITS)
        # Decimals of up to _DIGITS digits are distinct in binary64, so these literals equal their integers exactly.
        short = whole & (np.fromiter(map(len, self._words), np.int64, len(values)) <= _DIGITS)
        others = np.flatnonzero(held & ~short).tolist()
        self._changed += sum(Decimal(self._words[place]) != Decimal(self._values[place]) for place in others)
        self._done.append(codes)
        self._words, self._values, self._exact = [], [], {}

    def codes(self) -> Array:
        """Return the codes of all literals read."""
        self._settle()
        return np.concatenate(self._done).astype(container(self.format), copy=False)

    def array(self, name: str, shape: tuple[int, ...]) -> ArraySource:
        """Return an array of all literals that were read."""
        codes, native = self.codes().reshape(shape), native_dtype(self.format)
        found = HeldSource(Source(codes, self.format) if native is None else codes.view(native), name)
        found.origin = Origin(None, self._changed)
        return found


@in_default_mode
def parse_list(text: str, format: Format) -> ArraySource:
    """Parse a list such as `1.5,-2,0x1p-3`, with `;` between the rows of a matrix; raises LiteralError.

    >>> from floatlab.formats import parse_format
    >>> parse_list("1,2;3,0x1p-3", parse_format("fp16")).whole().tolist()
    [[1.0, 2.0], [3.0, 0.125]]
    """
    reader, widths = Reader(format), list[int]()
    rows = text.split(";")
    for row in rows:
        words = row.split(",")
        for word in words:
            if not word.strip():
                raise LiteralError(f"{quoted(text)}: a number is missing; lists look like 1.5,-2,0x1p-3")
            if len(word.split()) > 1:
                raise LiteralError(f"{quoted(text)}: numbers of a list are separated by commas, as in 1.5,-2,0x1p-3")
            reader.take(word.strip())
        widths.append(len(words))
    if len(set(widths)) > 1:
        one, other, *_ = dict.fromkeys(widths)
        raise LiteralError(f"{quoted(text)}: its rows have different lengths, such as {one} and {other}")
    shape = (len(rows), widths[0]) if len(rows) > 1 else (widths[0],)
    return reader.array(text, shape)


@in_default_mode
def open_text(path: str, format: Format) -> ArraySource:
    """Open a text file with rows of equally many numbers, separated by commas or spaces; # begins a comment.

    A single row or column becomes an array with one axis. Raises FileFormatError for a file without numbers, for rows
    of unequal length, and for invalid numbers; in the last two cases, the message has the line number.
    """
    reader, widths = Reader(format), set[int]()
    rows = 0
    with open_file(path) as file, named(path):
        if length_of(file) > MAX_TEXT:
            raise FileFormatError(f"has {length_of(file):,} bytes; text is read up to {MAX_TEXT:,}")
        for number, row in _rows(file):
            words = row.replace(",", " ").split()
            for word in words:
                try:
                    reader.take(word)
                except FloatlabError as trouble:
                    raise FileFormatError(f"line {number:,}: {trouble}{_row_hint(word, rows)}") from None
            widths.add(len(words))
            rows += 1
            if len(widths) > 1:
                (earlier,) = widths - {len(words)}
                here = counted(len(words), "number")
                raise FileFormatError(f"line {number:,} has {here}; earlier lines have {earlier:,}")
        if not rows:
            raise FileFormatError("has no numbers")
        width = widths.pop()
        shape = (rows, width) if rows > 1 and width > 1 else (rows * width,)
        return reader.array(path, shape)


def _row_hint(word: str, rows: int) -> str:
    """Return a hint on how to correct a row that contains the invalid literal `word`; "" if there is no hint."""
    if ";" in word:
        return "; the numbers of a row are separated by commas or spaces"
    return "; a line of titles must begin with #" if not rows and word.lstrip("'\"")[:1].isalpha() else ""


def _rows(file: IO[bytes]) -> Iterator[tuple[int, str]]:
    """Yield the line number and the text of each row; empty lines and comments are left out.

    Raises FileFormatError if the file is not text, or a line is too long.
    """
    stream, number = BufferedReader(file), 0  # type: ignore[type-var]
    try:
        while raw := stream.readline(MAX_LINE + 1):
            number += 1
            if len(raw) > MAX_LINE:
                raise FileFormatError(f"line {number:,} has over {MAX_LINE:,} bytes")
            if b"\0" in raw:
                raise FileFormatError("is neither text nor a file of arrays: --dtype NAME reads it as raw numbers")
            if number == 1:
                raw = raw.removeprefix(b"\xef\xbb\xbf")
            row = raw.decode("utf-8", "backslashreplace").partition("#")[0].strip().rstrip(",")
            if row:
                yield number, row
    finally:
        stream.detach()  # without this, the stream would close the file and warn
