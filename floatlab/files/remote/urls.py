"""URLs of files: functions that distinguish them from paths, and take them apart."""

from __future__ import annotations

import os
import re

_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+)://")  # the scheme has two letters at least: C:// is a path


def scheme_of(path: str) -> str:
    """Return the scheme of a URL in lower case; empty for a path.

    >>> scheme_of("S3://bucket/model.safetensors"), scheme_of("C://model.safetensors")
    ('s3', '')
    """
    found = _URL.match(path)
    return found[1].lower() if found else ""


def is_url(path: str) -> bool:
    """Return whether a text is a URL and not a path."""
    return bool(scheme_of(path))


def plain(path: str) -> str:
    """Return a URL of http(s) without its query, so that it ends with the file's name; return other texts unchanged.

    >>> plain("https://host/model.safetensors?download=true"), plain("what?.npy")
    ('https://host/model.safetensors', 'what?.npy')
    """
    return re.split(r"[?#]", path, maxsplit=1)[0] if scheme_of(path) in ("http", "https") else path


def folder_of(path: str) -> str:
    """Return the folder of a file at a path or a URL."""
    return plain(path).rpartition("/")[0] if is_url(path) else os.path.dirname(path)


def inside(folder: str, name: str) -> str:
    """Return the path or the URL of a file in a folder.

    >>> inside("s3://bucket/model/", "config.json")
    's3://bucket/model/config.json'
    """
    return f"{folder.rstrip('/')}/{name}" if is_url(folder) else os.path.join(folder, name)
