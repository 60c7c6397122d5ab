"""The options of the tests themselves."""

import os
import subprocess
import sys
from pathlib import Path

NEEDS_TORCH = "tests/arrays/test_tolerances.py::test_the_default_tolerances_are_pytorchs"


def test_a_test_that_needs_torch_fails_without_it_if_asked_to(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    root = Path(__file__).parents[1]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--require-torch", NEEDS_TORCH]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout
