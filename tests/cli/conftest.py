"""Commands, run in this process for speed, or as programs if the test is about the process."""

import io
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

import floatlab
from floatlab.cli.main import main

HOUSE = Path(floatlab.__file__).parents[1]
PROGRAM = [sys.executable, "-m", "floatlab"]


class Ended(NamedTuple):
    """The result of a command: status and output."""

    status: int
    out: str
    err: str


@pytest.fixture
def command(capsys):
    """Run a command in this process."""

    def run(*words: str) -> Ended:
        status = main(list(words))
        return Ended(status, *capsys.readouterr())

    return run


@pytest.fixture
def feed(command, monkeypatch):
    """Run a command in this process with bytes on its standard input."""

    def run(data: bytes, *words: str) -> Ended:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        return command(*words)

    return run


@pytest.fixture
def environment(monkeypatch):
    """Return the environment of a program: floatlab on its path, and no user settings."""
    monkeypatch.setenv("PYTHONPATH", str(HOUSE))
    return lambda **more: {**os.environ, **more}


@pytest.fixture
def program(environment, tmp_path):
    """Run a command as a program, or a shell line with `{floatlab}` if the test is about streams."""

    def run(line: str, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            ["/bin/sh", "-c", line.format(floatlab=" ".join(PROGRAM))],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=environment(**more),
            cwd=tmp_path,
            timeout=60,
        )

    return run
