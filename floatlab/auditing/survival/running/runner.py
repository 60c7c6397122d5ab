"""Does the jobs of an audit, here or in an executor, and yields their results in the order of the jobs.

Jobs are sent in batches. Only a limited number of batches is sent in advance, so that neither all jobs nor all results
are held in memory. A result depends on its job alone, so the order in which jobs are done changes nothing.
"""

from __future__ import annotations

import os
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Executor, Future, wait
from itertools import chain, islice

from floatlab.arrays.lanes.dispatch import one_thread
from floatlab.auditing.survival.jobs import AuditJob, Result, packed
from floatlab.auditing.survival.running.resumption import Resumption
from floatlab.auditing.survival.running.workers import Processes, is_loss, shares_memory
from floatlab.errors import UnsupportedError, quoted

Work = Callable[[AuditJob], Result]
Progress = Callable[[AuditJob], None]

_BATCH, _MOST_IN_BATCH = 1 << 20, 64  # a batch is complete with this many elements or jobs
_WORTH_PROCESSES = 1 << 23  # with fewer elements than this, starting processes takes longer than the work
_AHEAD = 4  # batches for each process that are sent before the first has returned
_MOST_DEATHS = 3  # how often processes may die before the oldest unfinished batch is done


class ReplacedWorkerWarning(UserWarning):
    """A process that did jobs of an audit has died, and its jobs are done again."""


class _Batch:
    """Consecutive jobs and their results. Jobs without a result in the file of `resume` go to an executor together."""

    def __init__(self, jobs: list[AuditJob], resume: Resumption | None) -> None:
        self.jobs, self.resume = jobs, resume
        self.results: list[Result | None] = [None] * len(jobs)
        self.missing = [i for i, job in enumerate(jobs) if resume is None or job not in resume]
        self.future: Future[list[Result]] | None = None
        self._next = 0

    def keep(self, results: Sequence[Result]) -> None:
        """Store results, and add them to the file of `resume`. They are the results of the first unfinished jobs."""
        for i, result in zip(self.missing, results, strict=False):
            self.results[i] = result
            if self.resume is not None:
                self.resume.add(self.jobs[i], result)
        del self.missing[: len(results)]

    def taken(self) -> Iterator[tuple[AuditJob, Result]]:
        """Yield the next jobs with their results, up to the first job that has no result yet."""
        while self._next < (self.missing[0] if self.missing else len(self.jobs)):
            job, result = self.jobs[self._next], self.results[self._next]
            if result is None and self.resume is not None:
                result = self.resume.result_of(job)
            assert result is not None
            self.results[self._next] = None
            self._next += 1
            yield job, result


def run(
    jobs: Iterable[AuditJob],
    work: Work,
    executor: Executor | None = None,
    progress: Progress | None = None,
    resume: Resumption | None = None,
) -> Iterator[tuple[AuditJob, Result]]:
    """Yield each job with its result, in the order of the jobs.

    Without an executor, jobs are done in this process. With `Processes`, they are also done here if the jobs without a
    result in `resume` together have fewer than 2^23 elements. If a process of an executor dies, the unfinished jobs are
    done again, and the first time, a ReplacedWorkerWarning is issued. If the executor is `Processes`, new processes do
    these jobs; otherwise, this process does them. UnsupportedError is raised if processes of `Processes` die more than
    three times before the oldest unfinished batch is done. `progress` is called with each job when it is done. Results
    that `resume` has are taken from `resume`. All others are added to `resume`, except those of failed jobs.
    """
    done = _Run(work, progress, resume)
    batches = done.batches(jobs)
    if isinstance(executor, Processes):
        first: list[_Batch] = []
        size = 0
        for batch in batches:
            first.append(batch)
            size += sum(batch.jobs[i].region.size for i in batch.missing)
            if size >= _WORTH_PROCESSES:
                break
        else:
            executor = None
        batches = chain(first, batches)
    yield from done.here(batches) if executor is None else done.sent(batches, executor)


class _Run:
    def __init__(self, work: Work, progress: Progress | None, resume: Resumption | None) -> None:
        self.work, self.progress, self.resume = work, progress, resume
        self.deaths, self.is_told = 0, False

    def batches(self, jobs: Iterable[AuditJob]) -> Iterator[_Batch]:
        batch: list[AuditJob] = []
        size = 0
        for job in jobs:
            batch.append(job)
            size += job.region.size
            if size >= _BATCH or len(batch) == _MOST_IN_BATCH:
                yield self._batch(batch)
                batch, size = [], 0
        if batch:
            yield self._batch(batch)

    def _batch(self, jobs: list[AuditJob]) -> _Batch:
        found = _Batch(jobs, self.resume)
        missing = set(found.missing)
        self._tell([job for i, job in enumerate(jobs) if i not in missing])
        return found

    def _keep(self, batch: _Batch, results: Sequence[Result]) -> None:
        jobs = [batch.jobs[i] for i in batch.missing[: len(results)]]
        batch.keep(results)
        self._tell(jobs)

    def _tell(self, jobs: Iterable[AuditJob]) -> None:
        if self.progress is not None:
            for job in jobs:
                self.progress(job)

    def here(self, batches: Iterable[_Batch]) -> Iterator[tuple[AuditJob, Result]]:
        """Do all jobs in this process, and yield them with their results."""
        for batch in batches:
            yield from batch.taken()
            while batch.missing:
                self._keep(batch, [self.work(batch.jobs[batch.missing[0]])])
                yield from batch.taken()

    def sent(self, batches: Iterator[_Batch], executor: Executor) -> Iterator[tuple[AuditJob, Result]]:
        """Send the jobs to an executor and yield their results; some batches are sent in advance."""
        ahead = _AHEAD * (executor.count if isinstance(executor, Processes) else max(os.cpu_count() or 1, 8))
        waiting: deque[_Batch] = deque()
        try:
            while True:
                waiting.extend(islice(batches, ahead - len(waiting)))
                if not waiting:
                    return
                trouble = self._advance(waiting, executor)
                while waiting and not waiting[0].missing:
                    yield from waiting.popleft().taken()
                    self.deaths = 0
                if trouble is not None and not self._renewed(waiting, executor, trouble):
                    yield from self.here(chain(waiting, batches))
                    return
        finally:
            if not isinstance(executor, Processes):  # `Processes` ends its calls itself when it shuts down
                for batch in waiting:
                    if batch.future is not None:
                        batch.future.cancel()

    def _advance(self, waiting: Iterable[_Batch], executor: Executor) -> Exception | None:
        """Send the batches that have not been sent, wait until at least one returns, and store the results.

        Returns the error if the executor has lost jobs, and None otherwise.
        """
        trouble: Exception | None = None
        try:
            for batch in waiting:
                if batch.future is None and batch.missing:
                    jobs = [batch.jobs[i] for i in batch.missing]
                    jobs = jobs if shares_memory(executor) else [packed(job) for job in jobs]
                    batch.future = executor.submit(_done, self.work, jobs)
        except BrokenExecutor as death:
            trouble = death
        sent = {batch.future: batch for batch in waiting if batch.future is not None}
        for future in wait(sent, return_when=FIRST_COMPLETED).done if sent else ():
            batch = sent[future]
            batch.future = None
            try:
                results = future.result()
            except Exception as death:
                if not is_loss(death):
                    raise
                trouble = death
                continue
            self._keep(batch, results)
        return trouble

    def _renewed(self, waiting: Iterable[_Batch], executor: Executor, trouble: Exception) -> bool:
        """Mark all batches as not sent, and return whether the executor can do them again.

        Raises UnsupportedError if processes have died too often.
        """
        for batch in waiting:
            batch.future = None
        self.deaths += 1
        if not self.is_told:
            where = "others do" if isinstance(executor, Processes) else "this process does"
            warnings.warn(
                f"a process of the audit has died; {where} its work again", ReplacedWorkerWarning, stacklevel=2
            )
            self.is_told = True
        if not isinstance(executor, Processes):
            return False
        if self.deaths > _MOST_DEATHS:
            first = next(batch.jobs[i] for batch in waiting for i in batch.missing)
            raise UnsupportedError(
                f"the processes of the audit were killed {self.deaths} times, about at {quoted(first.tensor, 80)}: "
                "is there too little memory? Try fewer --jobs"
            ) from trouble
        executor.renew()
        return True


def _done(work: Work, jobs: list[AuditJob]) -> list[Result]:
    """Do a batch of jobs in the process to which it was sent, in one thread: other batches use the other cores."""
    with one_thread():
        return [work(job) for job in jobs]
