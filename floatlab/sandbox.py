"""The sandbox for a process that an untrusted user controls, such as a visitor of `tui --serve`.

A process enters the sandbox once, before the user has access, and cannot leave it. A confined process can read only
files below one folder (or no files), cannot write files, and cannot import modules whose names the user types. All code
that opens a file or imports a module by a typed name calls this module first: `files/safe_open.py` for reading,
`atomic_write.py` for writing, `reduce/reveal/targets.py` for importing.
"""

from __future__ import annotations

import os

from floatlab.errors import RefusedError, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_bounds: list[str] = []  # empty if not confined; otherwise one item: the readable folder, or "" if there is none


def confine(folder: str | None = None) -> None:
    """Confine this process permanently: it can read only files below `folder`, or no files if `folder` is None.

    If a folder is given, it becomes the current folder. Raises OSError if the folder does not exist, and RefusedError
    in a process that is already confined.
    """
    if _bounds:
        raise RefusedError("this process is confined already; its confinement cannot be changed")
    if folder is None:
        _bounds.append("")
        return
    os.chdir(folder)
    _bounds.append(os.path.realpath(os.curdir))


def confined() -> bool:
    """Return whether this process is confined."""
    return bool(_bounds)


def admitted(path: str) -> str:
    """Return the path to open: `path` itself or, in a confined process, `path` with its symbolic links resolved.

    Raises RefusedError if this process may not read the path, whether or not it exists. In a confined process, raises
    ValueError if the path is invalid.
    """
    if not _bounds:
        return path
    folder = _bounds[0]
    if not folder:
        raise RefusedError(
            f"{quoted(path, 80)} is not a list of numbers, and files cannot be read here (tui --serve --files DIR "
            "makes DIR readable)"
        )
    if not path:
        return path  # an empty path names no file
    real = os.path.realpath(path)
    if real != folder and not real.startswith(os.path.join(folder, "")):
        raise RefusedError(
            f"{quoted(path, 80)} lies outside the folder whose files may be read here (tui --serve --files DIR)"
        )
    return real


def exists(path: str) -> bool:
    """Return whether a path exists and this process may read it."""
    return _leads(path, os.path.exists)


def is_folder(path: str) -> bool:
    """Return whether a path leads to a folder and this process may read it."""
    return _leads(path, os.path.isdir)


def whole_path(path: str) -> str:
    """Return the absolute path or, in a confined process, the path relative to the folder that it may read.

    The user of a confined process thus does not learn where the folder is.
    """
    return os.path.relpath(path or os.curdir) if _bounds else os.path.abspath(path)


def _leads(path: str, to: Callable[[str], bool]) -> bool:
    try:
        return to(admitted(path))
    except (RefusedError, ValueError):
        return False
