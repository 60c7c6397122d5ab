"""Jobs, and functions that stand in for `work`. A process imports this file, so it imports little."""

import os
import signal
import time

from floatlab.arrays.lanes import dispatch
from floatlab.auditing.survival.jobs import AuditJob, Result
from floatlab.auditing.survival.regions import TensorRegion


def jobs(count, size=1 << 19):
    return [AuditJob("", f"t{i}", i, 0, 0, TensorRegion(0, 1, 0, size, size), ("bf16",)) for i in range(count)]


def named(job):
    """Stand in for `work`: the result names the job."""
    return Result(peaks=(float(job.subject),))


def slower_first(job):
    time.sleep(0.002 * (40 - job.subject))
    return named(job)


def deadly(job):
    if job.subject == 5:
        os.kill(os.getpid(), signal.SIGKILL)
    return named(job)


def deadly_once(job):
    """End the process at one job, the first time that it is reached; `job.tensor` is the file that records this."""
    if job.subject == 5:
        try:
            os.close(os.open(job.layer, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return named(job)
        os.kill(os.getpid(), signal.SIGKILL)
    return named(job)


def failing(job):
    raise KeyError(job.tensor)


def threads(job):
    return Result(peaks=(float(dispatch.threads_for(1 << 30, None)),))


def parent(job):
    return Result(peaks=(float(os.getppid()),))
