"""Opens checkpoints: the named tensors of a model, in one file, in several files, or in memory.

A checkpoint is a `.safetensors`, `.npz`, `.npy` or `.gguf` file, a folder of these files, an index of several
`.safetensors` (`model.safetensors.index.json`), a random array (`random:normal:64x64:seed=1@bf16`), or a mapping of
names to arrays. Files and folders are at paths or URLs. Opening a checkpoint reads only headers and JSON files. A
`.npz` stays open until the checkpoint is closed. Other files are opened again for each tensor, so that a checkpoint of
many files never has all of them open.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial

from floatlab.arrays.sources import ArraySource, HeldSource
from floatlab.errors import FileFormatError, FloatlabError, UnsupportedError, quoted
from floatlab.files.checkpoints.checkpoint import Checkpoint, StoredTensor, unreadable
from floatlab.files.gguf import open_tensor, plain_kind, read_gguf
from floatlab.files.json_files import read_json
from floatlab.files.npy import open_npy
from floatlab.files.npz import Bundle, NpzEntry
from floatlab.files.pickles import pickle_kind, refuse_pickle
from floatlab.files.random_arrays import RANDOM, open_random
from floatlab.files.remote import opening
from floatlab.files.remote.urls import folder_of, inside, is_url, plain
from floatlab.files.safe_open import named, open_file, shown
from floatlab.files.safetensors import kind_called, open_entry, read_safetensors
from floatlab.sandbox import admitted, exists, is_folder

INDEX = ".safetensors.index.json"  # how the name of an index ends
KINDS = (".safetensors", ".gguf", ".npz", ".npy")  # if a folder has files of several kinds, the first kind is read
MOST_FILES = 4096
_MOST_LISTED = 20_000  # the largest number of entries in a folder
_PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")


def has_several(path: str) -> bool:
    """Return whether a checkpoint is a folder, an index, or a file that does not have exactly one tensor.

    Raises the same errors as `open_checkpoint`.
    """
    if _is_folder(path) or plain(path).endswith(INDEX):
        return True
    with _of_files(path, [path]) as checkpoint:
        return len(checkpoint.tensors) != 1


def open_checkpoint(place: str | os.PathLike[str] | Mapping[str, object]) -> Checkpoint:
    """Open a checkpoint: a file, an index, a folder, a random array, or a mapping of names to arrays.

    Raises FileFormatError, with a message of one line, for invalid files, for pickles, and for missing or repeated
    tensors. Raises RefusedError for a place that this process may not read, and UnsupportedError for a place of another
    type.

    >>> import numpy as np
    >>> with open_checkpoint({"a": np.float32([1, 2]), "b": np.float16([3])}) as checkpoint:
    ...     [(each.name, each.dtype, each.shape) for each in checkpoint.tensors.values()]
    [('a', 'float32', (2,)), ('b', 'float16', (1,))]
    >>> list(open_checkpoint("random:normal:64x64:seed=1@bf16").tensors)
    ['normal']
    """
    if isinstance(place, Mapping):
        return _of_mapping(place)
    try:
        path = os.fspath(place)
    except TypeError:
        kind = type(place).__name__
        raise UnsupportedError(f"a checkpoint must be a path or a mapping of names to arrays, not {kind}") from None
    if path.startswith(RANDOM) and not exists(path):
        return _of_random(path)
    if not is_url(path):
        admitted(path)
    if _is_folder(path):
        return _of_folder(path)
    if not is_url(path) and not exists(path):
        file, _, name = path.partition("::")
        if name and exists(file):
            raise FileFormatError(f"{shown(path)} names one tensor: give {shown(file)}, and --only {quoted(name, 80)}")
        raise FileFormatError(f"{shown(path)} does not exist")
    if plain(path).endswith(INDEX):
        return _of_index(path)
    checkpoint = _of_files(path, [path])
    _read_configs(checkpoint, folder_of(path))
    return checkpoint


def _is_folder(path: str) -> bool:
    if not is_url(path):
        return is_folder(path)
    with named(path):
        return opening.is_folder_url(path)


def _exists(path: str) -> bool:
    if not is_url(path):
        return os.path.lexists(path)
    with named(path):
        return opening.exists_at(path)


def _of_mapping(arrays: Mapping[str, object]) -> Checkpoint:
    checkpoint = Checkpoint("the mapping", "memory")
    for name, array in arrays.items():
        if not isinstance(name, str):
            raise UnsupportedError(f"a checkpoint is a mapping of names to arrays, but has the key {name!r:.60}")
        try:
            held = HeldSource(array, name)
        except FloatlabError as trouble:
            checkpoint.add([unreadable(name, trouble)], "")
            continue
        checkpoint.add([StoredTensor(name, held.kind, held.kind, held.shape, partial(_itself, held))], "")
    return checkpoint


def _of_random(word: str) -> Checkpoint:
    """Return a checkpoint with one random array, named after its distribution, such as `normal`."""
    checkpoint, array = Checkpoint(word, "memory"), open_random(word)
    name = word.split(":")[1]
    checkpoint.add([StoredTensor(name, array.kind, array.kind, array.shape, partial(open_random, word))], word)
    return checkpoint


def _itself(array: ArraySource) -> ArraySource:
    return array


def _of_folder(folder: str) -> Checkpoint:
    """Open the checkpoint in a folder: the index if there is one, otherwise all files of one kind.

    This kind is the first of the KINDS that occur in the folder.
    """
    with named(folder):
        names = sorted(opening.listed(folder) if is_url(folder) else os.listdir(admitted(folder)))
    if len(names) > _MOST_LISTED:
        raise FileFormatError(f"{shown(folder)} has {len(names):,} entries; at most {_MOST_LISTED:,} are read")
    indices = [name for name in names if name.endswith(INDEX)]
    if len(indices) > 1:
        few = " and ".join(map(quoted, indices[:2]))
        raise FileFormatError(f"{shown(folder)} has several checkpoints: name one index, such as {few}")
    if indices:
        return _of_index(inside(folder, indices[0]))
    for kind in KINDS:
        if found := [inside(folder, name) for name in names if name.endswith(kind) and name[0] != "."]:
            checkpoint = _of_files(folder, found)
            _read_configs(checkpoint, folder)
            return checkpoint
    if pickled := next((name for name in names if name.endswith(_PICKLED)), None):
        path = inside(folder, pickled)
        raise refuse_pickle(path, pickle_kind(path, b"") or "torch")
    raise FileFormatError(f"{shown(folder)} has no checkpoint: no .safetensors, .gguf, .npz or .npy")


def _of_index(path: str) -> Checkpoint:
    """Open the files that an index names.

    The files must be in the folder of the index. Each file must have the tensors that the index assigns to it.
    """
    placed = read_json(path).get("weight_map")
    if not isinstance(placed, dict) or not placed:
        raise FileFormatError(f"{shown(path)} is not an index of a checkpoint: it has no weight_map")
    for name, file in placed.items():
        if not isinstance(file, str) or not _is_plain_name(file):
            said = quoted(file) if isinstance(file, str) else "a file without a name"
            raise FileFormatError(
                f"{shown(path)} places the tensor {quoted(name)} in {said}, "
                "but the files of a checkpoint are .safetensors in the folder of the index"
            )
    folder = folder_of(path)
    checkpoint = _of_files(path, [inside(folder, name) for name in dict.fromkeys(placed.values())], placed)
    missing = next((name for name in placed if name not in checkpoint.tensors), None)
    if missing is not None:
        raise FileFormatError(
            f"{shown(path)} places the tensor {quoted(missing, 80)} in {quoted(placed[missing], 80)}, which lacks it"
        )
    checkpoint.tensors = {name: checkpoint.tensors[name] for name in placed}
    checkpoint.files.append(path)
    _read_configs(checkpoint, folder)
    return checkpoint


def _is_plain_name(name: str) -> bool:
    """Return whether `name` is only the name of a .safetensors file, without a folder, on all operating systems."""
    return name.endswith(".safetensors") and name.isprintable() and not set(name) & set("/\\:") and name[0] != "."


def _of_files(name: str, paths: list[str], placed: dict[str, str] | None = None) -> Checkpoint:
    """Open files of one kind as a checkpoint; `placed`, from an index, maps each tensor to the name of its file."""
    if len(paths) > MOST_FILES:
        raise FileFormatError(f"{shown(name)} has {len(paths):,} files; at most {MOST_FILES:,} are read")
    kind = next((kind for kind in KINDS if plain(paths[0]).lower().endswith(kind)), None)
    if kind is None:
        if (pickled := pickle_kind(paths[0], b"")) is not None:
            raise refuse_pickle(paths[0], pickled)
        raise FileFormatError(f"{shown(paths[0])} is not a checkpoint: give a folder, {', '.join(KINDS)} or *{INDEX}")
    checkpoint = Checkpoint(name, kind[1:])
    try:
        for path in paths:
            found = _READERS[kind](checkpoint, path)
            checkpoint.files.append(path)
            if placed is not None:
                base = os.path.basename(plain(path))
                found = [each for each in found if placed.get(each.name) == base]
            checkpoint.add(found, path)
    except FloatlabError:
        checkpoint.close()
        raise
    return checkpoint


def _safetensors(checkpoint: Checkpoint, path: str) -> list[StoredTensor]:
    with open_file(path) as file, named(path):
        tensors, metadata = read_safetensors(file)
    checkpoint.metadata |= metadata
    return [
        StoredTensor(each.name, each.dtype, kind_called(each.dtype), each.shape, partial(open_entry, path, each))
        for each in tensors.values()
    ]


def _gguf(checkpoint: Checkpoint, path: str) -> list[StoredTensor]:
    with open_file(path) as file, named(path):
        header = read_gguf(file)
    checkpoint.metadata |= header.metadata
    return [
        StoredTensor(each.name, each.dtype, plain_kind(each.dtype), each.shape, partial(open_tensor, path, each))
        for each in header.tensors.values()
    ]


def _npz(checkpoint: Checkpoint, path: str) -> list[StoredTensor]:
    bundle = Bundle(path)
    checkpoint.holding(bundle)
    found = []
    for name in bundle.names:
        try:
            array = bundle.open(name)
        except FloatlabError as trouble:
            found.append(unreadable(name, trouble))
            continue
        found.append(StoredTensor(name, array.kind, array.kind, array.shape, NpzEntry(bundle, name)))
        array.close()
    return found


def _npy(checkpoint: Checkpoint, path: str) -> list[StoredTensor]:
    """Return the only tensor of a `.npy` file. The name of the tensor is the name of the file without the suffix."""
    with open_npy(path) as array:
        name = os.path.basename(plain(path))[: -len(".npy")]
        return [StoredTensor(name, array.kind, array.kind, array.shape, partial(open_npy, path))]


_READERS = {".safetensors": _safetensors, ".gguf": _gguf, ".npz": _npz, ".npy": _npy}


def _read_configs(checkpoint: Checkpoint, folder: str) -> None:
    """Read the configuration files beside `.safetensors` files; other kinds of files have none."""
    if checkpoint.kind != "safetensors":
        return
    for name in ("config.json", "hf_quant_config.json"):
        path = inside(folder, name)
        if _exists(path):
            checkpoint.configs[name] = read_json(path)
            checkpoint.files.append(path)
