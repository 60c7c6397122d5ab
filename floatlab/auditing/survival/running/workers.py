"""Where the jobs of an audit are done: in processes of this computer, or on a Dask cluster."""

from __future__ import annotations

import logging
import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from types import FrameType
from typing import TypeVar

from floatlab.errors import MissingPartError, RefusedError, UnsupportedError, quoted
from floatlab.sandbox import confined

Found = TypeVar("Found")

_ADDRESS = re.compile(r"((tcp|tls|wss?)://)?[^\s/]+:[0-9]{1,5}/?")
_PATIENCE = "10s"  # how long a connection to a scheduler may take


class Processes(Executor):
    """A pool of processes. It starts with the first call, and can be renewed if one of the processes dies.

    The processes of the pool ignore Ctrl-C. Ctrl-C ends this process, and the pool ends with this process. The pool
    also ends if this process is killed.
    """

    def __init__(self, count: int) -> None:
        """Store the number of processes. The first call starts them.

        Raises RefusedError in a confined process.
        """
        if confined():
            raise RefusedError("visitors of a served explorer cannot start processes")
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def submit(self, call: Callable[..., Found], /, *words: object, **options: object) -> Future[Found]:
        """Call a function in one of the processes."""
        if self._pool is None:
            # A forked process would inherit locks that are held, but not the threads that release them.
            context = multiprocessing.get_context("spawn")
            self._pool = ProcessPoolExecutor(self.count, context, _begin)
        with _interrupts_held():  # inherited by a new process, so that Ctrl-C does not end it while it starts
            return self._pool.submit(call, *words, **options)

    def renew(self) -> None:
        """End the processes; the next call starts others."""
        pool, self._pool = self._pool, None
        if pool is not None:
            processes = list((getattr(pool, "_processes", None) or {}).values())
            # Calls are not cancelled: the thread of the pool fails on cancelled calls when the processes end.
            pool.shutdown(wait=False)
            for process in processes:
                with suppress(OSError, ValueError):
                    process.terminate()

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the processes when all calls are done, or at once with `cancel_futures`."""
        if cancel_futures:
            self.renew()
        elif self._pool is not None:
            self._pool.shutdown(wait)

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the processes when all calls are done; after an error or Ctrl-C, end them at once."""
        self.shutdown(cancel_futures=kind is not None)


def _begin() -> None:
    """Prepare a new process: it ignores Ctrl-C, and ends when the process that started it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()

    def follow() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=follow, daemon=True).start()


@contextmanager
def _interrupts_held() -> Iterator[None]:
    """Hold Ctrl-C back until the end of the `with` block. On systems without `pthread_sigmask`, do nothing."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class _Interruptible(Executor):
    def __init__(self, executor: Executor) -> None:
        self.executor, self.is_interrupted = executor, False

    def submit(self, call: Callable[..., Found], /, *words: object, **options: object) -> Future[Found]:
        if self.is_interrupted:
            raise KeyboardInterrupt
        return self.executor.submit(call, *words, **options)


@contextmanager
def interruptible(executor: Executor) -> Iterator[Executor]:
    """Give an executor that remembers Ctrl-C: after a Ctrl-C, its method `submit` raises KeyboardInterrupt.

    Otherwise, a Ctrl-C could be lost: Python ignores errors in `__del__`, also KeyboardInterrupt, and the objects of
    `distributed` spend much time in `__del__`. Outside of the main thread, Ctrl-C is not remembered.
    """
    found = _Interruptible(executor)
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield found
        return

    def note(number: int, frame: FrameType | None) -> None:
        found.is_interrupted = True
        around = frame
        while around is not None:
            if around.f_code.co_name == "__del__":
                return
            around = around.f_back
        before(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield found
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def workers(jobs: int = 1, scheduler: str | None = None) -> Iterator[Executor | None]:
    """Give an executor for `jobs` processes, or for the Dask cluster at address `scheduler`.

    With at most one process and no cluster, give None: all work is then done in this process. Three errors are
    possible: MissingPartError if `distributed` is needed but not installed; UnsupportedError if the address is not
    valid or no scheduler answers; RefusedError for processes or a cluster in a confined process.
    """
    if scheduler is not None:
        with _cluster(scheduler) as executor:
            yield executor
    elif jobs > 1:
        with Processes(jobs) as processes:
            yield processes
    else:
        yield None


@contextmanager
def _cluster(address: str) -> Iterator[Executor]:
    if confined():
        raise RefusedError("visitors of a served explorer cannot connect to a cluster")
    if not _ADDRESS.fullmatch(address):
        raise UnsupportedError(f"{quoted(address, 80)} is no address of a Dask scheduler, such as tcp://10.0.0.5:8786")
    try:
        from distributed import Client
    except ImportError:
        raise MissingPartError("--scheduler needs distributed: pip install 'floatlab[cluster]'") from None
    for name in [each for each in logging.root.manager.loggerDict if each.partition(".")[0] == "distributed"]:
        logging.getLogger(name).setLevel(logging.CRITICAL)  # no reports of dead workers: their tasks are repeated

    class Quiet(Client):  # type: ignore[misc]
        def __del__(self) -> None:
            """Do nothing. If the client has not connected, the inherited method waits and writes a traceback."""

    try:
        client = Quiet(address, timeout=_PATIENCE, set_as_default=False)
    except Exception as trouble:
        words = quoted(" ".join(str(trouble).split()) or type(trouble).__name__, 100)
        raise UnsupportedError(f"no Dask scheduler answers at {quoted(address, 80)}: {words}") from None
    # The tasks of a worker that dies are repeated up to three times.
    with client, interruptible(client.get_executor(pure=False, retries=3)) as executor:
        yield executor


def shares_memory(executor: Executor) -> bool:
    """Return whether an executor calls functions in this process."""
    return isinstance(executor, ThreadPoolExecutor)


def is_loss(trouble: Exception) -> bool:
    """Return whether an error means that a process died before the call was done.

    Otherwise, the called function raised the error.
    """
    lost = ("KilledWorker", "FutureCancelledError", "CancelledError")  # the names of distributed's errors
    return isinstance(trouble, BrokenExecutor | CancelledError) or type(trouble).__name__ in lost
