"""Runs the jobs of an audit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor

from floatlab.auditing.survival.jobs import Job, Result

Work = Callable[[Job], Result]


def run(
    jobs: Iterable[Job],
    work: Work,
    executor: Executor | None = None,
    progress: Callable[[int], None] | None = None,
    resume: object = None,
) -> Iterator[tuple[Job, Result]]:
    """Yield each job with its result."""
    for job in jobs:
        result = work(job)
        if progress is not None:
            progress(job.region.size)
        yield job, result
