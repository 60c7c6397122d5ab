"""Settings and fixtures of all tests, such as a terminal that is always the same."""

import gc
import os
import random
import signal
import sys
import zlib
from collections import defaultdict
from math import ceil
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline, since machines are shared. No database, since a failure prints the line that repeats it. Under CI, the
# examples are the same in every run, so that a run does not fail because of new examples.
settings.register_profile(
    "floatlab",
    deadline=None,
    database=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("floatlab")
# Workers and the programs that tests start share compiled modules, also where the environment tells Python to write
# none, as in many containers. Otherwise, each of them would compile the package and the tests again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# One worker uses one core: waiting threads of a linear algebra library would slow down the other workers.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_addoption(parser):
    """Add options: run without the extension, run a share of the slow tests, require torch."""
    parser.addoption("--without-extension", action="store_true", help="hide the compiled lane of floatlab.arrays")
    parser.addoption("--share", metavar="K/N", help="of the slow tests, run only the K-th of N shares")
    parser.addoption("--require-torch", action="store_true", help="fail where a test is skipped for want of torch")


def pytest_configure(config):
    """Make programs interruptible, and hide the extension (if requested) before it is imported."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # as in the background of a script
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("--without-extension"):
        sys.modules["floatlab._kernels"] = None
    share(config)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Search for no garbage while tests are collected, and afterwards not among the modules and tests, which stay."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config):
    """Let an idle worker take tests from a busy one, since the tests of some folders take far longer than others."""
    if getattr(config.option, "numprocesses", None) and config.option.dist == "no":
        config.option.dist = "worksteal"


def share(config) -> tuple[int, int]:
    """Return the requested share of the slow tests, as (K, N)."""
    text = config.getoption("--share") or "1/1"
    k, _, n = text.partition("/")
    if not (k.isdecimal() and n.isdecimal() and 1 <= int(k) <= int(n)):
        raise pytest.UsageError(f"--share {text}: K/N with 1 <= K <= N, such as 2/8")
    return int(k), int(n)


def number(name: str) -> int:
    """Return a number that depends only on the name of a test."""
    return zlib.crc32(name.encode())


def deal(names: list[str], n: int) -> dict[str, int]:
    """Assign each test to one of n shares; return the shares, numbered from 1 to n.

    The cases of one test take about the same time. They go to the shares in turn, so that shares take about
    the same time.
    """
    dealt = sorted(names, key=lambda name: (name.partition("[")[0], number(name)))
    return {name: i % n + 1 for i, name in enumerate(dealt)}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Mark as slow the cases that `one_in` omits from the default run; then remove the slow tests of other shares."""
    cases = defaultdict(list)
    for item in items:
        if item.get_closest_marker("one_in"):
            cases[item.nodeid.partition("[")[0]].append(item)
    for of_one_test in cases.values():
        n = of_one_test[0].get_closest_marker("one_in").args[0]
        # Sorted by these numbers, the first cases are neither every n-th format nor every n-th direction.
        of_one_test.sort(key=lambda item: number(item.nodeid))
        for item in of_one_test[ceil(len(of_one_test) / n) :]:
            item.add_marker("slow")
    k, n = share(config)
    shares = deal([item.nodeid for item in items if item.get_closest_marker("slow")], n)
    others = [item for item in items if shares.get(item.nodeid, k) != k]
    if others:
        config.hook.pytest_deselected(items=others)
        left_out = set(others)
        items[:] = [item for item in items if item not in left_out]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """If torch is required, turn a skip because of missing torch into a failure."""
    report = yield
    if report.skipped and item.config.getoption("--require-torch"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        if "torch" in reason.lower() and ("not installed" in reason or "could not import" in reason):
            report.outcome = "failed"
    return report


ORACLES = Path(__file__).resolve().parents[2] / "shared" / "oracles"


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    """Remove the user's settings from the environment of the tests."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture(scope="session")
def oracles() -> Path:
    if not ORACLES.is_dir():
        pytest.skip("the vectors made by others are not on this machine (../shared/oracles)")
    return ORACLES


@pytest.fixture
def generator(request):
    """Return a random generator; its seed is printed with a failure, and FLOATLAB_TEST_SEED repeats it.

    Under CI the seed is the test's name, as Hypothesis derives its examples from the test there.
    """
    if os.environ.get("CI"):
        seed = number(request.node.nodeid)
    else:
        seed = int(os.environ.get("FLOATLAB_TEST_SEED", 0)) or random.SystemRandom().getrandbits(64)
    print(f"to repeat: FLOATLAB_TEST_SEED={seed}")
    return random.Random(seed)


@pytest.fixture
def confine(monkeypatch):
    """Confine this process as a served explorer is, until the end of the test."""
    from floatlab import sandbox

    monkeypatch.setattr(sandbox, "_bounds", [])
    monkeypatch.chdir(".")  # and restore the working directory
    return sandbox.confine
