"""Lists what can be opened: the folders and array files in a folder, and the arrays in files such as `.npz`."""

from __future__ import annotations

import os
from functools import lru_cache
from itertools import islice

from floatlab.errors import FileFormatError, FloatlabError
from floatlab.files.gguf import plain_kind, read_gguf
from floatlab.files.npz import npz_names, open_npz
from floatlab.files.safe_open import named, open_file, shown
from floatlab.files.safetensors import read_tensors
from floatlab.record import Record
from floatlab.sandbox import admitted, confined, exists, is_folder

_MOST = 5000  # the largest number of names read from a folder
_MOST_HEADERS = 64  # in a .npz with more arrays than this, no headers are read, so shapes are unknown
_SEVERAL = (".npz", ".safetensors", ".gguf")
_INDEX = ".safetensors.index.json"
_ONE = (".npy", ".txt", ".csv", ".tsv", ".dat", ".bin", ".raw")


class FileEntry(Record):
    """A file, a folder, or an array in a file; `word` is the path that opens it.

    `is_container` is true for folders and for files that can have several arrays. `size` is the size of a file in
    bytes. `kind` and `shape` are the dtype and the shape of an array. Fields that are not known or do not apply are
    None or empty.
    """

    word: str
    name: str
    is_container: bool
    size: int | None = None
    kind: str = ""
    shape: tuple[int, ...] | None = None


def entries(place: str, whole: bool = False) -> list[FileEntry]:
    """Return the entries of a folder, or of a file that can have several arrays.

    In a folder, the entries are folders and then array files, each sorted by name. If `whole` is true, indices of
    checkpoints are also entries; an index can only be opened as a whole checkpoint. Hidden files and folders,
    unprintable names, files with other suffixes, quantised tensors and, in a confined process, links to unreadable
    places are left out. Raises FileFormatError (one line) and RefusedError.
    """
    admitted(place or os.curdir)
    return _arrays(place) if place.lower().endswith(_SEVERAL) and not is_folder(place) else _folder(place, whole)


def _folder(folder: str, whole: bool) -> list[FileEntry]:
    ends = _SEVERAL + _ONE + ((_INDEX,) if whole else ())
    found = []
    try:
        with os.scandir(folder or os.curdir) as listed:
            for each in islice(listed, _MOST):
                name = each.name
                if name.startswith(".") or not name.isprintable():
                    continue
                word = os.path.join(folder, name)
                if confined() and not exists(word):
                    continue  # a link that leaves the readable folder
                if each.is_dir():
                    found.append(FileEntry(word + os.sep, name + os.sep, True))
                elif name.lower().endswith(ends) and each.is_file():
                    found.append(FileEntry(word, name, name.lower().endswith(_SEVERAL), each.stat().st_size))
    except (OSError, ValueError) as trouble:
        words = getattr(trouble, "strerror", None) or trouble
        raise FileFormatError(f"{shown(folder)} cannot be read: {words}") from None
    return sorted(found, key=lambda each: (not each.name.endswith(os.sep), each.name.lower(), each.name))


def _arrays(path: str) -> list[FileEntry]:
    try:
        state = os.stat(path)
    except (OSError, ValueError):
        raise FileFormatError(f"{shown(path)} is not a file") from None
    return list(_arrays_of(path, state.st_mtime_ns, state.st_size))


@lru_cache(maxsize=8)
def _arrays_of(path: str, changed: int, length: int) -> tuple[FileEntry, ...]:
    """Return the arrays in a file, in the file's order, without quantised tensors.

    The result is cached until the file changes, because completion calls this function at every keystroke.
    """
    arrays: list[tuple[str, str, tuple[int, ...] | None]]
    if path.lower().endswith(".safetensors"):
        with open_file(path) as file, named(path):
            arrays = [(tensor.name, tensor.dtype, tensor.shape) for tensor in read_tensors(file).values()]
    elif path.lower().endswith(".gguf"):
        with open_file(path) as file, named(path):
            tensors = read_gguf(file).tensors.values()
        arrays = [(each.name, each.dtype, each.shape) for each in tensors if plain_kind(each.dtype)]
    else:
        names = npz_names(path)
        arrays = [(name, *(_header_of(path, name) if len(names) <= _MOST_HEADERS else ("", None))) for name in names]
    listed = (FileEntry(f"{path}::{name}", name, False, None, kind, shape) for name, kind, shape in arrays)
    return tuple(entry for entry in listed if entry.name.isprintable())


def _header_of(path: str, name: str) -> tuple[str, tuple[int, ...] | None]:
    """Return the dtype and the shape of an array in a `.npz`; "cannot be read" and None for an unreadable array."""
    try:
        with open_npz(path, name) as source:
            return source.kind, source.shape
    except FloatlabError:
        return "cannot be read", None


def completed(typed: str) -> str | None:
    """Return the first folder, file or FILE::NAME that begins with the typed text and is longer; None if there is none.

    >>> completed("no such folder/a") is None
    True
    """
    path, colons, _ = typed.partition("::")
    if not path:
        return None
    try:
        listed = entries(path if colons else typed[: len(typed) - len(os.path.basename(typed))], whole=not colons)
    except FloatlabError:
        return None
    return next((each.word for each in listed if each.word.startswith(typed) and each.word != typed), None)
