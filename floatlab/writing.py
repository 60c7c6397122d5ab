"""Files written whole or not at all: beside what is there, and put in its place once the last byte is written."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress

from floatlab.confinement import confined
from floatlab.errors import FileFormatError, RefusedError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import IO

_KINDS = {
    stat.S_ISDIR: "is a directory",
    stat.S_ISFIFO: "is a pipe",
    stat.S_ISCHR: "is a device",
    stat.S_ISBLK: "is a device",
    stat.S_ISSOCK: "is a socket",
}


def no_file(mode: int) -> str:
    """Say why something in the file system is no file; nothing for a regular file, which is one."""
    if stat.S_ISREG(mode):
        return ""
    return next((f"{words}, not a file" for kind, words in _KINDS.items() if kind(mode)), "is no file")


def state_of(path: str) -> os.stat_result | None:
    """Return the state of what a path leads to, through symbolic links; None where nothing is there yet.

    Raises FileFormatError, whose text goes on after the name, for what is no regular file, and OSError or ValueError
    for what can be no file at all.
    """
    try:
        state = os.stat(path)
    except FileNotFoundError:
        if not os.path.isdir(os.path.dirname(os.path.realpath(path))):
            raise
        if path.endswith(os.sep):
            raise FileFormatError(no_file(stat.S_IFDIR)) from None
        return None
    if words := no_file(state.st_mode):
        raise FileFormatError(words)
    if not os.access(path, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    return state


@contextmanager
def replacing(path: str | os.PathLike[str], sync: bool = False) -> Iterator[IO[bytes]]:
    """Open a file to write, which takes the place of what is at `path` when the `with` ends without an error.

    Until then, and after an error, what was there stays as it was. A symbolic link stays, and what it leads to is
    replaced; an old file's permissions are kept. With `sync` the bytes are on the disk before they take its place.
    Raises FileFormatError, whose text goes on after the name, for a directory, a pipe or a device, OSError, and
    RefusedError in a process that is confined.
    """
    if confined():
        raise RefusedError("nothing is written here: this explorer is served to visitors")
    name = os.fspath(path)
    old = state_of(name)
    name = os.path.realpath(name)
    beside = os.path.join(os.path.dirname(name), f".floatlab-{os.urandom(6).hex()}.part")
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)  # never readable to more people than it will be
    file = os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode), "wb")
    try:
        with file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        if old is not None:
            with suppress(OSError, AttributeError):  # of another owner, or on a disk without owners
                os.chown(beside, old.st_uid, old.st_gid)
            with suppress(OSError):
                os.chmod(beside, mode)
        os.replace(beside, name)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
