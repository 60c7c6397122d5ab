"""Opens files at URLs, and looks into folders at URLs."""

from __future__ import annotations

from floatlab.errors import RefusedError, quoted
from floatlab.files.remote import filesystem_file, http_file
from floatlab.files.remote.range_file import RangeFile
from floatlab.files.remote.urls import inside, scheme_of
from floatlab.sandbox import confined

_HTTP = ("http", "https")
_USUAL = ("model.safetensors.index.json", "model.safetensors")  # files that are looked for in a folder of http(s)


def open_url(url: str) -> RangeFile:
    """Return the file at a URL, for reading by ranges. A missing file raises an error only when it is read.

    Raises FileFormatError for a URL of a local file or of an unknown scheme, MissingPartError if a package is missing,
    and RefusedError in a confined process.
    """
    return http_file.HttpFile(url) if _is_http(url) else filesystem_file.FilesystemFile(url)


def is_folder_url(url: str) -> bool:
    """Return whether a URL leads to a folder. A URL of http(s) counts as a folder if it ends with a slash."""
    return url.endswith("/") if _is_http(url) else filesystem_file.is_directory(url)


def exists_at(url: str) -> bool:
    """Return whether a URL leads to a file."""
    return http_file.is_at(url, may_be_forbidden=True) if _is_http(url) else filesystem_file.is_at(url)


def listed(url: str) -> list[str]:
    """Return the names of the entries of a folder.

    Servers of http(s) do not list folders. On such a server, two usual names of files are tried; those that exist are
    returned.
    """
    if _is_http(url):
        return [name for name in _USUAL if http_file.is_at(inside(url, name))]
    return filesystem_file.names_in(url)


def _is_http(url: str) -> bool:
    """Return whether a URL is one of http(s); raises RefusedError in a confined process, which may read no URLs.

    Every function of this module calls `_is_http` first.
    """
    if confined():
        raise RefusedError(f"{quoted(url, 80)}: URLs are not read here (tui --serve)")
    return scheme_of(url) in _HTTP
