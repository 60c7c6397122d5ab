"""The class of checkpoints, which map names to tensors; `opening.py` opens them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from fnmatch import fnmatchcase
from typing import Self

from floatlab.arrays.sources import ArraySource
from floatlab.errors import FileFormatError, FloatlabError, UnsupportedError, quoted
from floatlab.files.npz import Bundle
from floatlab.files.safe_open import shown
from floatlab.record import Record

MOST_TENSORS = 1 << 19


class StoredTensor(Record):
    """A tensor in a checkpoint: its name, its dtype as the file names it, its shape, and a function that opens it.

    `kind` is the name of NumPy's dtype or floatlab's format; it is empty for GGUF's quantised types and for unsupported
    types. `open` returns the array of numbers; for GGUF's quantised types, it returns an array of bytes with one row
    for each block. If the tensor cannot be read, `open` raises the error.
    """

    name: str
    dtype: str
    kind: str
    shape: tuple[int, ...]
    open: Callable[[], ArraySource]


def unreadable(name: str, trouble: FloatlabError) -> StoredTensor:
    """Return a tensor that cannot be read; opening it raises the error.

    >>> unreadable("a", UnsupportedError("a is an array of object")).open()
    Traceback (most recent call last):
      ...
    floatlab.errors.UnsupportedError: a is an array of object
    """

    def refuse() -> ArraySource:
        raise trouble

    return StoredTensor(name, "", "", (), refuse)


class Checkpoint:
    """The tensors of a checkpoint by name, in file order; close it after use, or open it in a `with` statement.

    `kind` is the kind of file: safetensors, npz, npy, gguf, or memory. `metadata` has the metadata in the headers of
    `.safetensors` or `.gguf` files. `configs` has the JSON objects of the files `config.json` and
    `hf_quant_config.json` beside `.safetensors` files. `files` has the paths or URLs of all files that were read.
    """

    def __init__(self, name: str, kind: str) -> None:
        """Start without tensors."""
        self.name, self.kind = name, kind
        self.tensors: dict[str, StoredTensor] = {}
        self.metadata: dict[str, object] = {}
        self.configs: dict[str, dict[str, object]] = {}
        self.files: list[str] = []
        self._held = ExitStack()

    def add(self, found: Iterable[StoredTensor], where: str) -> None:
        """Add the tensors of the file `where`; raises FileFormatError for a name that has already been added."""
        for each in found:
            if each.name in self.tensors:
                raise FileFormatError(
                    f"{shown(where)} has the tensor {quoted(each.name, 80)}, which another file also has"
                )
            self.tensors[each.name] = each
        if len(self.tensors) > MOST_TENSORS:
            raise FileFormatError(f"{shown(self.name)} has over {MOST_TENSORS:,} tensors, which is too many")

    def matching(self, only: str | None) -> list[str]:
        """Return the names that the glob `only` matches, or all names if `only` is None.

        Raises UnsupportedError if the glob matches none.
        """
        return matching(list(self.tensors), only, self.name)

    def open(self, name: str) -> ArraySource:
        """Open a tensor by `StoredTensor.open`; raises FileFormatError for an unknown name."""
        if name not in self.tensors:
            raise FileFormatError(f"{shown(self.name)} has no tensor {quoted(name, 80)}")
        return self.tensors[name].open()

    def close(self) -> None:
        """Close the files."""
        self._held.close()

    def __enter__(self) -> Self:
        """Return the checkpoint."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the files."""
        self.close()

    def holding(self, bundle: Bundle) -> None:
        """Make `close` also close `bundle`, an open `.npz` file."""
        self._held.callback(bundle.close)


def matching(names: list[str], only: str | None, where: str) -> list[str]:
    """Return the names that the glob `only` (`*`, `?`, `[…]`) matches, or all names if `only` is None.

    Raises UnsupportedError if the glob matches none; `where` is the name of the checkpoint in the message.

    >>> matching(["a.weight", "a.bias", "b.weight"], "*.weight", "model")
    ['a.weight', 'b.weight']
    """
    if only is None:
        return names
    found = [name for name in names if fnmatchcase(name, only)]
    if not found:
        few = ", ".join(quoted(each, 60) for each in names[:2]) + ", …" * (len(names) > 2)
        has = f"it has {few}" if names else "it has no tensors"
        raise UnsupportedError(f"--only {quoted(only)} matches no tensor of {shown(where)}; {has}")
    return found
