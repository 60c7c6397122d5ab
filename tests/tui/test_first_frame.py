"""The way to the first frame: what it loads, and the garbage collector, which is paused until then."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from floatlab.tui.app.collector import pause_collector, resume_collector

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
# At the first frame, prints whether the collector works, and what was loaded; then again whether it works.
DRIVER = """
import gc, os, sys
from first_frame_driver import _FRAME, FirstFrameDriver as Plain

class Driver(Plain):
    is_later = False

    def write(self, data):
        if len(data) >= _FRAME and not self.is_later:
            self.is_later = True
            self.tell(*(name for name in LATE if name in sys.modules))
            self._app.call_after_refresh(self._app.call_after_refresh, self.end)

    def tell(self, *names):
        os.write(sys.__stdout__.fileno(), " ".join([str(gc.isenabled()), *names, ""]).encode())

    def end(self):
        self.tell()
        os._exit(0)
"""
LATE = ("tomllib", "html", "hashlib", "numpy", "floatlab.verbs.arithmetic.answer")


def test_the_first_frame_loads_only_what_it_shows_and_pauses_the_collector(tmp_path):
    (tmp_path / "driver.py").write_text(f"LATE = {LATE!r}\n{DRIVER}")
    env = os.environ | {
        "TEXTUAL_DRIVER": "driver:Driver", "PYTHONPATH": os.pathsep.join([str(tmp_path), str(BENCHMARKS), *sys.path]),
        "COLUMNS": "80", "LINES": "24", "XDG_CONFIG_HOME": str(tmp_path),
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "floatlab", "tui", "--new", "show", "0.1", "--fp16"],
        env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == ["False", "True"]


@pytest.fixture
def collector():
    yield
    gc.unfreeze()
    gc.enable()


def test_the_collector_resumes_only_if_it_was_paused(collector):
    before = gc.get_freeze_count()
    resume_collector()
    assert gc.get_freeze_count() == before
    pause_collector()
    assert not gc.isenabled()
    resume_collector()
    assert gc.isenabled()
    assert gc.get_freeze_count() > before
