"""FloatArrays in files: `save` and `load` an array, a list or a dict as `.npz` files, which NumPy can also read.

A file is an uncompressed zip of `.npy` members, one per array. FloatArrays are stored as codes. These are plain
unsigned integers: `numpy.load(path)["weight"]` reads them without floatlab. The member `floatlab.json` lists the key,
the format and the context of each array. Nothing is ever unpickled. Reading needs memory of at most a few times the
file size, since the sizes that the file declares are checked first.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
from contextlib import suppress
from enum import Enum
from typing import IO, Any

import numpy as np

from floatlab.arrays.container.array import FloatArray
from floatlab.arrays.lanes.parameters import checked_codes, container
from floatlab.arrays.npy_header import PLAIN, read_header
from floatlab.arrays.sources import array_format, format_of
from floatlab.arrays.types import Array
from floatlab.atomic_write import replacing
from floatlab.errors import FileFormatError, FloatlabError, UnsupportedError, printable, quoted
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Context
from floatlab.numbers.rounding import DEFAULT, LATER_FIELDS

CONTENTS = "floatlab.json"
VERSION = 1
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,99}")  # keys that are also used as names of members
# The exceptions that zipfile raises for bad files: encrypted, oddly compressed, or with invalid names or sizes.
_UNREADABLE = (NotImplementedError, RuntimeError, EOFError, OSError, ValueError, OverflowError, struct.error)
_PIECE = 1 << 20  # the number of bytes read at once
_DATE = (1980, 1, 1, 0, 0, 0)  # a fixed date, so that equal arrays give equal files


def _format_said(format: Format) -> object:
    """Return a format's entry in the file: its name if the name identifies the format, else all its parameters."""
    with suppress(FloatlabError):
        if parse_format(format.name) == format:
            return format.name
    return {field: getattr(format, field) for field in Format._fields}


def _context_said(context: Context | None) -> object:
    if context is None:
        return None
    values = {field: getattr(context, field) for field in Context._fields}
    values = {field: x for field, x in values.items() if field not in LATER_FIELDS or x != getattr(DEFAULT, field)}
    return {field: value.value if isinstance(value, Enum) else value for field, value in values.items()}


def _entry(key: object, x: object) -> tuple[dict[str, Any], Array]:
    """Return an array's entry in `floatlab.json`, and the array to store."""
    if isinstance(x, FloatArray):
        return {"key": key, "format": _format_said(x.format), "context": _context_said(x._context)}, x.codes
    if not isinstance(x, np.ndarray | np.generic):
        raise UnsupportedError(f"obj must hold FloatArrays and NumPy arrays, not {type(x).__name__}")
    array = np.asarray(x)
    if array.dtype.kind not in PLAIN or array.dtype.hasobject:
        hint = ": FloatArray(x) keeps it" if format_of(array.dtype) else ""
        raise UnsupportedError(f"obj holds an array of {array.dtype.name}, which cannot be stored safely as .npy{hint}")
    return {"key": key, "format": None, "context": None}, array


def _member(key: object, taken: set[str], number: int) -> str:
    """Return the name of the zip member for a key: the key if it is a plain name, else `array_` and a number."""
    name = str(key)
    plain = isinstance(key, str) and _NAME.fullmatch(name) and name.lower() not in taken
    found = name if plain and name != CONTENTS.removesuffix(".json") else f"array_{number}"
    while found.lower() in taken:
        found += "_"
    taken.add(found.lower())
    return f"{found}.npy"


@in_default_mode
def save(path: str | os.PathLike[str], obj: object) -> None:
    """Write a FloatArray or a NumPy array, or a list or a dict of these, to an `.npz` file.

    Parameters
    ----------
    path
        The file; its name should end in `.npz`. It is replaced atomically: an older file remains until the last byte is
        on the disk.
    obj
        A FloatArray or a NumPy array, or a list, tuple or dict of these. Keys of a dict are strings.

    Returns
    -------
    None

    Raises
    ------
    UnsupportedError
        For objects that cannot be saved; nothing is written then.
    OSError
        From the file system.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "model.npz")
    >>> save(path, {"weight": FloatArray([1.0, 448.0], "e4m3"), "step": np.int64(7)})
    >>> load(path)
    {'weight': FloatArray([1.0, 448.0], e4m3fn), 'step': array(7)}
    >>> np.load(path)["weight"]
    array([ 56, 126], dtype=uint8)
    """
    if isinstance(obj, dict):
        kind, pairs = "dict", list(obj.items())
        for key in obj:
            if not isinstance(key, str):
                raise UnsupportedError(f"the keys of obj must be strings, not {key!r}")
            if any(0xD800 <= ord(ch) < 0xE000 for ch in key):
                raise UnsupportedError(f"obj has a key that is not text: {key!r}")
    elif isinstance(obj, list | tuple):
        kind, pairs = "list", list(enumerate(obj))
    else:
        kind, pairs = "one", [(None, obj)]
    taken: set[str] = set()
    entries, arrays = [], {}
    for number, (key, x) in enumerate(pairs):
        entry, array = _entry(key, x)
        entry["member"] = _member("array" if key is None else key, taken, number)
        entries.append(entry)
        arrays[entry["member"]] = array
    contents = json.dumps({"floatlab": VERSION, "kind": kind, "arrays": entries}, indent=1)
    try:
        with (
            replacing(path, sync=True) as file,
            zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as bundle,
        ):
            bundle.writestr(zipfile.ZipInfo(CONTENTS, _DATE), contents)
            for member, array in arrays.items():
                with bundle.open(zipfile.ZipInfo(member, _DATE), "w", force_zip64=True) as each:
                    np.lib.format.write_array(each, np.asarray(array), allow_pickle=False)
    except FileFormatError as trouble:
        raise UnsupportedError(f"path {quoted(os.fspath(path), 60)} {trouble}") from None


@in_default_mode
def load(path: str | os.PathLike[str]) -> Any:
    """Read a file that `save` wrote.

    Parameters
    ----------
    path
        The file.

    Returns
    -------
    FloatArray, list or dict
        The saved object: a FloatArray or a NumPy array, or a list or a dict of these. If a tuple was saved, the result
        is a list.

    Raises
    ------
    FileFormatError
        For a damaged file, and for a file that `save` did not write; the message is one line.
    OSError
        For a file that cannot be opened.

    Examples
    --------
    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "weight.npz")
    >>> save(path, FloatArray([1.0, 448.0], "e4m3"))
    >>> load(path)
    FloatArray([1.0, 448.0], e4m3fn)
    """
    said = quoted(os.path.basename(os.fspath(path)), 60)
    with open(path, "rb") as file:
        try:
            with zipfile.ZipFile(file) as bundle:
                return _loaded(bundle, os.fstat(file.fileno()).st_size)
        except FileFormatError as trouble:
            raise FileFormatError(f"{said}: {trouble}") from None
        except zipfile.BadZipFile as trouble:
            raise FileFormatError(f"{said} is not an .npz file of floatlab: {_line(trouble)}") from None
        except _UNREADABLE as trouble:
            raise FileFormatError(f"{said} cannot be read: {_line(trouble)}") from None


def _line(trouble: Exception) -> str:
    """Return a library's error message on one line, in at most 80 characters."""
    words = " ".join(str(trouble).split()) or type(trouble).__name__
    return printable(words)[:80]


def _loaded(bundle: zipfile.ZipFile, length: int) -> object:
    members = {info.filename: info for info in bundle.infolist()}
    if len(members) != len(bundle.infolist()):
        raise FileFormatError("two members have the same name")
    for info in members.values():
        if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
            raise FileFormatError(f"member {quoted(info.filename)} is compressed, which floatlab never does")
    if sum(info.file_size for info in members.values()) > length:
        raise FileFormatError("its members declare more bytes than the file has")
    if CONTENTS not in members:
        raise FileFormatError(f"there is no {CONTENTS} in it; numpy.load reads files of plain arrays")
    contents = read_contents(bundle.read(CONTENTS))
    entries, kind = contents["arrays"], contents["kind"]
    named = [entry["member"] for entry in entries]
    if len(set(named)) != len(named):
        raise FileFormatError("two arrays share a member")
    arrays = []
    for entry in entries:
        if entry["member"] not in members:
            raise FileFormatError(f"member {quoted(entry['member'])} is missing")
        info = members[entry["member"]]
        with bundle.open(info) as member:
            arrays.append(_restored(entry, _array(member, info)))
    if kind == "dict":
        return dict(zip((entry["key"] for entry in entries), arrays, strict=True))
    return arrays if kind == "list" else arrays[0]


def read_contents(text: bytes) -> dict[str, Any]:
    """Read `floatlab.json`, and check all of it except formats and contexts."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        raise FileFormatError(f"{CONTENTS} is not JSON") from None
    if not isinstance(found, dict) or found.get("floatlab") != VERSION:
        version = found.get("floatlab") if isinstance(found, dict) else None
        raise FileFormatError(f"{CONTENTS} has version {quoted(str(version))}; this floatlab reads {VERSION}")
    kind, entries = found.get("kind"), found.get("arrays")
    if kind not in ("one", "list", "dict") or not isinstance(entries, list) or (kind == "one" and len(entries) != 1):
        raise FileFormatError(f"{CONTENTS} describes neither an array, nor a list, nor a dict")
    for entry in entries:
        if not isinstance(entry, dict) or set(entry) != {"key", "member", "format", "context"}:
            raise FileFormatError(f"{CONTENTS}: an entry has other fields than key, member, format and context")
        if not isinstance(entry["member"], str) or (kind == "dict" and not isinstance(entry["key"], str)):
            raise FileFormatError(f"{CONTENTS}: a key or a member is not text")
    if kind == "dict" and len({entry["key"] for entry in entries}) != len(entries):
        raise FileFormatError(f"{CONTENTS}: two arrays have the same key")
    return found


def _array(member: IO[bytes], info: zipfile.ZipInfo) -> Array:
    """Read a .npy member; its header must be short and declare exactly the bytes that follow."""
    name = quoted(info.filename)
    try:
        header = read_header(member, info.file_size)
    except FileFormatError as trouble:
        raise FileFormatError(f"member {name} {trouble}") from None
    dtype, length = header.dtype, header.nbytes
    flat = np.empty(header.size, dtype)
    octets = flat.view(np.uint8)
    for first in range(0, length, _PIECE):
        piece = member.read(wanted := min(_PIECE, length - first))
        if len(piece) != wanted:
            raise FileFormatError(f"member {name} ends early")
        octets[first : first + wanted] = np.frombuffer(piece, np.uint8)
    if dtype.kind == "b":
        flat = octets != 0  # bytes other than 0 and 1 are not valid NumPy bools
    try:
        return flat.astype(dtype.newbyteorder("="), copy=False).reshape(
            header.shape, order="F" if header.by_columns else "C"
        )
    except ValueError:
        raise FileFormatError(f"member {name} has an impossible shape") from None


def _restored(entry: dict[str, Any], array: Array) -> FloatArray | Array:
    name = quoted(entry["member"])
    if entry["format"] is None:
        return array
    try:
        format = read_format(entry["format"])
        context = None if entry["context"] is None else _context_read(entry["context"])
        if array.dtype != container(format):
            raise FileFormatError(f"its codes are {array.dtype.name}; {format.name} has {container(format).name}")
        return FloatArray._of(checked_codes(array, format), format, context)
    except FloatlabError as trouble:
        raise FileFormatError(f"member {name}: {trouble}") from None


def read_format(said: object) -> Format:
    """Return the format of an array's entry, from its name or its parameters; raises FloatlabError for invalid ones."""
    if isinstance(said, str):
        return array_format(said)
    kinds = {"name": str, "precision": int, "exponent_bits": int, "bias": int, "nans": int}
    if not isinstance(said, dict) or set(said) != set(Format._fields):
        raise FileFormatError("its format is neither a name nor a set of parameters")
    for field, value in said.items():
        if type(value) is not kinds.get(field, bool):
            raise FileFormatError(f"its format has {field} = {quoted(str(value))}")
    if len(said["name"]) > 100 or not said["name"].isprintable():
        raise FileFormatError("its format has no printable name")
    return array_format(Format(**said))


def _context_read(said: object) -> Context:
    if not isinstance(said, dict) or set(said) | set(LATER_FIELDS) != set(Context._fields):
        raise FileFormatError("its context has missing or unknown fields")
    words: dict[str, Any] = {field: value for field, value in said.items() if isinstance(value, str | bool | int)}
    flags = ("flush_inputs", "flush_results", "fma_invalid")
    if len(words) != len(said) or any(not isinstance(said[field], bool) for field in flags):
        raise FileFormatError("its context has fields of wrong types")
    return Context(**words)
