"""Reads JSON objects from files of unknown origin.

The length of a file and the number of its brackets are limited. Repeated names are refused.
"""

from __future__ import annotations

import json

from floatlab.errors import FileFormatError
from floatlab.files.safe_open import length_of, named, open_file, read_bytes

_LONGEST = 32 << 20  # the longest accepted file, in bytes; an index of several hundred thousand tensors fits
_MAX_BRACKETS = 1 << 20  # the largest number of brackets in a file


def parse_object(text: bytes, noun: str = "") -> dict[str, object]:
    """Return the JSON object in a text; raises FileFormatError, whose message begins with `noun`.

    >>> parse_object(b'{"a": [1, 2]}')
    {'a': [1, 2]}
    """

    def once(pairs: list[tuple[str, object]]) -> dict[str, object]:
        found = dict(pairs)
        if len(found) != len(pairs):
            raise FileFormatError(f"{noun}has the same name twice in an object")
        return found

    if text.count(b"[") + text.count(b"{") > _MAX_BRACKETS:
        raise FileFormatError(f"{noun}has over {_MAX_BRACKETS:,} brackets, which is too many")
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=once)
    except FileFormatError:
        raise
    except (ValueError, RecursionError):
        raise FileFormatError(f"{noun}is not JSON") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"{noun}is not a JSON object")
    if b"\\ud" in text.lower() and not _is_unicode(found):
        raise FileFormatError(f"{noun}has an unpaired surrogate (\\ud800 to \\udfff)")
    return found


def _is_unicode(found: object) -> bool:
    """Return whether all texts in `found` can be written as UTF-8; unpaired surrogates cannot."""
    try:
        json.dumps(found, ensure_ascii=False).encode("utf-8")
    except (UnicodeEncodeError, RecursionError):
        return False
    return True


def read_json(path: str) -> dict[str, object]:
    """Return the JSON object in a file; raises FileFormatError with a message of one line."""
    with open_file(path) as file, named(path):
        length = length_of(file)
        if length > _LONGEST:
            raise FileFormatError(f"has {length:,} bytes; at most {_LONGEST:,} of JSON are read")
        return parse_object(read_bytes(file, 0, length))
