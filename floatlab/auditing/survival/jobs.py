"""The work of an audit, divided into jobs: an `AuditJob` is a region of a tensor and the recipes that round it.

`work` is a pure function of its job, so that jobs can be done in any order, in other processes and on other machines.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Mapping
from math import isfinite, isnan, nan

import numpy as np

from floatlab.arrays.codec import native
from floatlab.arrays.lanes.tally_lanes import Tally
from floatlab.arrays.round_trips.recipe_tally import tally_of
from floatlab.arrays.round_trips.round_trip import is_unscaled, numbers_of, round_trip, spans
from floatlab.arrays.sources import ArraySource, HeldSource, Piece, Source
from floatlab.arrays.types import Array
from floatlab.auditing.quantized import QuantizedCheckpoint, load_quantized
from floatlab.auditing.survival.outputs import MOST_SAMPLES, OutputErrors, output_errors
from floatlab.auditing.survival.regions import TensorRegion
from floatlab.auditing.survival.scale_tally import ScaleTally, scale_tally
from floatlab.errors import FileFormatError, FloatlabError, UnsupportedError, quoted
from floatlab.files.checkpoints import states_of
from floatlab.files.safe_open import shown
from floatlab.formats.recipes import Recipe, parse_recipe
from floatlab.fpmode import in_default_mode
from floatlab.record import Record

Place = object  # a path, or a mapping of names to arrays


class AuditJob(Record):
    """A piece of work: a region of a tensor, rounded by each of the recipes.

    `subject` is the index of the tensor in the audit. The recipes of a tensor form groups; all recipes of a group are
    measured in the same regions. `group` is the index of the group, and `order` is the index of the region in its
    group. A scale may depend on numbers outside of the region. Therefore `peaks` has, for each recipe, the number with
    the largest magnitude in the tensor or row, or None if the recipe needs no such number. If `only_peaks`, the job
    only looks for these numbers, and nothing is rounded. If the outputs of the layer are compared, `inputs` is the file
    or the mapping with the inputs of layers, and `layer` is the name of the array in this file or mapping.

    `version` identifies the contents of the files at `place`. Another process cannot read mappings. If `place` is a
    mapping, `piece` therefore holds the region. If `inputs` is a mapping, `samples` holds the inputs of the layer.
    """

    place: Place
    tensor: str
    subject: int
    group: int
    order: int
    region: TensorRegion
    recipes: tuple[str, ...]
    peaks: tuple[float | None, ...] = ()
    only_peaks: bool = False
    overflow: str = "native"
    inputs: Place = None
    layer: str = ""
    version: str = ""
    piece: Piece | None = None
    samples: Piece | None = None


class Measured(Record):
    """The errors of a region that one of the recipes of a job has rounded."""

    tally: Tally
    scales: ScaleTally | None = None
    output: OutputErrors | None = None


class Result(Record):
    """The result of a job: for each recipe, the measured errors.

    If the job has `only_peaks`, the result has the peak for each recipe instead (see `peak_of`).

    If the job fails, for example because the tensor cannot be read, `trouble` says why.
    """

    measured: tuple[Measured, ...] = ()
    peaks: tuple[float | None, ...] = ()
    trouble: str = ""


@in_default_mode
def work(job: AuditJob) -> Result:
    """Do a job and return its result. If the job raises a FloatlabError, the result says why."""
    try:
        return _done(job)
    except FloatlabError as trouble:
        return Result(trouble=str(trouble))


def _done(job: AuditJob) -> Result:
    recipes = [parse_recipe(name) for name in job.recipes]
    piece = _piece_of(job)
    if job.only_peaks:
        return Result(peaks=tuple(peak_of(piece, recipe) for recipe in recipes))
    inputs = _inputs_of(job)
    found = []
    for recipe, peak in zip(recipes, job.peaks or (None,) * len(recipes), strict=True):
        trip = round_trip(piece, recipe, peak, job.overflow)
        output = None
        if inputs is not None:
            shape = job.region.rows, job.region.columns
            output = output_errors(inputs, trip.x.reshape(shape), trip.values.reshape(shape))
        whole_scales = _has_first_scale(recipe, job.region) or peak is None
        found.append(
            Measured(
                tally_of(trip, recipe, job.region.first, job.region.width),
                scale_tally(trip, recipe) if whole_scales else None,
                output,
            )
        )
    return Result(tuple(found))


def _piece_of(job: AuditJob) -> Piece:
    if job.piece is not None:
        return job.piece
    with _opened(job.place, job.tensor, job.version) as source:
        return read_region(source, job.region)


def _samples_of(job: AuditJob) -> Piece | None:
    if job.inputs is None:
        return job.samples
    with checkpoint_at(job.inputs).open(job.layer) as source:
        return source.whole()


def _inputs_of(job: AuditJob) -> Array | None:
    """Return at most 256 samples of the layer's inputs, as rows, or None if the job has no samples.

    Raises UnsupportedError if all inputs are 0, or if an input is not finite.
    """
    samples = _samples_of(job)
    if samples is None:
        return None
    rows = np.asarray(native(samples), np.float64).reshape(-1, job.region.width)[:MOST_SAMPLES]
    if not np.isfinite(rows).all() or not rows.any():
        what = "are all 0" if np.isfinite(rows).all() else "have NaNs or infinities"
        raise UnsupportedError(f"the inputs {quoted(job.layer, 80)} {what}, so the error of the output is not known")
    return rows


def packed(job: AuditJob) -> AuditJob:
    """Return the job in a form in which another process can do it.

    If the tensor or the activations are only in the memory of this process, the job gets a copy of the numbers that
    it needs.
    """
    if isinstance(job.place, Mapping):
        try:
            job = job.replace(piece=_piece_of(job), place=None)
        except FloatlabError:
            return job.replace(place={})  # the tensor cannot be read; with this place, the job fails and says why
    if isinstance(job.inputs, Mapping):
        job = job.replace(samples=_samples_of(job), inputs=None)
    return job


def _has_first_scale(recipe: Recipe, region: TensorRegion) -> bool:
    """Return whether the scales of this region are counted.

    If several regions share a scale, only the scales of the first of these regions are counted.
    """
    if recipe.format.block is not None or is_unscaled(recipe):
        return True
    return region.column == 0 and (region.row == 0 or spans(recipe) == "row")


def read_region(source: ArraySource, region: TensorRegion) -> Piece:
    """Return a region as a matrix.

    >>> source = HeldSource(np.arange(12.0).reshape(3, 4))
    >>> read_region(source, TensorRegion(1, 2, 1, 2, 4)).tolist()
    [[5.0, 6.0], [9.0, 10.0]]
    """
    if source.by_columns:
        whole = source.whole()
        held = whole.replace(codes=np.ascontiguousarray(whole.codes)) if isinstance(whole, Source) else whole
        source = HeldSource(held if isinstance(held, Source) else np.ascontiguousarray(held), source.name)
    shape = region.rows, region.columns
    if region.is_contiguous:
        parts = [source.read(region.first, region.size)]
    else:
        parts = [source.read(region.first + row * region.width, region.columns) for row in range(region.rows)]
    first = parts[0]
    if isinstance(first, Source):
        codes = [each.codes for each in parts if isinstance(each, Source)]
        return first.replace(codes=(codes[0] if len(codes) == 1 else np.concatenate(codes)).reshape(shape))
    return (first if len(parts) == 1 else np.concatenate(parts)).reshape(shape)  # type: ignore[arg-type]


def peak_of(x: Piece, recipe: Recipe) -> float | None:
    """Return the first number with the largest magnitude.

    Return 0 if there are no numbers, and NaN if there is a NaN. Return None if no scale of the recipe depends on a
    whole row or tensor.

    For floatlab's own rules for tensor scales (`nvfp4`), blocks with NaNs or infinities are left out, since they have
    no influence on the scale of the tensor.

    >>> peak_of(np.float32([[1, -3, 3, 2]]), parse_recipe("e4m3/tensor"))
    -3.0
    """
    if not spans(recipe):
        return None
    numbers, fmt = numbers_of(x), recipe.format
    if not numbers.size:
        return 0.0
    high, low = float(numbers.max()), float(numbers.min())  # both are NaN if there is a NaN
    if not (isfinite(high) and isfinite(low)) and recipe.rule.is_exact and fmt.tensor is not None:
        numbers = np.where(_in_bad_blocks(numbers, fmt.rows or 1, fmt.block or 1), 0, numbers)
        high, low = float(numbers.max()), float(numbers.min())
    if high == -low:  # the first one of the numbers with this magnitude is returned
        return float(numbers.reshape(-1)[int(np.abs(numbers).argmax())])
    return low if -low > high else high


def _in_bad_blocks(numbers: Array, rows: int, columns: int) -> Array:
    """Return a mask of the numbers in blocks that contain a NaN or an infinity."""
    down, across = (np.arange(length) // size for length, size in zip(numbers.shape, (rows, columns), strict=True))
    bad = np.zeros((down[-1] + 1, across[-1] + 1), bool)
    at = np.argwhere(~np.isfinite(numbers))
    bad[down[at[:, 0]], across[at[:, 1]]] = True
    found: Array = bad[down[:, None], across]
    return found


def joint_peak(peaks: list[float | None]) -> float | None:
    """Return the peak of several regions together; `peaks` has the peak of each region, in the order of the tensor.

    Of numbers with the same largest magnitude, the first one counts. A peak of None is ignored.

    >>> joint_peak([1.0, -2.0, 2.0]), joint_peak([None]), joint_peak([nan, 1.0])
    (-2.0, None, nan)
    """
    found = [each for each in peaks if each is not None]
    if any(map(isnan, found)):
        return nan
    return max(found, key=abs, default=None)


# Each process keeps open the checkpoints that it read last, with their headers.
_KEPT: dict[object, tuple[str, QuantizedCheckpoint]] = {}
_MOST_KEPT = 4
_lock = threading.Lock()


def checkpoint_at(place: Place, version: str = "") -> QuantizedCheckpoint:
    """Return an open checkpoint, which may still be open from an earlier job.

    Raises FileFormatError if `version` is given and the files have other names or sizes than this version states.
    """
    key = id(place) if isinstance(place, Mapping) else place
    with _lock:
        opened, found = _KEPT.get(key, ("", None))
        if found is not None and version in ("", opened or version):
            return found
        while len(_KEPT) >= _MOST_KEPT or key in _KEPT:
            _KEPT.pop(key if key in _KEPT else next(iter(_KEPT)))[1].close()
        found = load_quantized(place)  # type: ignore[arg-type]
        if version and version_of(found).partition(".")[0] != version.partition(".")[0]:
            found.close()
            raise FileFormatError(f"{shown(str(place))} is another file here than where the audit was started")
        _KEPT[key] = version, found
        return found


def version_of(read: QuantizedCheckpoint) -> str:
    """Return two hashes of a checkpoint's files with a full stop between them.

    For a mapping, return an empty text.

    The first hash is made from names and sizes. The second hash is made from the times of the last changes. When a job
    opens the files, only the first hash is compared, because the times change if files are copied to another computer.
    A checkpoint that is still open from an earlier job is used again only if both hashes agree.
    """
    states = states_of(read.checkpoint)
    parts = [[(each.name, each.size) for each in states], [each.changed for each in states]]
    return ".".join(hashlib.blake2s(repr(part).encode(), digest_size=8).hexdigest() for part in parts) if states else ""


def forget() -> None:
    """Close the checkpoints that jobs have opened; files may have changed when the next audit begins."""
    with _lock:
        while _KEPT:
            _KEPT.popitem()[1][1].close()


def _begin_after_fork() -> None:
    """Close the open checkpoints in a forked process: it shares the positions in open files with its parent."""
    global _lock
    _lock = threading.Lock()
    forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_begin_after_fork)


def _opened(place: Place, tensor: str, version: str = "") -> ArraySource:
    source = checkpoint_at(place, version).open(tensor)
    if source.dtype is not None and source.dtype.kind != "f":
        source.close()
        raise UnsupportedError(f"{source.name} must be an array of floats, not of {source.dtype.name}")
    return source
