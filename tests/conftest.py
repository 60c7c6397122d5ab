"""Shared by all tests: where vectors made by others may lie, and a terminal that is always the same."""

import os
import random
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# No deadline: the machine is shared. No database: a failure prints the line that repeats it.
# Under CI the examples are the same every time: what is new is found, and mended, by those who run the tests.
settings.register_profile(
    "floatlab",
    deadline=None,
    database=None,
    derandomize=bool(os.environ.get("CI")),
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("floatlab")
# One worker, one core: threads of a library for linear algebra that wait for each other would take it from the others.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def pytest_addoption(parser):
    """Let the tests run as on a machine that had no C compiler."""
    parser.addoption("--without-extension", action="store_true", help="hide the compiled lane of floatlab.arrays")


def pytest_configure(config):
    """Hide the extension before anything imports it."""
    if config.getoption("--without-extension"):
        sys.modules["floatlab._kernels"] = None


ORACLES = Path(__file__).resolve().parents[2] / "shared" / "oracles"


@pytest.fixture(autouse=True)
def _plain_terminal(monkeypatch):
    """Keep the reader's own settings out of the tests."""
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "PYTHONIOENCODING"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")


@pytest.fixture(scope="session")
def oracles() -> Path:
    if not ORACLES.is_dir():
        pytest.skip("the vectors made by others are not on this machine (../shared/oracles)")
    return ORACLES


@pytest.fixture
def generator():
    """Return a random generator; its seed is printed with a failure, and FLOATLAB_TEST_SEED repeats it."""
    seed = int(os.environ.get("FLOATLAB_TEST_SEED", 0)) or random.SystemRandom().getrandbits(64)
    print(f"to repeat: FLOATLAB_TEST_SEED={seed}")
    return random.Random(seed)
