"""A journal: a file of JSON lines to which finished work is appended, so that an interrupted run can continue.

The first line identifies the work. Each line is written with one call. A run that is killed during this call leaves an
incomplete line, which the next run removes. The file may be hostile: the length and the number of its lines are
limited, and nothing but JSON is read.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import IO, Self

from floatlab.atomic_write import no_file, state_of
from floatlab.errors import FileFormatError, RefusedError
from floatlab.files.json_files import parse_object
from floatlab.files.safe_open import named, read_bytes
from floatlab.sandbox import confined

_LONGEST = 16 << 20  # the longest line that is read, in bytes
_MOST_BYTES = 8 << 30
_MOST_LINES = 1 << 22
_PIECE = 1 << 20
_KIND = "floatlab"  # the member of the first line that says what the journal is for


class Journal:
    """An open journal; close it after use.

    `len()` and indices count the lines that the file had when it was opened, without its first line. Lines that are
    appended later do not count.
    """

    def __init__(self, path: str, what: str, belongs: Mapping[str, object]) -> None:
        """Open or create the journal of some work.

        `what` is the kind of work, such as "audit"; `belongs` has its inputs and settings. The first line has both, so
        that a journal of other work is recognised.

        Raises FileFormatError for a file that is no journal, belongs to other work or cannot be opened, and
        RefusedError in a confined process. A file that is refused is not changed.
        """
        if confined():
            raise RefusedError("visitors of a served explorer cannot write files")
        self.path, self._places = path, list[tuple[int, int]]()
        first = _line({_KIND: what, **belongs})
        with named(path):
            try:
                is_new = state_of(path) is None
            except FileFormatError:
                raise
            except ValueError:  # the path contains a null character
                raise FileFormatError("is not a file name") from None
            flags = os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
            descriptor = os.open(path, flags | (os.O_CREAT if is_new else 0), 0o666)
            self._file: IO[bytes] = os.fdopen(descriptor, "r+b", buffering=0)
            try:
                if words := no_file(os.fstat(descriptor).st_mode):
                    raise FileFormatError(words)
                complete = self._read(first)
                self._file.truncate(complete)
                if not complete:
                    self._write(first)
            except BaseException:
                self._file.close()
                raise

    def _read(self, first: bytes) -> int:
        """Check the first line, note the positions of the other lines, and return the end of the last complete line."""
        size = os.fstat(self._file.fileno()).st_size
        if size > _MOST_BYTES:
            raise FileFormatError(f"has {size:,} bytes; at most {_MOST_BYTES:,} are read")
        if size < len(first) and read_bytes(self._file, 0, size) == first[:size]:
            return 0  # the file is empty, or its first line was interrupted
        reached = 0
        for end in _ends(self._file, size):
            if end - reached > _LONGEST:
                raise FileFormatError(f"has a line of over {_LONGEST:,} bytes")
            if reached == 0:
                _require_same(read_bytes(self._file, 0, end), first)
            else:
                self._places.append((reached, end - reached))
            if len(self._places) > _MOST_LINES:
                raise FileFormatError(f"has over {_MOST_LINES:,} lines")
            reached = end
        if not reached:
            raise FileFormatError(_STRANGE)
        return reached

    def __len__(self) -> int:
        """Return the number of lines when the file was opened, not counting the first."""
        return len(self._places)

    def __getitem__(self, index: int) -> dict[str, object]:
        """Return the JSON object in a line; index 0 is the line after the first.

        Raises FileFormatError if the line has no JSON object.
        """
        place, length = self._places[index]
        with named(self.path):
            return parse_object(read_bytes(self._file, place, length), f"is damaged: line {index + 2:,} ")

    def append(self, entry: Mapping[str, object]) -> None:
        """Write a line; raises FileFormatError if it cannot be written."""
        with named(self.path):
            self._write(_line(entry))

    def _write(self, line: bytes) -> None:
        try:
            done = self._file.write(line)
            if done < len(line):
                self._file.truncate(os.fstat(self._file.fileno()).st_size - done)
                raise FileFormatError("cannot be written: the disk is full")
        except OSError as trouble:
            raise FileFormatError(f"cannot be written: {trouble.strerror or trouble}") from None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> Self:
        """Return the journal; it is closed at the end of the `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()


_STRANGE = "is not a file that --resume has written: name another file"


def _line(entry: Mapping[str, object]) -> bytes:
    return json.dumps(entry, separators=(",", ":")).encode() + b"\n"


def _ends(file: IO[bytes], size: int) -> Iterator[int]:
    """Yield the position after each complete line; raises FileFormatError if a line is too long."""
    last = 0
    for place in range(0, size, _PIECE):
        found, at = read_bytes(file, place, min(_PIECE, size - place)), -1
        while (at := found.find(b"\n", at + 1)) >= 0:
            last = place + at + 1
            yield last
        if place + len(found) - last > _LONGEST:
            raise FileFormatError(f"has a line of over {_LONGEST:,} bytes" if last else _STRANGE)


def _require_same(line: bytes, first: bytes) -> None:
    """Raise FileFormatError if `line`, the first line of a file, is not `first`; the error says what differs."""
    if line == first:
        return
    try:
        found = parse_object(line)
    except FileFormatError:
        raise FileFormatError(_STRANGE) from None
    expected = parse_object(first)
    if found.get(_KIND) != expected[_KIND]:
        raise FileFormatError(_STRANGE)
    other = [name for name in expected if found.get(name) != expected[name]]
    which = " and ".join(other) or "settings"
    raise FileFormatError(f"belongs to a run with other {which}: name another file, or delete it")
