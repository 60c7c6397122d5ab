"""The sizes and times of the files of a checkpoint; comparing them shows whether a file has changed."""

from __future__ import annotations

import os

from floatlab.files.checkpoints.checkpoint import Checkpoint
from floatlab.files.remote.opening import open_url
from floatlab.files.remote.urls import is_url, plain
from floatlab.files.safe_open import named
from floatlab.record import Record


class FileState(Record):
    """The name of a file, its size in bytes, and the time of its last change or, at a URL, the file's version."""

    name: str
    size: int
    changed: str


def states_of(checkpoint: Checkpoint) -> tuple[FileState, ...]:
    """Return the states of all files of a checkpoint, in the order in which they were read.

    A checkpoint in memory has no files.

    Raises FileFormatError if a file no longer exists.
    """
    return tuple(map(_state_of, checkpoint.files))


def _state_of(path: str) -> FileState:
    name = os.path.basename(plain(path))
    with named(path):
        if is_url(path):
            with open_url(path) as file:
                return FileState(name, file.size, file.version)
        found = os.stat(path)
        return FileState(name, found.st_size, str(found.st_mtime_ns))
