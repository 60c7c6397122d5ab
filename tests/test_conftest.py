"""The options of the tests themselves."""

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

from tests.conftest import deal

NEEDS_TORCH = "tests/arrays/test_tolerances.py::test_the_default_tolerances_are_pytorchs"


def test_a_test_that_needs_torch_fails_without_it_if_asked_to(tmp_path):
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')")
    root = Path(__file__).parents[1]
    env = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(root)])}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--require-torch", NEEDS_TORCH]
    done = subprocess.run(command, cwd=root, env=env, capture_output=True, text=True)
    assert (done.returncode, "1 failed" in done.stdout) == (1, True), done.stdout


def test_every_share_has_its_part_of_the_cases_of_each_test():
    names = [f"tests/a.py::test_{name}[{i}]" for name, count in (("x", 30), ("y", 7), ("z", 100)) for i in range(count)]
    shares = deal(names, 12)
    assert shares == deal(names[::-1], 12)
    assert set(shares) == set(names)
    for name, least, most in (("x", 2, 3), ("y", 0, 1), ("z", 8, 9), ("", 11, 12)):
        counts = Counter(share for each, share in shares.items() if f"test_{name}" in each)
        assert all(least <= counts[share] <= most for share in range(1, 13)), (name, counts)
