"""Opens and reads files. Opening never blocks; lengths that a file declares are not trusted; errors have one line.

Nothing is mapped into memory: if a mapped file shrinks, the process is killed (SIGBUS); if a file shrinks before a
read, the read returns fewer bytes.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import IO, cast

import numpy as np

from floatlab.arrays.types import Array
from floatlab.atomic_write import no_file
from floatlab.errors import FileFormatError, quoted
from floatlab.files.remote.urls import is_url
from floatlab.progress import pause
from floatlab.sandbox import admitted

_LONG = 80  # longer paths are cut to this many characters in messages
_PIECE = 1 << 22  # the number of bytes per read call


def shown(path: str) -> str:
    """Return a path for an error message; if the path is long, return only its end.

    >>> shown("x" * 100 + "/weights.npy")[-20:]
    "xxxxxxx/weights.npy'"
    """
    return quoted(path if len(path) <= _LONG else f"…{path[1 - _LONG :]}", _LONG)


@contextmanager
def named(path: str) -> Iterator[None]:
    """Put the file's name before the message of a FileFormatError that is raised inside the `with`.

    An OSError becomes a FileFormatError.
    """
    try:
        yield
    except FileFormatError as trouble:
        raise FileFormatError(f"{shown(path)} {trouble}") from None
    except OSError as trouble:
        raise FileFormatError(f"{shown(path)} cannot be read: {trouble.strerror or trouble}") from None


def open_file(path: str) -> IO[bytes]:
    """Open a file for reading bytes; raises FileFormatError for a directory, a pipe, a device or a missing file.

    A file at a URL is read by ranges. Raises RefusedError for a file that this process may not read, and
    MissingPartError if a URL needs a package that is not installed.
    """
    if is_url(path):
        from floatlab.files.remote.opening import open_url

        with named(path):
            return cast("IO[bytes]", open_url(path))
    with named(path), ExitStack() as held:
        try:
            real = admitted(path)
            _require_file(os.stat(real).st_mode)
            file = held.enter_context(open(real, "rb", buffering=0, opener=_at_once))
            _require_file(os.fstat(file.fileno()).st_mode)  # the file may have been replaced since `stat`
        except FileNotFoundError:
            raise FileFormatError("is not a file") from None
        except FileFormatError:
            raise
        except ValueError:  # the path contains a null character
            raise FileFormatError("is not a file name") from None
        held.pop_all()
        return file


@contextmanager
def keeping_open(path: str) -> Iterator[IO[bytes]]:
    """Open a file in a `with` that closes the file only after an error. Raises the errors of `open_file`."""
    with ExitStack() as held:
        yield held.enter_context(open_file(path))
        held.pop_all()


def _at_once(path: str, flags: int) -> int:
    """Open without blocking; otherwise, opening a pipe that has no writer would never return."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _require_file(mode: int) -> None:
    if words := no_file(mode):
        raise FileFormatError(words)


def length_of(file: IO[bytes]) -> int:
    """Return the current number of bytes in a file."""
    size: int | None = getattr(file, "size", None)  # a RangeFile has no descriptor
    return os.fstat(file.fileno()).st_size if size is None else size


def read_start(file: IO[bytes], count: int) -> bytes:
    """Return up to `count` bytes from the start of a file; b"" if reading would block (some files in /proc)."""
    return file.read(count) or b""


def read_into(file: IO[bytes], octets: Array, offset: int | None = None) -> None:
    """Fill an array with bytes from `offset` or the current position; raises FileFormatError if the file ends early."""
    if offset is not None:
        file.seek(offset)
    into, done = file.readinto, 0  # type: ignore[attr-defined]
    while done < len(octets):
        pause()
        count = into(octets[done : done + _PIECE])
        if not count:
            raise FileFormatError(f"ends early: {len(octets) - done:,} bytes are missing")
        done += count


def read_bytes(file: IO[bytes], offset: int, count: int) -> bytes:
    """Return `count` bytes from `offset` on; raises FileFormatError if the file ends early."""
    found = np.empty(count, np.uint8)
    read_into(file, found, offset)
    return found.tobytes()
