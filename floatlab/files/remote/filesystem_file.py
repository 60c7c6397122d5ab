"""Reads files from the file systems that fsspec knows: object stores (s3, gs, az, hf), sftp, memory and others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from floatlab.errors import FileFormatError, FloatlabError, MissingPartError, printable, quoted
from floatlab.files.remote.range_file import RangeFile
from floatlab.files.remote.urls import scheme_of

_LOCAL = ("file", "local")
_PACKAGES = {
    "s3": "s3fs", "s3a": "s3fs", "gs": "gcsfs", "gcs": "gcsfs", "az": "adlfs", "abfs": "adlfs", "hf": "huggingface_hub",
    "sftp": "paramiko", "ssh": "paramiko", "hdfs": "pyarrow",
}  # fmt: skip
_VERSIONS = ("ETag", "etag", "md5", "version_id", "mtime", "LastModified", "last_modified", "updated", "created")


class _System(Protocol):
    """The methods of fsspec's file systems that are used here."""

    def info(self, path: str) -> dict[str, object]: ...
    def isdir(self, path: str) -> bool: ...
    def isfile(self, path: str) -> bool: ...
    def ls(self, path: str, detail: bool) -> list[str]: ...
    def cat_file(self, path: str, start: int, end: int) -> bytes: ...


class FilesystemFile(RangeFile):
    """A file in a file system of fsspec."""

    _told: tuple[int, str] | None = None

    def __init__(self, url: str) -> None:
        """Find the file system; raises MissingPartError if its package is not installed."""
        super().__init__(url)
        self._system, self._path = _system(url)

    @property
    def size(self) -> int:
        """The number of bytes in the file."""
        return self._known()[0]

    @property
    def version(self) -> str:
        """What the file system says about the file's version, such as an entity tag or the time of change."""
        return self._known()[1]

    def _known(self) -> tuple[int, str]:
        if self._told is None:
            with _plain_errors():
                told = self._system.info(self._path)
                size = told.get("size")
                if told.get("type") == "directory":
                    raise FileFormatError("is a directory, not a file")
                if not isinstance(size, int) or size < 0:
                    raise FileFormatError("cannot be read: its file system does not give its length")
                self._told = size, " ".join(str(told[name]) for name in _VERSIONS if told.get(name))
        return self._told

    def _fetch(self, first: int, count: int) -> bytes:
        last = min(first + count, self.size)
        if first >= last:
            return b""
        with _plain_errors():
            found = self._system.cat_file(self._path, start=first, end=last)
        if len(found) != last - first:
            sent, asked = len(found), last - first
            raise FileFormatError(f"cannot be read: {sent:,} bytes were sent, but {asked:,} were requested")
        return found


def is_directory(url: str) -> bool:
    """Return whether a URL leads to a directory."""
    system, path = _system(url)
    with _plain_errors():
        return bool(system.isdir(path))


def is_at(url: str) -> bool:
    """Return whether a URL leads to a file."""
    system, path = _system(url)
    with _plain_errors():
        return bool(system.isfile(path))


def names_in(url: str) -> list[str]:
    """Return the names in a directory."""
    system, path = _system(url)
    with _plain_errors():
        return [str(each).rstrip("/").rpartition("/")[2] for each in system.ls(path, detail=False)]


def _system(url: str) -> tuple[_System, str]:
    """Return the file system of a URL, and the path in it."""
    scheme = scheme_of(url)
    if scheme in _LOCAL:
        raise FileFormatError("is on this computer: give its path without the scheme")
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingPartError(f"{scheme}:// needs fsspec: pip install 'floatlab[remote]'") from None
    with _plain_errors(scheme):
        system, path = url_to_fs(url)
        return system, str(path)


@contextmanager
def _plain_errors(scheme: str = "") -> Iterator[None]:
    """Turn the errors of a file system, which may be of any class, into FloatlabErrors of one line."""
    try:
        yield
    except FloatlabError:
        raise
    except ImportError as trouble:
        package = _PACKAGES.get(scheme)
        line = f"pip install {package}" if package else printable(" ".join(str(trouble).split()))[:120]
        raise MissingPartError(f"{scheme}:// needs another package: {line}") from None
    except FileNotFoundError:
        raise FileFormatError("is not a file") from None
    except MemoryError:
        raise
    except Exception as trouble:
        words = " ".join(str(trouble).split()) or type(trouble).__name__
        raise FileFormatError(f"cannot be read: {quoted(words, 100)}") from None
