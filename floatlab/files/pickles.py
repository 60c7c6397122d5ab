"""Pickled files: how to recognise and convert them. They are not read, because reading them could run any code."""

from __future__ import annotations

import re
import shlex

from floatlab.errors import FileFormatError, printable
from floatlab.files.safe_open import shown

_TORCH_NAME = re.compile(r".*\.(pt|pth|ckpt)", re.IGNORECASE | re.DOTALL)
_PICKLE_NAME = re.compile(r".*\.(pkl|pickle)", re.IGNORECASE | re.DOTALL)
_ZIP = b"PK\x03\x04"
_OLD_TORCH = b"\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # the pickled number at the start of files of torch.save before 1.6
_TORCH_LINE = (
    "import sys, torch, safetensors.torch as s; t = torch.load(sys.argv[1], 'cpu', weights_only=True); "
    "s.save_file({k: v.detach().contiguous().clone() for k, v in (t if isinstance(t, dict) else {'x': t}).items()}, "
    "sys.argv[2])"
)
_PICKLE_LINE = (
    "import sys, pickle, numpy; "
    "numpy.save(sys.argv[2], numpy.asarray(pickle.load(open(sys.argv[1], 'rb'))), allow_pickle=False)"
)


def pickle_kind(path: str, start: bytes) -> str | None:
    r"""Return "torch" or "pickle" if a file is pickled, judged by its first bytes and its name; None for other files.

    >>> pickle_kind("model.pt", b""), pickle_kind("x.bin", b"\x80\x04\x95"), pickle_kind("x.bin", b"1 2 3")
    ('torch', 'pickle', None)
    """
    is_pickled = start[:1] == b"\x80" and start[1:2] in (b"\2", b"\3", b"\4", b"\5")
    zipped = start.startswith(_ZIP)
    if (zipped and b"data.pkl" in start) or (is_pickled and _OLD_TORCH in start):
        return "torch"
    if zipped and b".npy" in start[:300]:
        return None
    if _TORCH_NAME.fullmatch(path):
        return "torch"
    return "pickle" if is_pickled or _PICKLE_NAME.fullmatch(path) else None


def refuse_pickle(path: str, kind: str) -> FileFormatError:
    """Return the error for a pickled file; its message has the command that converts the file.

    >>> str(refuse_pickle("w.pkl", "pickle")).partition(": ")[0]
    "'w.pkl' is a pickle, and reading one can run any code; if you trust it, convert it"
    """
    stem = re.sub(r"\.(pt|pth|ckpt|bin|pkl|pickle)$", "", path, flags=re.IGNORECASE)
    line, into = (_TORCH_LINE, ".safetensors") if kind == "torch" else (_PICKLE_LINE, ".npy")
    what = (
        "holds pickled tensors of PyTorch, which are not read; convert it"
        if kind == "torch"
        else "is a pickle, and reading one can run any code; if you trust it, convert it"
    )
    command = f'python -c "{line}" {shlex.quote(path)} {shlex.quote(stem + into)}'
    return FileFormatError(f"{shown(path)} {what}: {printable(command)}")
