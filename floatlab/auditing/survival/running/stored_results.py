"""Results of jobs as JSON, written and read back. Strangers may have written the JSON, so each value is checked."""

from __future__ import annotations

from typing import TypeVar

import numpy as np

from floatlab.arrays.lanes.tally_lanes import Histogram, Tally
from floatlab.auditing.survival.jobs import AuditJob, Measured, Result
from floatlab.auditing.survival.outputs import OutputErrors
from floatlab.auditing.survival.scale_tally import ScaleTally
from floatlab.record import Record

Wire = object  # what `json` writes and reads
Kind = TypeVar("Kind")

_BINS = {"exponents": 1 << 11, "relative_errors": 1 << 15}  # the numbers of bins of a tally's histograms
_MOST = 1 << 62  # counts and indices are below this
_FARTHEST = 1100  # all exponents of binary64 have a smaller magnitude than this
_COUNTS = [name for name, kind in Tally.__annotations__.items() if kind == "int" and name != "largest_relative_at"]
_SIGNED = ("products",)  # sums that can be negative


def as_wire(result: Result) -> Wire:
    """Return the result of a job in a form that JSON can hold.

    >>> as_wire(Result(peaks=(1.5, None)))
    {'peaks': [1.5, None]}
    """
    if result.peaks:
        return {"peaks": list(result.peaks)}
    return {"measured": [[_written(part) for part in each._values()] for each in result.measured]}


def _written(value: object) -> Wire:
    if isinstance(value, Histogram):
        return [value.bins.tolist(), value.counts.tolist()]
    if isinstance(value, Record):
        return [_written(each) for each in value._values()]
    return [list(each) for each in value] if isinstance(value, tuple) else value


def as_result(wire: Wire, job: AuditJob) -> Result:
    """Return the result of a job from JSON; raises ValueError or TypeError if the JSON is wrong."""
    if not isinstance(wire, dict) or list(wire) != ["peaks" if job.only_peaks else "measured"]:
        raise ValueError
    [found] = wire.values()
    parts = _list(found, len(job.recipes))
    if job.only_peaks:
        return Result(peaks=tuple(None if each is None else _float(each, True) for each in parts))
    return Result(tuple(_measured(each, job) for each in parts))


def _measured(wire: Wire, job: AuditJob) -> Measured:
    tally, scales, output = _list(wire, 3)
    found = _record(Tally, tally)
    counts = [getattr(found, name) for name in _COUNTS]
    if (
        found.elements != job.region.size
        or max(counts) > found.elements
        or found.nonfinite + found.lost > found.elements
        or max(found.exponents.total, found.relative_errors.total) > found.elements
    ):
        raise ValueError
    return Measured(
        found,
        None if scales is None else _record(ScaleTally, scales),
        None if output is None else _record(OutputErrors, output),
    )


def _record(kind: type[Kind], wire: Wire) -> Kind:
    """Return a record of the class `kind` from a list of the values of its fields.

    Each value is checked against the annotation of its field.
    """
    fields = kind.__annotations__
    values = zip(fields, fields.values(), _list(wire, len(fields)), strict=True)
    return kind(**{name: _value(annotation, value, name) for name, annotation, value in values})


def _value(annotation: str, wire: Wire, name: str) -> object:
    if annotation == "int":
        return _int(wire, -1 if name.endswith("_at") else 0, _MOST)
    if annotation == "float | None" and wire is None:
        return None
    if annotation in ("float", "float | None"):
        return _float(wire, name in _SIGNED)
    if annotation == "Histogram":
        return _histogram(wire, _BINS[name])
    if annotation != "tuple[tuple[int, int], ...]":
        raise NotImplementedError(annotation)
    pairs = [_list(each, 2) for each in _list(wire)]
    return tuple((_int(first, -_FARTHEST, _FARTHEST), _int(count, 0, _MOST)) for first, count in pairs)


def _list(wire: Wire, length: int | None = None) -> list[Wire]:
    if not isinstance(wire, list) or length not in (None, len(wire)):
        raise ValueError
    return wire


def _int(wire: Wire, least: int, end: int) -> int:
    if type(wire) is not int or not least <= wire < end:
        raise ValueError
    return wire


def _float(wire: Wire, signed: bool) -> float:
    if type(wire) is not float or (wire < 0 and not signed):
        raise ValueError
    return wire


def _histogram(wire: Wire, length: int) -> Histogram:
    bins, counts = _list(wire, 2)
    places = [_int(each, 0, length) for each in _list(bins)]
    if places != sorted(set(places)):
        raise ValueError
    found = [_int(each, 1, _MOST >> 16) for each in _list(counts, len(places))]
    return Histogram(np.array(places, np.uint16), np.array(found, np.int64))
