"""`--scheduler`: a Dask cluster on this computer gives the same bytes, also if one of its workers is killed."""

import os
import signal

import pytest

import floatlab as fl
from tests.auditing.survival.running.conftest import RECIPES

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.filterwarnings("default")  # warnings of distributed, not of floatlab


@pytest.fixture(scope="module")
def cluster():
    with distributed.LocalCluster(2, threads_per_worker=1, dashboard_address=None, host="127.0.0.1") as found:
        yield found


def test_a_cluster_gives_the_same_bytes(cluster, checkpoint, answer):
    assert answer(checkpoint, "--scheduler", cluster.scheduler_address) == answer(checkpoint, "--jobs", "1")


def test_a_file_that_keeps_results_serves_here_and_there(cluster, checkpoint, answer, tmp_path):
    path = tmp_path / "kept.jsonl"
    expected = answer(checkpoint, "--scheduler", cluster.scheduler_address, "--resume", str(path))
    kept = path.read_bytes()
    path.write_bytes(b"".join(kept.splitlines(keepends=True)[:9]))
    assert answer(checkpoint, "--resume", str(path)) == expected
    assert sorted(path.read_bytes().splitlines()) == sorted(kept.splitlines())


def test_a_killed_worker_loses_nothing(cluster, checkpoint):
    expected = fl.audit(checkpoint, to=RECIPES)
    killed = []

    def progress(total, tensors):
        def done(count):
            if not killed:
                killed.append(next(iter(cluster.workers.values())).pid)
                os.kill(killed[0], signal.SIGKILL)

        return done

    with distributed.Client(cluster, set_as_default=False) as client:
        executor = client.get_executor(pure=False, retries=3)
        assert fl.audit(checkpoint, to=RECIPES, executor=executor, progress=progress) == expected
    assert killed
    with pytest.raises(ProcessLookupError):
        os.kill(killed[0], 0)
