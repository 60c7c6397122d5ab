"""Opens arrays by name: files of any kind, lists of numbers, random arrays."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from floatlab.arrays.sources import ArraySource
from floatlab.errors import FileFormatError, quoted
from floatlab.files.pickles import pickle_kind, refuse_pickle
from floatlab.files.remote.urls import is_url, plain
from floatlab.files.safe_open import named, open_file, read_start, shown
from floatlab.files.text import is_nested, open_text, parse_list
from floatlab.formats import Format, parse_format
from floatlab.fpmode import in_default_mode
from floatlab.sandbox import exists, is_folder

_MEANT = {
    "(": "; lists are in square brackets, as in [[1, 2], [3, 4]]",
    "{": "; lists are in square brackets, as in [[1, 2], [3, 4]]",
    "<tf.": "; from TensorFlow's output, give the array after numpy=",
}
_LIST = re.compile(r"[-+]?(?:\.?[0-9]|inf|[sq]?nan|bits:).*", re.IGNORECASE | re.DOTALL)
_FILE = re.compile(r".*\.(npy|npz|safetensors|gguf|txt|csv|tsv|dat|bin|raw)(::.*)?", re.IGNORECASE | re.DOTALL)
_REMARKS = re.compile(r"\A(?:\s*#[^\n]*\n)+")
_PLACE, _RANDOM = "::", "random:"
# The first bytes of each kind of file, and the suffixes of their names.
_STARTS = {b"\x93NUMPY": "npy", b"PK\x03\x04": "npz", b"PK\x05\x06": "npz", b"GGUF": "gguf"}
_ENDS = ("npy", "npz", "safetensors", "gguf")
_SEVERAL = ("npz", "safetensors", "gguf")  # kinds of files with several arrays
_INDEX = ".safetensors.index.json"
_START = 4096  # a file's kind is recognised by up to this many first bytes


@in_default_mode
def open_array(
    word: str,
    format: Format | str = "binary64",
    *,
    dtype: str | None = None,
    shape: str | None = None,
) -> ArraySource:
    """Open the array named by `word`, for reading piece by piece. Close the array after use, or open it in a `with`.

    The name may be a list (`1.5,-2,0x1p-3`, with `;` between rows), an array as Python prints it (`[[1, 2], [3, 4]]`,
    `tensor([[…]], dtype=torch.float16)`), a random array (`random:uniform:400x400:seed=1`), or a file: `.npy`,
    `.npz::NAME`, `.safetensors::NAME`, `.gguf::NAME`, text, or raw numbers of a `dtype` and a `shape` (`400x400`).
    Lists, random numbers and text files are rounded into `format`; a list or a random array may name another format
    (`LIST@FORMAT`), which takes precedence. Printed arrays with a dtype, and files that are not text, keep their
    format. For pickles, such as `.pt`, the error gives the command that converts them. Raises a FloatlabError of one
    line, such as FileFormatError, LiteralError or UnsupportedError.

    >>> with open_array("random:normal:100:seed=7@bf16") as x:
    ...     x.shape, x.kind
    ((100,), 'bfloat16')
    """
    kind = kind_of(word, dtype)
    if kind in ("list", "random"):
        return _made(word, kind, format)
    path, name = split_place(word)
    if kind not in _SEVERAL and name is not None:
        raise FileFormatError(f"{shown(path)} has one array only: leave out the name {quoted(name)}")
    if kind == "npz":
        from floatlab.files.npz import open_npz

        return open_npz(path, name)
    if kind == "safetensors":
        from floatlab.files.safetensors import open_safetensors

        return open_safetensors(path, name)
    if kind == "gguf":
        from floatlab.files.gguf import open_gguf

        return open_gguf(path, name)
    if kind == "npy":
        from floatlab.files.npy import open_npy

        return open_npy(path)
    if kind == "raw" and dtype is not None:
        from floatlab.files.raw import open_raw

        return open_raw(path, dtype, shape)
    if kind == "nested":
        from floatlab.files.nested import open_nested

        return open_nested(path, parse_format(format))
    return open_text(path, parse_format(format))


@contextmanager
def open_arrays(
    words: Sequence[str],
    format: Format | None = None,
    usual: str = "binary32",
    *,
    dtype: str | None = None,
    shape: str | None = None,
) -> Iterator[list[ArraySource]]:
    """Open several arrays by their names, and close them at the end of the `with`.

    Text and random numbers are rounded into `format` or, if `format` is None, into the format of the first array that
    has its own format. If no array has its own format, they are rounded into `usual`. The other arguments and the
    errors are those of `open_array`.

    >>> with open_arrays(("1,2", "random:normal:2@fp16")) as (x, y):
    ...     x.kind, y.kind
    ('float16', 'float16')
    """
    with ExitStack() as opened:
        sources: dict[int, ArraySource] = {}
        for i in sorted(range(len(words)), key=lambda i: not _says_format(words[i], dtype)):
            sources[i] = opened.enter_context(open_array(words[i], format or usual, dtype=dtype, shape=shape))
            format = format or sources[i].format
        yield [sources[i] for i in range(len(words))]


def kind_of(word: str, dtype: str | None = None) -> str:
    """Return the kind of a named array: list, random, text, nested, npy, npz, safetensors, gguf, or raw (with `dtype`).

    `nested` is a file of nested lists; nested lists in `word` itself are a `list`.
    """
    if not exists(word):
        if word.startswith(_RANDOM):
            return "random"
        if is_nested(word) or _is_list(word.rpartition("@")[0]) or _is_list(word):
            return "list"
    return _file_kind(split_place(word)[0], dtype)


def is_checkpoint(word: str) -> bool:
    """Return whether a word names a checkpoint as a whole: a folder, an index, or a file that can have several arrays.

    A URL is judged by its suffix only; a path must also exist.

    >>> is_checkpoint("1,2"), is_checkpoint("model.safetensors::weight")
    (False, False)
    """
    ends = word.endswith((*(f".{kind}" for kind in _SEVERAL), _INDEX))
    if "://" in word and is_url(word):
        return ends or word.endswith("/")
    return exists(word) and (is_folder(word) or ends)


def _says_format(word: str, dtype: str | None) -> bool:
    """Return whether an array has its own format. Plain text has none: its numbers can be rounded into any format."""
    kind = kind_of(word, dtype)
    if kind == "nested" or (kind == "list" and is_nested(word) and "@" not in word):
        from floatlab.files.nested import file_has_dtype, has_dtype

        return file_has_dtype(word) if kind == "nested" else has_dtype(word)
    return "@" in word if kind in ("list", "random") else kind != "text"


def _is_list(word: str) -> bool:
    return _LIST.fullmatch(word) is not None and _FILE.fullmatch(word) is None


def _made(word: str, kind: str, format: Format | str) -> ArraySource:
    """Return the array that a list or `random:…` describes, in the format after @ if there is one, else in `format`."""
    if kind == "random":
        from floatlab.files.random_arrays import open_random

        return open_random(word, format)
    text, at, own = word.rpartition("@")
    text, chosen = (text, parse_format(own)) if at else (word, parse_format(format))
    if is_nested(text):
        from floatlab.files.nested import parse_nested

        return parse_nested(text, chosen, own=bool(at))
    array = parse_list(text, chosen)
    array.name = word
    return array


def split_place(word: str) -> tuple[str, str | None]:
    """Split FILE::NAME into its parts, unless a file has exactly this name.

    >>> split_place("model.safetensors::weight"), split_place("a.npy")
    (('model.safetensors', 'weight'), ('a.npy', None))
    """
    if exists(word) or _PLACE not in word:
        return word, None
    parts = word.split(_PLACE)
    for i in range(len(parts) - 1, 0, -1):
        if exists(path := _PLACE.join(parts[:i])):
            return path, _PLACE.join(parts[i:])
    return parts[0], _PLACE.join(parts[1:])


def _file_kind(path: str, dtype: str | None) -> str:
    """Return the kind of a file. A known suffix determines the kind.

    Without a known suffix, the file is raw if a dtype is given. Otherwise the first bytes determine the kind; if they
    are of no known kind, the file is text. Raises FileFormatError for a pickled file, and for a file that cannot be
    read.
    """
    try:
        with open_file(path) as file, named(path):
            start = read_start(file, _START)
    except FileFormatError as trouble:
        if exists(path) or is_url(path):
            raise
        hint = next((words for start, words in _MEANT.items() if path.lstrip().startswith(start)), "")
        raise FileFormatError(f"{trouble}, nor a list of numbers{hint}") from None
    by_start = next((kind for begins, kind in _STARTS.items() if start.startswith(begins)), None)
    by_name = next((kind for kind in _ENDS if plain(path).lower().endswith(f".{kind}")), None)
    if dtype is not None and by_name is None:
        return "raw"
    if by_name is None and by_start != "npy" and (pickled := pickle_kind(path, start)) is not None:
        raise refuse_pickle(path, pickled)
    if by_name is None and by_start is None and is_nested(_without_remarks(start)):
        return "nested"
    return by_name or by_start or "text"


def _without_remarks(start: bytes) -> str:
    """Decode the beginning of a text file, and return it without the comment lines at the top of the file."""
    text = start.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "backslashreplace")
    return _REMARKS.sub("", text)
