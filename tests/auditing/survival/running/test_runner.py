"""Jobs in this process and in executors: the results are the same, and a process that dies loses nothing."""

import os
import signal
import sys
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

import floatlab as fl
from floatlab.auditing.survival.jobs import checkpoint_at, forget, version_of
from floatlab.auditing.survival.running import runner
from floatlab.auditing.survival.running.runner import ReplacedWorkerWarning, run
from floatlab.auditing.survival.running.workers import Processes, interruptible, workers
from floatlab.cli.main import main
from floatlab.errors import FileFormatError, RefusedError, UnsupportedError
from tests.auditing.survival.running.conftest import RECIPES
from tests.auditing.survival.running.stand_ins import (
    deadly,
    deadly_once,
    failing,
    jobs,
    named,
    parent,
    slower_first,
    threads,
)


@pytest.fixture(autouse=True)
def eager(monkeypatch):
    """Send small work to processes, too."""
    monkeypatch.setattr(runner, "_WORTH_PROCESSES", 1)


@pytest.fixture(scope="module", params=["none", "threads", "processes", "a pool of processes"])
def executor(request):
    if request.param == "none":
        yield None
        return
    kinds = {
        "threads": lambda: ThreadPoolExecutor(3),
        "processes": lambda: Processes(2),
        "a pool of processes": lambda: ProcessPoolExecutor(2, get_context("spawn")),
    }
    with kinds[request.param]() as found:
        yield found


def test_results_come_in_the_order_of_the_jobs(executor):
    asked, told = jobs(40), []
    found = list(run(asked, slower_first, executor, told.append))
    assert [job for job, _ in found] == asked
    assert [result.peaks for _, result in found] == [(float(i),) for i in range(40)]
    assert sorted(job.subject for job in told) == list(range(40))


def test_jobs_are_made_as_they_are_needed():
    """A file may claim more elements than jobs fit into memory."""

    def endless():
        while True:
            made.append(1)
            yield from jobs(1)

    with ThreadPoolExecutor(2) as threaded:
        for executor in (None, threaded):
            made = []
            found = run(endless(), named, executor)
            for _ in range(10):
                next(found)
            assert len(made) < 1000
            found.close()


def test_no_process_is_started_for_little_work(monkeypatch):
    monkeypatch.setattr(runner, "_WORTH_PROCESSES", 1 << 23)
    with Processes(2) as executor:
        assert len(list(run(jobs(15), named, executor))) == 15
        assert executor._pool is None
        assert len(list(run(jobs(20), named, executor))) == 20
        assert executor._pool is not None


def test_errors_of_jobs_are_raised(executor):
    with pytest.raises(KeyError, match=r"t[012]"):
        list(run(jobs(3), failing, executor))


def test_each_process_uses_one_thread():
    with Processes(2) as executor:
        assert {result.peaks for _, result in run(jobs(4), threads, executor)} == {(1.0,)}
    assert {result.peaks for _, result in run(jobs(1), threads)} == {(float(min(os.cpu_count(), 8)),)}


def test_a_process_that_dies_loses_nothing(tmp_path):
    asked = [job.replace(layer=str(tmp_path / "died")) for job in jobs(40)]
    with Processes(2) as executor, pytest.warns(ReplacedWorkerWarning, match="others do its work again") as told:
        found = list(run(asked, deadly_once, executor))
    assert (tmp_path / "died").exists()
    assert [result.peaks for _, result in found] == [(float(i),) for i in range(40)]
    assert len(told) == 1


def test_another_pool_that_breaks_loses_nothing(tmp_path):
    asked = [job.replace(layer=str(tmp_path / "died")) for job in jobs(40)]
    with (
        ProcessPoolExecutor(2, get_context("spawn")) as executor,
        pytest.warns(ReplacedWorkerWarning, match="this process does its work again"),
    ):
        found = list(run(asked, deadly_once, executor))
    assert [result.peaks for _, result in found] == [(float(i),) for i in range(40)]


def test_a_job_that_ends_every_process_is_named():
    with (
        Processes(2) as executor,
        pytest.warns(ReplacedWorkerWarning),
        pytest.raises(UnsupportedError, match=r"killed 4 times, about at 't[0-5]'.*fewer --jobs"),
    ):
        list(run(jobs(20), deadly, executor))


class Refusing(Executor):
    """An executor that was broken before."""

    def submit(self, call, /, *words, **options):
        raise BrokenExecutor


class Losing(Executor):
    """An executor that cancels every second call."""

    count = 0

    def submit(self, call, /, *words, **options):
        future = Future()
        self.count += 1
        if self.count % 2:
            future.set_result(call(*words, **options))
        else:
            future.cancel()
            future.set_running_or_notify_cancel()
        return future


@pytest.mark.parametrize("kind", [Refusing, Losing])
def test_executors_that_lose_calls(kind):
    with pytest.warns(ReplacedWorkerWarning):
        found = list(run(jobs(40), named, kind()))
    assert [result.peaks for _, result in found] == [(float(i),) for i in range(40)]


def test_a_confined_process_starts_no_process(monkeypatch):
    monkeypatch.setattr("floatlab.sandbox._bounds", [os.getcwd()])
    for processes, scheduler in ((2, None), (1, "127.0.0.1:1")):
        with pytest.raises(RefusedError), workers(processes, scheduler):
            pass


# The audit itself.


@pytest.fixture(scope="module")
def expected(checkpoint):
    return fl.audit(checkpoint, to=RECIPES)


def test_an_audit_does_not_depend_on_the_executor(checkpoint, expected, executor):
    assert fl.audit(checkpoint, to=RECIPES, executor=executor) == expected


def test_an_audit_of_arrays_in_memory(executor):
    rng = np.random.default_rng(6)
    arrays = {name: rng.normal(size=(300, 700)).astype(np.float32) for name in ("a", "b.weight")}
    inputs = {"b": rng.normal(size=(3, 700)).astype(np.float32)}
    expected = fl.audit(arrays, to=RECIPES, activations=inputs)
    assert fl.audit(arrays, to=RECIPES, activations=inputs, executor=executor) == expected


def test_a_tensor_that_cannot_be_read_is_reported_by_every_executor(executor):
    arrays = {"good": np.ones((4, 64), np.float32), "complex": np.ones((4, 64), np.int32)}
    assert fl.audit(arrays, to="mxfp4", executor=executor) == fl.audit(arrays, to="mxfp4")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
@pytest.mark.skipif(sys.version_info >= (3, 12), reason="Python warns of fork in a process with threads")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")  # JAX warns if another test has imported it
def test_forked_processes_open_the_checkpoint_again(tmp_path):
    """Positions in open files are shared by a process and its forks."""
    rng = np.random.default_rng(7)
    np.savez(tmp_path / "x.npz", **{f"w{i}": rng.normal(size=(500, 1000)).astype(np.float32) for i in range(6)})
    expected = fl.audit(tmp_path / "x.npz", to="mxfp4")
    with ProcessPoolExecutor(2, get_context("fork")) as executor:
        assert fl.audit(tmp_path / "x.npz", to="mxfp4", executor=executor) == expected


def test_a_pool_that_outlives_an_audit_sees_that_the_file_has_changed(tmp_path):
    path = str(tmp_path / "x.npy")
    with ProcessPoolExecutor(1, get_context("spawn")) as executor:
        for value in (1.0, 3.3):
            np.save(path, np.full((4, 64), value, np.float32))
            found = fl.audit(path, to="bf16", executor=executor)
            assert found == fl.audit(path, to="bf16")


def test_a_process_that_sees_another_file_says_so(tmp_path):
    """This happens on another computer, where the same path may lead to another file."""
    path = str(tmp_path / "x.npy")
    np.save(path, np.ones(10, np.float32))
    version = version_of(checkpoint_at(path))
    forget()
    assert checkpoint_at(path, version).names == ["x"]
    forget()
    np.save(path, np.ones(11, np.float32))
    with pytest.raises(FileFormatError, match=r"x.npy' is another file here than where the audit was started"):
        checkpoint_at(path, version)


class Dying(Processes):
    """Processes of which one is killed as soon as it has work, so that this work is not done."""

    killed = 0

    def submit(self, call, /, *words, **options):
        found = super().submit(call, *words, **options)
        if not self.killed:
            self.killed = next(iter(self._pool._processes))
            os.kill(self.killed, signal.SIGKILL)
        return found


def test_a_killed_process_of_an_audit_loses_nothing(checkpoint, expected):
    with Dying(2) as executor:
        with pytest.warns(ReplacedWorkerWarning):
            found = fl.audit(checkpoint, to=RECIPES, executor=executor)
        assert executor.killed
    assert found == expected


def test_progress_counts_the_bytes(checkpoint, executor):
    totals, counts = [], []

    def progress(*total):
        totals.append(total)
        return counts.append

    fl.audit(checkpoint, to="mxfp4", executor=executor, progress=progress)
    [(total, tensors)] = totals
    assert tensors == 15
    assert total - 1 <= sum(counts) <= total
    assert total == pytest.approx(os.path.getsize(checkpoint), rel=0.01)


def test_processes_end_with_the_process_that_started_them():
    with Processes(1) as executor:
        [(_, result)] = run(jobs(1), parent, executor)
        [pid] = executor._pool._processes
    assert result.peaks == (float(os.getpid()),)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


class InterruptedAtItsEnd:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)


def test_ctrl_c_while_an_object_is_deleted_is_not_lost():
    before = signal.getsignal(signal.SIGINT)
    with ThreadPoolExecutor(1) as pool, interruptible(pool) as executor:
        assert executor.submit(int, "7").result() == 7
        InterruptedAtItsEnd()  # without `interruptible`, Python prints the error and goes on
        with pytest.raises(KeyboardInterrupt):
            executor.submit(int, "7")
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) == before


def test_a_missing_package_is_named(checkpoint, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    assert main(["audit", checkpoint, "--to", "bf16", "--scheduler", "127.0.0.1:8786"]) == 3
    assert "pip install 'floatlab[cluster]'" in capsys.readouterr().err


@pytest.mark.parametrize("address", ["nonsense", "http://h:1", "", "h:x", "/tmp/socket", "h:8786\n", "inproc://1:2"])
def test_addresses_that_are_none(checkpoint, capsys, address):
    assert main(["audit", checkpoint, "--to", "bf16", "--scheduler", address]) == 2
    said = capsys.readouterr().err
    assert "is no address of a Dask scheduler" in said
    assert said.count("\n") == 1
