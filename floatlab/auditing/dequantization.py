"""`dequantize`: writes a quantised checkpoint as plain numbers."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from math import prod

import numpy as np

from floatlab.arrays.codec import round_array
from floatlab.arrays.sources import Source, array_format, native_dtype
from floatlab.arrays.types import Array
from floatlab.auditing.quantized import load_quantized
from floatlab.auditing.stored_parts import Weight
from floatlab.errors import FileFormatError, UnsupportedError, guess, quoted
from floatlab.files.checkpoints import StoredTensor, matching
from floatlab.files.safe_open import shown
from floatlab.files.safetensors import dtype_called
from floatlab.files.safetensors_writing import NewTensor, write_safetensors
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.numbers import Flags
from floatlab.presenter import Drawn
from floatlab.record import Record

TARGETS = ("fp32", "bf16", "fp16", "fp64")
Progress = Callable[[int], None]


class ReadWeight(Record):
    """A quantised weight that was written as numbers.

    `convention` names the way in which it was stored, and `evidence` says how the convention was recognised. `formula`
    says how a code becomes a number. `overflows` is the number of values that were too large for the written format and
    became infinite.
    """

    name: str
    shape: tuple[int, ...]
    convention: str
    formula: str
    evidence: str
    overflows: int


class Dequantization(Record, Drawn):
    """A quantised checkpoint that was written as numbers of `format`.

    `weights` has the quantised weights. `unchanged` has the names of tensors that were copied. `left_out` has the names
    of stored parts of quantised weights (codes, scales) that the written file does not have. `bytes` is the size of
    this file.
    """

    source: str
    target: str
    format: Format
    weights: tuple[ReadWeight, ...]
    unchanged: tuple[str, ...]
    left_out: tuple[str, ...]
    bytes: int


@in_default_mode
def dequantize(
    place: str | os.PathLike[str] | Mapping[str, object],
    target: str | os.PathLike[str],
    to: str = "fp32",
    only: str | None = None,
    progress: Callable[[int], Progress] | None = None,
) -> Dequantization:
    """Write a quantised checkpoint as a `.safetensors` file of plain numbers; other tensors are copied unchanged.

    Parameters
    ----------
    place
        The checkpoint, given as for `load_quantized`.
    target
        The file to write. An existing file is replaced after everything has been written. The file may be larger than
        memory.
    to
        The format of the written weights: fp32, bf16, fp16 or fp64. Each exact value is rounded once.
    only
        A glob that chooses tensors by name, such as `model.layers.0.*`.
    progress
        A function that is called once, with the total number of elements. It must return a second function, which is
        then called with the number of elements done since the previous call.

    Returns
    -------
    Dequantization

    Raises
    ------
    FileFormatError
        If a file is not valid, if a weight cannot be read, or if the target cannot be written.
    UnsupportedError
        If `to` is none of the four formats, if the target does not end in `.safetensors`, if a tensor cannot be copied,
        or if the glob matches no tensor.

    Examples
    --------
    >>> import tempfile
    >>> codes, scales = np.uint8([[[0x21] * 16]]), np.uint8([[128]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     done = dequantize({"a_blocks": codes, "a_scales": scales}, f"{folder}/a.safetensors", to="bf16")
    >>> done.weights[0].name, done.weights[0].shape, done.left_out
    ('a', (1, 32), ('a_blocks', 'a_scales'))
    """
    path = os.fspath(target)
    format = target_format(to)
    if not path.endswith(".safetensors"):
        raise UnsupportedError(f"the numbers are written as .safetensors, but {shown(path)} ends differently")
    with load_quantized(place) as checkpoint:
        _refuse_own_files(place, path)
        names = matching(checkpoint.names, only, checkpoint.name)
        for name in names:
            if name in checkpoint.unreadable:
                raise FileFormatError(f"{shown(checkpoint.name)}: {checkpoint.unreadable[name]}")
        weights = [checkpoint.weights[name] for name in names if name in checkpoint.weights]
        plain = [checkpoint.plain[name] for name in names if name in checkpoint.plain]
        total = sum(prod(weight.shape) for weight in weights) + sum(prod(stored.shape) for stored in plain)
        done = (lambda count: None) if progress is None else progress(total)
        overflows = dict.fromkeys((weight.name for weight in weights), 0)
        new = [_rounded(weight, format, overflows, done) for weight in weights]
        new += [_copied(stored, done) for stored in plain]
        size = write_safetensors(path, new, {"format": "pt"})
    return Dequantization(
        source=checkpoint.name,
        target=path,
        format=format,
        weights=tuple(
            ReadWeight(each.name, each.shape, each.convention, each.formula, each.evidence, overflows[each.name])
            for each in weights
        ),
        unchanged=tuple(each.name for each in plain),
        left_out=tuple(part for each in weights for part in each.parts if part != each.name),
        bytes=size,
    )


def target_format(name: str) -> Format:
    """Return the format of the written numbers; raises UnsupportedError for formats that cannot be written."""
    format = array_format(name)
    if not any(format == array_format(each) for each in TARGETS):
        raise UnsupportedError(
            f"numbers must be written as {', '.join(TARGETS)}, not as {quoted(name)}{guess(name, list(TARGETS))}"
        )
    return format


def _refuse_own_files(place: object, path: str) -> None:
    """Raise FileFormatError if the target may be one of the files that are read.

    If a file is read, the target must not be this file. If a folder is read, the target must not be in this folder. If
    an index is read, the target must not be an existing file beside the index.
    """
    if isinstance(place, Mapping):
        return
    read, written = os.path.realpath(os.fspath(place)), os.path.realpath(path)  # type: ignore[call-overload]
    folder = read if os.path.isdir(read) else ""
    if written == read or os.path.dirname(written) == folder or (read.endswith(".json") and _beside(read, written)):
        raise FileFormatError(f"{shown(path)} is part of the checkpoint that is read: name another file")


def _beside(read: str, written: str) -> bool:
    return os.path.dirname(read) == os.path.dirname(written) and os.path.exists(written)


def _rounded(weight: Weight, format: Format, overflows: dict[str, int], done: Progress) -> NewTensor:
    """Return a quantised weight, rounded to a format, as a tensor that can be written to a file."""

    def pieces() -> Iterator[Array]:
        with weight.open() as source:
            for piece in source.blocks():
                codes, counts = round_array(piece, format, as_codes=True, return_flags="counts")
                overflows[weight.name] += counts[Flags.OVERFLOW]
                done(len(codes))
                yield codes.astype(codes.dtype.newbyteorder("<"), copy=False)

    kind = native_dtype(format)
    dtype = dtype_called(format.name if kind is None else kind.name)
    return NewTensor(weight.name, dtype, weight.shape, format.width // 8, pieces)


def _copied(stored: StoredTensor, done: Progress) -> NewTensor:
    """Return a copy of a stored tensor as a tensor that can be written to a file."""
    dtype = dtype_called(stored.kind)
    with stored.open() as source:
        size = source.format.width // 8 if source.dtype is None else source.dtype.itemsize
        by_columns = source.by_columns
    if not dtype or not size:
        raise UnsupportedError(f"{stored.name} is {stored.dtype}, which cannot be copied; --only can leave it out")

    def pieces() -> Iterator[Array]:
        with stored.open() as source:
            for piece in [source.whole()] if by_columns else source.blocks():
                array = piece.codes if isinstance(piece, Source) else piece
                done(array.size)
                yield np.ascontiguousarray(array).reshape(-1).astype(array.dtype.newbyteorder("<"), copy=False)

    return NewTensor(stored.name, dtype, stored.shape, size, pieces)
