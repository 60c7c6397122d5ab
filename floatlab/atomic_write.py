"""Atomic writing: a new file is written beside the existing file, and replaces it after the last byte is written."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import contextmanager, suppress

from floatlab.errors import FileFormatError, RefusedError
from floatlab.sandbox import confined

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
    """Return a text that says what a file with this mode is, such as a directory; "" for a regular file."""
    if stat.S_ISREG(mode):
        return ""
    return next((f"{words}, not a file" for kind, words in _KINDS.items() if kind(mode)), "is not a file")


def state_of(path: str) -> os.stat_result | None:
    """Return the `os.stat` result of a file, following symbolic links; None if its folder has no such file.

    Raises FileFormatError if the path leads to anything but a regular file, OSError if the file cannot be written or
    its folder does not exist, and ValueError if the path is invalid. The message of FileFormatError is meant to follow
    the name of the file.
    """
    try:
        state = os.stat(path)
    except FileNotFoundError:
        # `realpath` resolves "nowhere/../file" to a path, even if the folder "nowhere" does not exist.
        real = os.path.realpath(path)
        if os.path.lexists(real) or not (
            os.path.isdir(os.path.dirname(path) or ".") and os.path.isdir(os.path.dirname(real))
        ):
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
    """Open a new file for writing; it replaces the file at `path` if the `with` block ends without an error.

    Until then, and after an error, the existing file is unchanged. If `path` is a symbolic link, its target is
    replaced. The permissions of an existing file are preserved. With `sync`, the bytes are on the disk before the
    replacement. Raises FileFormatError for a directory, a pipe or a device, OSError if the file cannot be written, and
    RefusedError in a confined process.
    """
    if confined():
        raise RefusedError("visitors of a served explorer cannot write files")
    name = os.fspath(path)
    old = state_of(name)
    name = os.path.realpath(name)
    beside = os.path.join(os.path.dirname(name), f".floatlab-{os.urandom(6).hex()}.part")
    mode = 0o666 if old is None else stat.S_IMODE(old.st_mode)  # never more permissions than before
    file = os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), mode), "wb")
    try:
        with file:
            yield file
            file.flush()
            if sync:
                os.fsync(file.fileno())
        if old is not None:
            with suppress(OSError, AttributeError):  # the owner differs, or the file system has no owners
                os.chown(beside, old.st_uid, old.st_gid)
            with suppress(OSError):
                os.chmod(beside, mode)
        os.replace(beside, name)
    except BaseException:
        with suppress(OSError):
            os.unlink(beside)
        raise
