"""Misbehaving targets: they raise, exit, write into their arguments, or cannot be imported."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import floatlab
from floatlab.errors import PlanError, UnsupportedError
from floatlab.reduce.plan.grouped_schedules import NUMPY
from floatlab.reduce.reveal.revelation import reveal
from floatlab.reduce.reveal.targets import target_of


class Mute(Exception):
    def __str__(self):
        raise RuntimeError("no words")


def raising(error):
    def target(x):
        raise error

    return target


class Late:
    """An object like a tensor that raises when its numbers are requested."""

    def detach(self):
        raise SystemExit(0)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        (raising(SystemExit(0)), "raises SystemExit: 0"),
        (raising(GeneratorExit()), "raises GeneratorExit$"),
        (raising(Mute()), "raises Mute$"),
        (raising(ValueError("\n\nlate words\nmore")), "raises ValueError: late words$"),
        (raising(ValueError("x" * 100_000)), "x…$"),
        (raising(MemoryError()), "raises MemoryError$"),
        (lambda x: Late(), "cannot be read: SystemExit: 0"),
        (lambda x: None, "an array of floats or integers, not of object"),
        (lambda x: {}, "an array of floats or integers, not of object"),
    ],
)
def test_what_a_target_raises_is_told_in_one_line(target, words):
    with pytest.raises(UnsupportedError, match=words) as refusal:
        reveal(target, 4)
    assert len(str(refusal.value)) < 300
    assert len(str(refusal.value).splitlines()) == 1


def test_an_interruption_is_one():
    with pytest.raises(KeyboardInterrupt):
        reveal(raising(KeyboardInterrupt()), 4)


def writing(x, *others):
    found = np.sum(x) if not others else x @ others[0]
    for each in (x, *others):
        each[...] = 7
    return found


@pytest.mark.parametrize("kind", ["sum", "matvec", "matmul"])
def test_a_target_may_write_into_what_it_is_given(kind):
    found = reveal(writing, 24, kind=kind)
    assert found.canonical() == reveal({"sum": np.sum}.get(kind, np.matmul), 24, kind=kind).canonical()
    if kind == "sum":
        assert found.canonical() == NUMPY.plan(24).canonical()


@pytest.mark.filterwarnings("error")
def test_masks_that_overflow_in_what_is_no_sum_do_not_warn():
    with pytest.raises(PlanError, match="squares is not a sum along a tree: a huge number at term 0"):
        reveal(squares, 8)


def squares(x):
    return (x * x).sum()


def always_eight(x):
    return 8.0


def test_the_target_is_named_whatever_gives_it_away():
    with pytest.raises(PlanError, match="always_eight is not a sum"):
        reveal(always_eight, 8)


MODULES = {
    "raises": ("raise ValueError('at import\\nand more')", "cannot be imported: ValueError: at import$"),
    "leaves": ("import sys; sys.exit(0)", "cannot be imported: SystemExit: 0"),
    "broken": ("def (", "cannot be imported: SyntaxError"),
    "lacks": ("import nothing_of_this_name", "cannot be imported: ModuleNotFoundError: .*nothing_of_this_name"),
    "guards": ("def __getattr__(name): raise RuntimeError(name)", "does not provide 'f': RuntimeError: f"),
    "lists": ("def __dir__(): raise ValueError", "has no 'f'$"),
    "numbers": ("def __dir__(): return [1, None]", "has no 'f'$"),
}


@pytest.mark.parametrize("name", MODULES)
def test_modules_that_cannot_be_used(name, tmp_path, monkeypatch):
    text, words = MODULES[name]
    module = f"floatlab_test_of_one_that_{name}"
    (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(UnsupportedError, match=words) as refusal:
        target_of(f"{module}:f")
    assert len(str(refusal.value).splitlines()) == 1


def run_reveal(target, folder, **environment):
    """Run the script `floatlab`, whose path does not include the current folder."""
    code = "import sys; del sys.path[0]; from floatlab.__main__ import run; run()"
    return subprocess.run(
        [sys.executable, "-c", code, "reveal", target, "--terms", "4", "--quiet"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(floatlab.__file__).parents[1]), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_modules_of_the_current_folder(tmp_path):
    # The file wave.py has the name of a module of the standard library, which Python finds first.
    (tmp_path / "wave.py").write_text("raise SystemExit('the wrong module')")
    (tmp_path / "beside.py").write_text("def add(x, y): return x + y")
    (tmp_path / "mine.py").write_text(
        "import wave\ndef f(x):\n    from beside import add\n    return add(add(x[0], x[1]), add(x[2], x[3]))"
    )
    ended = run_reveal("mine:f", tmp_path)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "pairwise\n", "")
    ended = run_reveal("mine:f", tmp_path, PYTHONSAFEPATH="1")
    assert ended.returncode == 2
    assert "'mine' cannot be imported: no module of this name is installed (the current folder" in ended.stderr
    assert "PYTHONSAFEPATH" in ended.stderr


def test_a_target_may_print_close_the_standard_output_and_fork(tmp_path):
    (tmp_path / "mine.py").write_text(
        """
import os, sys
first = [True]
def f(x):
    return (x[0] + x[1]) + (x[2] + x[3])
def closes(x):
    print("noise")
    sys.stdout.close()
    return f(x)
def forks(x):
    if first.pop() if first else False:
        os.fork()
    return f(x)
"""
    )
    ended = run_reveal("mine:closes", tmp_path)
    assert (ended.returncode, ended.stdout) == (0, "pairwise\n")
    assert set(ended.stderr.splitlines()) == {"noise"}
    if hasattr(os, "fork"):
        ended = run_reveal("mine:forks", tmp_path)
        assert (ended.returncode, ended.stdout) == (0, "pairwise\n")
        assert ended.stderr == (
            "floatlab: mine:forks forks, and returns in the new process too; it must end that process\n"
        )


def test_the_current_folder_is_searched_only_for_the_named_module(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    with pytest.raises(UnsupportedError, match=r"no module of this name is installed or in the current folder$"):
        target_of("floatlab_test_of_no_module:f")
    with pytest.raises(UnsupportedError, match=r"'src/mine.py' is a file: give its module .* as in mine:function$"):
        target_of("src/mine.py:f")
    assert sys.path == before


@pytest.mark.parametrize("name", ["..:f", ".:f", "a\nb:f", "\udcff:f", "a" * 5000 + ":f", "math:" + "a." * 5000])
def test_names_of_no_module(name):
    with pytest.raises(UnsupportedError) as refusal:
        target_of(name)
    assert len(str(refusal.value)) < 300
    assert str(refusal.value).isprintable()


async def later(x):
    return x.sum()


@pytest.mark.parametrize(
    ("target", "kind", "words"),
    [
        ("numpy.sum", "dot", r"numpy\.sum takes one array, so it cannot be examined as a dot$"),
        ("numpy.matmul", "sum", r"numpy\.matmul takes two arrays, so it cannot be examined as a sum$"),
        (later, None, "later' is asynchronous: give a function that returns its result"),
    ],
)
def test_functions_that_do_not_take_these_operands(target, kind, words):
    with pytest.raises(UnsupportedError, match=words):
        target_of(target, kind)


@pytest.mark.parametrize(("name", "kind"), [("vecdot", "dot"), ("matvec", "matvec"), ("inner", "dot"), ("sum", "sum")])
def test_known_names_say_what_they_take(name, kind):
    if not hasattr(np, name):
        pytest.skip(f"this NumPy has no {name}")
    assert target_of(f"numpy.{name}").kind == kind
    assert reveal(f"numpy.{name}", 9).terms == 9
