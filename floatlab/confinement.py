"""What this process may reach while a stranger drives it, as a visitor of `tui --serve` does.

It is decided once, before the stranger is let in, and nothing takes it back. A confined process reads files of one
folder or none, writes none, and imports no code by a name that was typed. Whatever opens a file or imports by name asks
here: `files/safe_open.py` for reading, `writing.py` for writing, `reduce/reveal/targets.py` for importing.
"""

from __future__ import annotations

import os

from floatlab.errors import RefusedError, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_bounds: list[str] = []  # empty while everything may be reached, then the folder that may be read, or "" for none


def confine(folder: str | None = None) -> None:
    """Confine this process for good: files are read below a folder only, and without one not at all.

    Relative paths are those of the folder from here on. Raises OSError where there is no such folder, and RefusedError
    in a process that is confined already.
    """
    if _bounds:
        raise RefusedError("this process is confined already, and that is not changed any more")
    if folder is None:
        _bounds.append("")
        return
    os.chdir(folder)
    _bounds.append(os.path.realpath(os.curdir))


def confined() -> bool:
    """Say whether this process is confined."""
    return bool(_bounds)


def admitted(path: str) -> str:
    """Return the path to open in the place of another: free of symbolic links where this process is confined.

    Raises RefusedError for what may not be read, whether or not there is anything; ValueError for no path at all.
    """
    if not _bounds:
        return path
    folder = _bounds[0]
    if not folder:
        raise RefusedError(
            f"{quoted(path, 80)}: no list of numbers, and no files are read here (tui --serve --files DIR serves some)"
        )
    if not path:
        return path  # it leads nowhere
    real = os.path.realpath(path)
    if real != folder and not real.startswith(os.path.join(folder, "")):
        raise RefusedError(
            f"{quoted(path, 80)} lies outside the folder whose files are read here (tui --serve --files DIR)"
        )
    return real


def exists(path: str) -> bool:
    """Say whether there is something at a path; not where this process may not look."""
    return _leads(path, os.path.exists)


def is_folder(path: str) -> bool:
    """Say whether a path leads to a folder; not where this process may not look."""
    return _leads(path, os.path.isdir)


def whole_path(path: str) -> str:
    """Return the absolute path, or in a confined process the one from its folder: where that lies is not said."""
    return os.path.relpath(path or os.curdir) if _bounds else os.path.abspath(path)


def _leads(path: str, to: Callable[[str], bool]) -> bool:
    try:
        return to(admitted(path))
    except (RefusedError, ValueError):
        return False
