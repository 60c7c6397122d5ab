"""Keeps the results of finished jobs in a file, so that an interrupted audit continues where it stopped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from floatlab.auditing.survival.jobs import AuditJob, Place, Result, checkpoint_at
from floatlab.auditing.survival.running.stored_results import as_result, as_wire
from floatlab.errors import FileFormatError, UnsupportedError
from floatlab.files.checkpoints import states_of
from floatlab.files.journal import Journal
from floatlab.files.safe_open import shown

_REVISION = 1  # increase this number when the results of jobs change: files of other revisions are refused
_Key = tuple[bool, int, int, int]


class Resumption:
    """A file with the results of finished jobs; close it after use."""

    def __init__(self, path: str, belongs: Mapping[str, object]) -> None:
        """Open or create the file. `belongs` identifies the audit.

        Raises FileFormatError if the file belongs to another audit, was not written by `--resume`, is damaged, or
        cannot be opened. Raises RefusedError in a confined process.
        """
        self.path = path
        self._journal = Journal(path, "audit", {"revision": _REVISION, **belongs})
        try:
            self._lines = {self._key(i): i for i in range(len(self._journal))}
            self.taken: set[int] = set()  # the tensors with results from the file
        except BaseException:
            self.close()
            raise

    def _key(self, index: int) -> _Key:
        """Return `only_peaks`, `subject`, `group` and `order` of the job whose result has this index in the file."""
        found = self._journal[index].get("job")
        if (
            not isinstance(found, list)
            or [*map(type, found)] != [bool, int, int, int]
            or not all(0 <= n < 1 << 48 for n in found)
        ):
            raise self._damage(index)
        return found[0], found[1], found[2], found[3]

    def _damage(self, index: int) -> FileFormatError:
        return FileFormatError(f"{shown(self._journal.path)} is damaged: line {index + 2:,} has no result")

    def __contains__(self, job: AuditJob) -> bool:
        """Return whether the file had the result of a job when it was opened."""
        return _key_of(job) in self._lines

    def result_of(self, job: AuditJob) -> Result:
        """Return the result of a job from the file. Raises FileFormatError if the stored result cannot be right."""
        index = self._lines[_key_of(job)]
        self.taken.add(job.subject)
        try:
            return as_result(self._journal[index].get("result"), job)
        except (ValueError, TypeError):
            raise self._damage(index) from None

    def add(self, job: AuditJob, result: Result) -> None:
        """Write the result of a job. If the job failed, write nothing, since it may succeed the next time."""
        if not result.trouble:
            self._journal.append({"job": _key_of(job), "result": as_wire(result)})

    def __enter__(self) -> Self:
        """Return the object; the file is closed at the end of the `with`."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the file."""
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._journal.close()


def _key_of(job: AuditJob) -> _Key:
    return job.only_peaks, job.subject, job.group, job.order


def files_of(place: Place) -> list[list[object]]:
    """Return the name, the size and the time of change (at a URL, the version) of each file of a checkpoint.

    Raises UnsupportedError for a mapping or a random array, which has no files.
    """
    states = states_of(checkpoint_at(place).checkpoint)
    if not states:
        raise UnsupportedError("arrays in memory have no files by which an audit of them could be resumed")
    return [[each.name, each.size, each.changed] for each in states]
