"""Reads arrays in `.npz` files as streams. The files may be written by NumPy or by `floatlab.arrays.save`."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import IO

import numpy as np

from floatlab.arrays.container.storage import CONTENTS, read_contents, read_format
from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.npy_header import Header, read_header
from floatlab.arrays.sources import ArraySource, Piece
from floatlab.arrays.types import Array, DType
from floatlab.errors import FileFormatError, FloatlabError, printable, quoted
from floatlab.files.raw import piece
from floatlab.files.safe_open import keeping_open, length_of, named, read_into
from floatlab.files.safetensors import chosen
from floatlab.formats import Format

_MAX_DIRECTORY = 4 << 20  # the largest central directory in bytes: about 50,000 members
_MAX_PACKED = 1 << 33  # the largest size in bytes of a compressed member, when unpacked
_DENSEST = 1032  # deflate's largest compression ratio
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The exceptions that zipfile raises for bad files: encrypted, with invalid names, offsets or sizes, or corrupt.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError, struct.error)


class _Sparing:
    """A file whose reads are limited in size, because zipfile would read as many bytes as an `.npz` declares."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, or all if `size` is negative; raises FileFormatError for over `_MAX_DIRECTORY` bytes."""
        found = b"" if size > _MAX_DIRECTORY else self.file.read(size if size >= 0 else _MAX_DIRECTORY + 1)
        if max(size, len(found)) > _MAX_DIRECTORY:
            raise FileFormatError(f"is not an .npz file: its list of members has over {_MAX_DIRECTORY:,} bytes")
        return found


@contextmanager
def _zipped(path: str) -> Iterator[None]:
    """Turn errors of zipfile into FileFormatErrors; the message has one line, with the file's name."""
    with named(path):
        try:
            yield
        except FloatlabError:
            raise
        except _UNREADABLE as trouble:
            words = " ".join(str(trouble).split()) or type(trouble).__name__
            raise FileFormatError(f"cannot be read: {printable(words)[:80]}") from None


class MemberSource(ArraySource):
    """An array in a member of a zip file. A member is read from front to back, and is opened again to go back."""

    def __init__(self, name: str, bundle: Bundle, member: str, owns_bundle: bool = False) -> None:
        """Open a member and read its header. If `owns_bundle` is true, closing the array closes the file."""
        self.path, self.bundle, self.member, self.owns_bundle = bundle.path, bundle, member, owns_bundle
        self.info = bundle.zip.getinfo(member)
        _checked(self.info)
        self.header = self._rewind()
        super().__init__(name, self.header.shape, bundle.kind_of(member, self.header.dtype), self.header.by_columns)

    @property
    def nbytes(self) -> int:
        """The size of the array's numbers in bytes when they are not compressed."""
        return self.header.nbytes

    def _rewind(self) -> Header:
        self.stream, self.reached = self.bundle.zip.open(self.member), 0
        try:
            return read_header(self.stream, self.info.file_size)
        except FileFormatError as trouble:
            raise FileFormatError(f"has a member {quoted(self.member)} that {trouble}") from None

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers from index `first` on; raises FileFormatError if the bytes are damaged or too few."""
        with _zipped(self.path):
            if first < self.reached:
                self._rewind()
            while self.reached < first:
                self._take(min(first - self.reached, 1 << 17))
            return piece(self._take(count), self)

    def _take(self, count: int) -> Array:
        found = np.empty(count, self.header.dtype)
        read_into(self.stream, found.view(np.uint8))
        self.reached += count
        return found

    def close(self) -> None:
        """Close the member, and the file if this array owns it."""
        self.stream.close()
        if self.owns_bundle:
            self.bundle.close()


def _checked(info: zipfile.ZipInfo) -> None:
    """Raise FileFormatError if a member has an impossible or too large size, or an unsupported compression."""
    name = quoted(info.filename)
    if info.compress_type not in _KNOWN:
        raise FileFormatError(f"has a member {name} with an unsupported compression (deflate is supported)")
    if info.file_size > _DENSEST * info.compress_size + _DENSEST:
        raise FileFormatError(f"has a member {name} that declares an impossible size of {info.file_size:,} bytes")
    if info.compress_type != zipfile.ZIP_STORED and info.file_size > _MAX_PACKED:
        raise FileFormatError(f"has a member {name} that unpacks to {info.file_size:,} bytes: unpack it first")


class Bundle:
    """An open `.npz`: the names of its arrays, and the formats of the arrays if floatlab wrote the file."""

    def __init__(self, path: str) -> None:
        """Open the file and read its list of members; raises FileFormatError with a message of one line."""
        with keeping_open(path) as file, _zipped(path):
            self.path, self.file = path, file
            length_of(file)
            self.zip = zipfile.ZipFile(_Sparing(file))
            members = self.zip.namelist()
            if len(set(members)) != len(members):
                raise FileFormatError("has two members with the same name")
            self.names = [each.removesuffix(".npy") for each in members if each.endswith(".npy")]
            self.formats = self._formats() if CONTENTS in members else {}

    def _formats(self) -> dict[str, Format]:
        """Return the format of each member that holds codes, by the name of the member."""
        info = self.zip.getinfo(CONTENTS)
        if info.file_size > _MAX_DIRECTORY:
            raise FileFormatError(f"has a {CONTENTS} of {info.file_size:,} bytes")
        entries = read_contents(self.zip.read(CONTENTS))["arrays"]
        return {each["member"]: read_format(each["format"]) for each in entries if each["format"] is not None}

    def kind_of(self, member: str, dtype: DType) -> Format | DType:
        """Return the format of a member's codes, or `dtype` for a member without codes.

        Raises FileFormatError if codes of the format would have another dtype.
        """
        format = self.formats.get(member)
        if format is not None and dtype != container(format):
            raise FileFormatError(f"has codes of {format.name} as {dtype.name}")
        return format or dtype

    def open(self, name: str, word: str = "", owned: bool = False) -> MemberSource:
        """Open an array by its name; `word` is used in messages. If `owned`, closing the array closes the file."""
        with _zipped(self.path):
            return MemberSource(word or f"{self.path}::{name}", self, f"{name}.npy", owned)

    def close(self) -> None:
        """Close the file."""
        self.file.close()


class NpzEntry:
    """A function that opens an array of an open `.npz`.

    The function may be pickled and sent to another process, which then opens the file again.
    """

    def __init__(self, bundle: Bundle, name: str) -> None:
        """Take the file and the name of the array."""
        self.bundle, self.name = bundle, name

    def __call__(self) -> MemberSource:
        """Open the array."""
        return self.bundle.open(self.name)

    def __reduce__(self) -> tuple[object, ...]:
        """Return what pickle needs: a function that opens the file again."""
        return partial, (open_npz, self.bundle.path, self.name)


def npz_names(path: str) -> list[str]:
    """Return the names of the arrays in a `.npz`; raises FileFormatError with a message of one line."""
    bundle = Bundle(path)
    bundle.close()
    return bundle.names


def open_npz(path: str, name: str | None) -> ArraySource:
    """Open the array `name` of a `.npz`, or its only array if `name` is None.

    Raises FileFormatError with a message of one line.
    """
    bundle = Bundle(path)
    try:
        with named(path):
            found = chosen(name, bundle.names, "array")
        return bundle.open(found, path if name is None else f"{path}::{name}", owned=True)
    except FloatlabError:
        bundle.close()
        raise
