"""The sandbox of a process that an untrusted user controls, such as a visitor of `tui --serve`.

It is entered once, before the user has access, and cannot be left. A confined process reads files of one folder or
none, writes none, and imports no code by a typed name. All code that opens a file or imports by name checks here:
`files/safe_open.py` for reading, `writing.py` for writing, `reduce/reveal/targets.py` for importing.
"""

from __future__ import annotations

import os

from floatlab.errors import RefusedError, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_bounds: list[str] = []  # empty: not confined; else one item, the readable folder, or "" for none


def confine(folder: str | None = None) -> None:
    """Confine this process permanently: files are readable only below `folder`, or not at all without one.

    From here on, relative paths are relative to the folder. Raises OSError if the folder does not exist, and
    RefusedError in a process that is already confined.
    """
    if _bounds:
        raise RefusedError("this process is confined already, and that is not changed any more")
    if folder is None:
        _bounds.append("")
        return
    os.chdir(folder)
    _bounds.append(os.path.realpath(os.curdir))


def confined() -> bool:
    """Return whether this process is confined."""
    return bool(_bounds)


def admitted(path: str) -> str:
    """Return the path to open for a given one: free of symbolic links if this process is confined.

    Raises RefusedError for a path that may not be read, whether or not it exists; ValueError for an invalid path.
    """
    if not _bounds:
        return path
    folder = _bounds[0]
    if not folder:
        raise RefusedError(
            f"{quoted(path, 80)}: no list of numbers, and no files are read here (tui --serve --files DIR serves some)"
        )
    if not path:
        return path  # an empty path names no file
    real = os.path.realpath(path)
    if real != folder and not real.startswith(os.path.join(folder, "")):
        raise RefusedError(
            f"{quoted(path, 80)} lies outside the folder whose files are read here (tui --serve --files DIR)"
        )
    return real


def exists(path: str) -> bool:
    """Return whether a path exists; False if this process may not read it."""
    return _leads(path, os.path.exists)


def is_folder(path: str) -> bool:
    """Return whether a path leads to a folder; False if this process may not read it."""
    return _leads(path, os.path.isdir)


def whole_path(path: str) -> str:
    """Return the absolute path; in a confined process, the path relative to its folder, whose location stays hidden."""
    return os.path.relpath(path or os.curdir) if _bounds else os.path.abspath(path)


def _leads(path: str, to: Callable[[str], bool]) -> bool:
    try:
        return to(admitted(path))
    except (RefusedError, ValueError):
        return False
