"""Compares two checkpoints tensor by tensor: tensors are matched by name and compared as arrays."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from math import inf, prod

from floatlab.arrays.compare.measure import compare
from floatlab.arrays.compare.tolerances import NUMPY
from floatlab.arrays.sources import ArraySource
from floatlab.auditing.quantized import QuantizedCheckpoint
from floatlab.auditing.roundings import CopySearch, NarrowedCopy
from floatlab.errors import FloatlabError, UnsupportedError
from floatlab.files.checkpoints import Checkpoint, matching, open_checkpoint
from floatlab.files.safe_open import shown
from floatlab.formats import Format
from floatlab.fpmode import in_default_mode
from floatlab.presenter import Answering
from floatlab.record import Record

Place = str | os.PathLike[str] | Mapping[str, object]
Progress = Callable[[int], None]

# Possible results of a tensor, the worst first.
UNREADABLE, MISSING, EXTRA, SHAPES = "unreadable", "only in expected", "only in actual", "other shape"
BEYOND, CLOSE, EQUAL, SAME = "beyond tolerance", "close", "equal", "same bits"
_ORDER = (UNREADABLE, MISSING, EXTRA, SHAPES, BEYOND, CLOSE, EQUAL, SAME)
_FAILING = _ORDER[:5]


class TensorSide(Record):
    """A tensor of one checkpoint: its shape, its type, and its convention of quantisation (empty if there is none)."""

    shape: tuple[int, ...]
    kind: str
    convention: str = ""


class TensorDifference(Record):
    """The difference between the tensors that have the same name in two checkpoints.

    `result` is one of: unreadable (`reason` says why), only in expected, only in actual, other shape, beyond tolerance,
    close (within tolerance), equal (the same numbers), same bits. Of the `size` elements, `failing` are beyond
    tolerance. For each element, the error is divided by the tolerance; `share` is the largest of these quotients.
    `absolute` and `relative` are the largest errors. `ulps` is the largest distance in ulps of `ulp_format`. `rounded`
    is the rounding that turns one tensor into the other.
    """

    tensor: str
    result: str
    actual: TensorSide | None
    expected: TensorSide | None
    size: int = 0
    failing: int = 0
    share: float | None = None
    absolute: float | None = None
    relative: float | None = None
    ulps: int | None = None
    ulp_format: Format | None = None
    rounded: NarrowedCopy | None = None
    reason: str = ""

    @property
    def within(self) -> bool:
        """Whether the tensor is in both checkpoints and within tolerance."""
        return self.result not in _FAILING


class CheckpointDifferences(Record, Answering):
    """The differences of two checkpoints: a `TensorDifference` for each tensor, the worst first."""

    _ASKS = ".within"

    actual: str
    expected: str
    rtol: float
    atol: float
    tensors: tuple[TensorDifference, ...]

    @property
    def within(self) -> bool:
        """Whether both checkpoints have the same tensors, and all tensors are within tolerance."""
        return all(each.within for each in self.tensors)

    @property
    def rounded(self) -> NarrowedCopy | None:
        """The rounding that explains all differences; None if no single rounding does, or if nothing differs."""
        apart = [each.rounded for each in self.tensors if each.result not in (EQUAL, SAME)]
        return apart[0] if apart and apart[0] is not None and all(each == apart[0] for each in apart) else None

    def __repr__(self) -> str:
        """Return one line with the numbers of tensors."""
        failing = sum(not each.within for each in self.tensors)
        return f"CheckpointDifferences(tensors: {len(self.tensors)}, failing: {failing}, within: {self.within})"


class _Side:
    """A checkpoint to compare: quantised weights are read as numbers, or as codes and scales if `stored` is true."""

    def __init__(self, checkpoint: Checkpoint, stored: bool) -> None:
        self.checkpoint = checkpoint
        self.numbers = None if stored else QuantizedCheckpoint(checkpoint)
        self.names = list(checkpoint.tensors) if self.numbers is None else self.numbers.names

    def shape(self, name: str) -> tuple[int, ...]:
        weight = self.numbers.weights.get(name) if self.numbers is not None else None
        return self.checkpoint.tensors[name].shape if weight is None else weight.shape

    def side(self, name: str) -> TensorSide:
        weight = self.numbers.weights.get(name) if self.numbers is not None else None
        if weight is not None:
            return TensorSide(weight.shape, "number", weight.convention)
        stored = self.checkpoint.tensors[name]
        return TensorSide(stored.shape, stored.kind or stored.dtype)

    def reason(self, name: str) -> str:
        """Return the reason why a tensor cannot be read; an empty text if it can be read."""
        return "" if self.numbers is None else self.numbers.unreadable.get(name, "")

    def open(self, name: str) -> ArraySource:
        return self.checkpoint.open(name) if self.numbers is None else self.numbers.open(name)


@in_default_mode
def compare_checkpoints(
    actual: Place,
    expected: Place,
    rtol: float = NUMPY[0],
    atol: float = NUMPY[1],
    *,
    equal_nan: bool = False,
    only: str | None = None,
    stored: bool = False,
    format: Format | str | None = None,
    progress: Callable[[int], Progress] | None = None,
) -> CheckpointDifferences:
    """Compare two checkpoints tensor by tensor; quantised weights are compared as numbers.

    Parameters
    ----------
    actual, expected
        Checkpoints, given as for `load_quantized`: files, folders, or mappings of names to arrays.
    rtol, atol, equal_nan
        As in `numpy.allclose`.
    only
        A glob that chooses tensors by name.
    stored
        If true, codes and scales are compared as they are stored. By default, the decoded numbers are compared.
    format
        The format whose ulps are counted. By default, it is the narrower format of the two tensors that are compared.
    progress
        A function that is called once, with the total number of elements. It must return a second function, which is
        then called with the number of elements done since the previous call.

    Returns
    -------
    CheckpointDifferences
        The `tensors` of the result are sorted, the worst first; `within` tells whether all are within tolerance.

    Raises
    ------
    FileFormatError
        If a file is not valid.
    UnsupportedError
        If a tolerance is not finite, if a glob matches no tensor, or if there are no tensors.

    Examples
    --------
    >>> import numpy as np
    >>> x = {"a": np.float32([0.1, 2]), "b": np.float32([3])}
    >>> found = compare_checkpoints({"a": x["a"].astype(np.float16), "b": x["b"]}, x)
    >>> [(each.tensor, each.result) for each in found.tensors], found.rounded.words
    ([('a', 'beyond tolerance'), ('b', 'same bits')], 'actual is expected rounded to binary16')
    """
    with open_checkpoint(actual) as first, open_checkpoint(expected) as second:
        x, y = _Side(first, stored), _Side(second, stored)
        names = matching(list(dict.fromkeys((*y.names, *x.names))), only, f"{first.name} and {second.name}")
        if not names:
            raise UnsupportedError(f"{shown(first.name)} and {shown(second.name)} have no tensors")
        in_x, in_y = set(x.names), set(y.names)
        done = None
        if progress is not None:
            done = progress(sum(prod(x.shape(name)) for name in names if name in in_x and name in in_y))
        found = [_row(name, x, y, name in in_x, name in in_y, (rtol, atol, equal_nan, format), done) for name in names]
    found.sort(key=lambda each: (_ORDER.index(each.result), -_badness(each)))
    return CheckpointDifferences(first.name, second.name, rtol, atol, tuple(found))


def _badness(found: TensorDifference) -> float:
    """Return the error by which tensors with the same `result` are sorted. A NaN is replaced by infinity."""
    return inf if found.share != found.share else found.share or found.relative or 0.0


def _row(
    name: str, x: _Side, y: _Side, in_x: bool, in_y: bool,
    measured: tuple[float, float, bool, Format | str | None], done: Progress | None,
) -> TensorDifference:  # fmt: skip
    rtol, atol, equal_nan, format = measured
    sides = x.side(name) if in_x else None, y.side(name) if in_y else None
    reasons = [side.reason(name) for side, is_in in ((x, in_x), (y, in_y)) if is_in]
    if reason := next(filter(None, reasons), ""):
        return TensorDifference(name, UNREADABLE, *sides, reason=reason)
    if sides[0] is None or sides[1] is None:
        return TensorDifference(name, EXTRA if in_x else MISSING, *sides)
    if sides[0].shape != sides[1].shape:
        return TensorDifference(name, SHAPES, *sides)
    try:
        with x.open(name) as a, y.open(name) as b:
            search = CopySearch(a, b)
            found = compare(
                search.actual, search.expected, rtol, atol, equal_nan=equal_nan, format=format, worst=0, progress=done,
            )  # fmt: skip
            same = found.equal_bits == found.size or (found.size == 0 and a.kind == b.kind)
            rounded = None if same or found.equal == found.size else search.found()
    except FloatlabError as trouble:
        return TensorDifference(name, UNREADABLE, *sides, reason=str(trouble))
    failing = found.allclose.failing
    result = SAME if same else BEYOND if failing else EQUAL if found.equal == found.size else CLOSE
    largest = found.ulps.largest if found.ulps is not None else None
    return TensorDifference(
        tensor=name,
        result=result,
        actual=sides[0],
        expected=sides[1],
        size=found.size,
        failing=failing,
        share=None if found.allclose.share is None else found.allclose.share.value,
        absolute=None if found.absolute.largest is None else found.absolute.largest.value,
        relative=None if found.relative.largest is None else found.relative.largest.value,
        ulps=None if largest is None else int(largest.value),
        ulp_format=None if found.ulps is None else found.ulps.format,
        rounded=rounded,
    )
