"""Shared by all tests: where vectors made by others may lie, and a terminal that is always the same."""

from pathlib import Path

import pytest

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
