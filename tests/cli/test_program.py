"""The process: start-up, interruption, and files that it leaves."""

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from floatlab.cli import main as door
from floatlab.cli import output
from tests.cli.conftest import PROGRAM

PATIENCE = 30
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals and pipes as on Unix")


@pytest.mark.parametrize(
    "line",
    [
        "yes 1.5 | {floatlab} show - --fp16 --quiet | head -n 1",
        "yes 1.5 | {floatlab} show - --fp16 --json | head -n 1",
        "yes 1.5 | {floatlab} show - --fp16 | head -n 1",
        "yes abc | {floatlab} show - --quiet 2>&1 | head -n 1",  # writes only to standard error, which is closed
        "{floatlab} formats e4m3 | true",
        "{floatlab} --help | true",
        "{floatlab} show --help | true",
    ],
)
def test_a_closed_pipe_is_quiet(program, line):
    done = program(line)
    assert done.stderr == b""
    assert done.stdout.count(b"\n") <= 1


def test_a_closed_pipe_is_not_an_error(environment):
    with subprocess.Popen(
        [*PROGRAM, "show", "-", "--quiet"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=environment(),
    ) as program:  # fmt: skip
        program.stdout.close()
        program.stdin.write(b"1.5\n" * 10)
        program.stdin.close()
        assert program.wait(PATIENCE) == 0
        assert program.stderr.read() == b""


def test_the_status_tells_even_where_the_words_are_not_heard(environment):
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run([*PROGRAM, "show", "abc"], stderr=writing, env=environment(), timeout=PATIENCE)
        assert done.returncode == 2
    finally:
        os.close(writing)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_disk_for_the_words(program):
    done = program("{floatlab} show abc 2>/dev/full; echo $?")
    assert done.stdout == b"2\n"


def test_ctrl_c_in_a_stream_is_quiet(environment):
    with subprocess.Popen(
        [*PROGRAM, "show", "-", "--fp16", "--quiet"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(),
    ) as program:  # fmt: skip
        program.stdin.write(b"1.5\n")
        program.stdin.flush()
        assert program.stdout.readline() == b"1.5\n"  # now the program waits for the second line
        program.send_signal(signal.SIGINT)
        assert program.wait(PATIENCE) == 130
        assert program.stdout.read() == program.stderr.read() == b""


def test_ctrl_c_in_the_middle_of_work(monkeypatch, capsys):
    def interrupted(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(door, "_command", interrupted)
    with pytest.raises(SystemExit) as leaving:
        door.run()
    assert leaving.value.code == 130
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("module", ["floatlab.cli.main", "floatlab.cli.parser", "floatlab.numbers.rounding", "numpy"])
def test_ctrl_c_while_modules_are_imported(environment, module):
    script = (
        "import os, runpy, signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name == {module!r}:\n"
        "            os.kill(os.getpid(), signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
        "sys.argv = ['floatlab', 'sum', '1,2']\n"
        "runpy.run_module('floatlab', run_name='__main__')\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment())
    assert (done.returncode, done.stdout, done.stderr) == (130, b"", b"")


def failing(_):
    raise ZeroDivisionError("a number\x1b[2J\udcff of mistakes")


def test_an_internal_error_is_one_line_and_a_file(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(door, "_command", failing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert door.main(["show", "1.5"]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("floatlab: an internal error (ZeroDivisionError); please report it with the file ")
    assert err.count("\n") == 1
    (file,) = tmp_path.iterdir()
    assert str(file) in err
    assert "in failing" in file.read_text(encoding="utf-8")


def test_an_internal_error_without_a_place_for_the_file(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(door, "_command", failing)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    assert door.main(["show", "1.5"]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert "ZeroDivisionError" in err
    assert "failing, line" in err
    assert err[:-1].isprintable()


def test_an_internal_error_in_drawing_leaves_nothing_written(monkeypatch, capsys, tmp_path):
    from floatlab.page import text_layout as text

    monkeypatch.setattr(text, "to_text", lambda *_: failing(_))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert door.main(["show", "0x3c7c", "--fp16"]) == 70
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1


def test_running_ends_with_the_status(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["floatlab", "show", "abc"])
    with pytest.raises(SystemExit) as leaving:
        door.run()
    assert leaving.value.code == 2
    assert capsys.readouterr().out == ""


def test_words_that_cannot_be_written_do_not_matter(monkeypatch):
    class Full:
        encoding = "utf-8"

        def write(self, _):
            raise OSError(28, "No space left on device")

        flush = write

    monkeypatch.setattr(sys, "stderr", Full())
    output.say("nobody hears this")
    assert door.main(["show", "abc"]) == 2


# Modules that a scalar verb must not import: dataclasses takes 17 ms, numpy 95, textual 320.
HEAVY = {"numpy", "rich", "textual", "dataclasses", "ml_dtypes", "torch", "asyncio", "inspect"}


@pytest.mark.parametrize(
    ("words", "more"),
    [
        ("show 1.5 --fp16", {"json", "tempfile", "traceback", "shutil"}),
        ("show 1/3 --fp16 --interval --svg -", {"json", "tempfile"}),
        ("show bits:0x38 --dialects", {"json"}),
        ("show 0.1 --quiet", {"json", "fractions", "floatlab.page.model", "floatlab.page.svg"}),
        ("show 0.1 --json", {"floatlab.page.text_layout", "floatlab.page.svg"}),
        ("convert 1.1 --through fp32,fp16", {"json"}),
        ("formats", {"json"}),
        ("--version", {"json", "importlib.metadata"}),
        ("--help", {"json", "shutil"}),
        ("show abc", {"json", "floatlab.page.svg"}),
    ],
)
def test_the_start_is_light(environment, words, more):
    script = (
        "import sys; from floatlab.cli.main import main\n"
        f"main({words.split()!r})\n"
        "sys.stdout.flush(); print('\\n' + ' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", script], capture_output=True, text=True, env=environment(), timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr
    opened = set(done.stdout.splitlines()[-1].split())
    assert "floatlab.cli.main" in opened
    assert not opened & (HEAVY | more)


def test_the_module_and_the_program_are_the_same(environment):
    script = "import sys; from floatlab.cli.main import run; sys.argv = ['floatlab', '1.5', '--quiet']; run()"
    one = subprocess.run([sys.executable, "-c", script], capture_output=True, env=environment(), timeout=PATIENCE)
    two = subprocess.run([*PROGRAM, "1.5", "--quiet"], capture_output=True, env=environment(), timeout=PATIENCE)
    assert (one.returncode, one.stdout, one.stderr) == (two.returncode, two.stdout, two.stderr) == (0, two.stdout, b"")
