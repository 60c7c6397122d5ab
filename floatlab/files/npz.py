"""Reads arrays in `.npz` files as streams. The files may be written by NumPy or by `floatlab.arrays.save`."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO

import numpy as np

from floatlab.arrays.container.storage import CONTENTS, read_contents, read_format
from floatlab.arrays.lanes.parameters import container
from floatlab.arrays.npy_header import Header, read_header
from floatlab.arrays.sources import ArraySource, Piece
from floatlab.arrays.types import Array, DType
from floatlab.errors import FileFormatError, FloatlabError, printable, quoted
from floatlab.files.raw import piece
from floatlab.files.safe_open import keeping_open, length_of, named, open_file, read_into
from floatlab.files.safetensors import chosen
from floatlab.formats import Format

_MAX_DIRECTORY = 4 << 20  # the largest central directory in bytes: about 50,000 members
_MAX_PACKED = 1 << 33  # the largest size in bytes of a compressed member, when unpacked
_DENSEST = 1032  # deflate's largest compression ratio
_KNOWN = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# The exceptions that zipfile raises for bad files: encrypted, with invalid names, offsets or sizes, or corrupt.
_UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, ValueError, struct.error)


class _Sparing:
    """A file with limited read sizes: without a limit, zipfile would read as many bytes as the file declares."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, or to the end; raises FileFormatError for more bytes than a central directory may have."""
        found = b"" if size > _MAX_DIRECTORY else self.file.read(size if size >= 0 else _MAX_DIRECTORY + 1)
        if max(size, len(found)) > _MAX_DIRECTORY:
            raise FileFormatError(f"is no .npz: its list of members has over {_MAX_DIRECTORY:,} bytes")
        return found


@contextmanager
def _zipped(path: str) -> Iterator[None]:
    """Turn errors of zipfile into FileFormatErrors of one line with the file's name."""
    with named(path):
        try:
            yield
        except FloatlabError:
            raise
        except _UNREADABLE as trouble:
            words = " ".join(str(trouble).split()) or type(trouble).__name__
            raise FileFormatError(f"cannot be read: {printable(words)[:80]}") from None


class MemberSource(ArraySource):
    """An array in a member of a zip file, read from front to back; to read an earlier part, it starts over."""

    def __init__(self, name: str, path: str, file: IO[bytes], bundle: zipfile.ZipFile, member: str) -> None:
        """Open a member and read its header."""
        self.path, self.file, self.bundle, self.member = path, file, bundle, member
        self.info = bundle.getinfo(member)
        _checked(self.info)
        self.header = self._rewind()
        super().__init__(name, self.header.shape, self._kind(), self.header.by_columns)

    def _kind(self) -> Format | DType:
        """Return the dtype; for codes in a file written by floatlab, their format."""
        names = self.bundle.namelist()
        if CONTENTS in names:
            info = self.bundle.getinfo(CONTENTS)
            if info.file_size > _MAX_DIRECTORY:
                raise FileFormatError(f"has a {CONTENTS} of {info.file_size:,} bytes")
            for entry in read_contents(self.bundle.read(CONTENTS))["arrays"]:
                if entry["member"] == self.member and entry["format"] is not None:
                    format = read_format(entry["format"])
                    if self.header.dtype != container(format):
                        raise FileFormatError(f"has codes of {format.name} as {self.header.dtype.name}")
                    return format
        return self.header.dtype

    def _rewind(self) -> Header:
        self.stream, self.reached = self.bundle.open(self.member), 0
        try:
            return read_header(self.stream, self.info.file_size)
        except FileFormatError as trouble:
            raise FileFormatError(f"has a member {quoted(self.member)} that {trouble}") from None

    def read(self, first: int, count: int) -> Piece:
        """Return `count` numbers from index `first` on; raises FileFormatError if the bytes have changed."""
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
        """Close the file."""
        self.file.close()


def _checked(info: zipfile.ZipInfo) -> None:
    """Raise for members with impossible or too large sizes, and for compression methods with unlimited memory use."""
    name = quoted(info.filename)
    if info.compress_type not in _KNOWN:
        raise FileFormatError(f"has a member {name} with an unsupported compression (only deflate is read)")
    if info.file_size > _DENSEST * info.compress_size + _DENSEST:
        raise FileFormatError(f"has a member {name} that declares an impossible size of {info.file_size:,} bytes")
    if info.compress_type != zipfile.ZIP_STORED and info.file_size > _MAX_PACKED:
        raise FileFormatError(f"has a member {name} that unpacks to {info.file_size:,} bytes: unpack it first")


def _bundle(file: IO[bytes]) -> tuple[zipfile.ZipFile, list[str]]:
    """Return the zip file and the names of its arrays."""
    length_of(file)
    bundle = zipfile.ZipFile(_Sparing(file))
    members = bundle.namelist()
    if len(set(members)) != len(members):
        raise FileFormatError("has two members with the same name")
    return bundle, [each.removesuffix(".npy") for each in members if each.endswith(".npy")]


def npz_names(path: str) -> list[str]:
    """Return the names of the arrays in a `.npz`; raises FileFormatError in one line."""
    with open_file(path) as file, _zipped(path):
        return _bundle(file)[1]


def open_npz(path: str, name: str | None) -> ArraySource:
    """Open an array of a `.npz` by its name, or the only one; raises FileFormatError in one line."""
    with keeping_open(path) as file, _zipped(path):
        bundle, names = _bundle(file)
        word = path if name is None else f"{path}::{name}"
        return MemberSource(word, path, file, bundle, f"{chosen(name, names, 'array')}.npy")
