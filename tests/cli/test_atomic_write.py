"""Files that commands write: complete or not at all; an input, a pipe or a device is never replaced."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from floatlab.atomic_write import replacing
from floatlab.errors import FileFormatError
from tests.cli.conftest import HOUSE

OLD = b"what was there before\n"


@pytest.fixture
def arrays(tmp_path, monkeypatch):
    """Go to a folder with two arrays."""
    monkeypatch.chdir(tmp_path)
    np.save("good.npy", np.ones(3))
    np.savez("several.npz", a=np.ones(3), b=np.zeros(3))
    return tmp_path


def parts(folder):
    """Return the temporary files that unfinished writing has left in a folder."""
    return [each for each in os.listdir(folder) if each.endswith(".part")]


WRITING = {
    "compare": (["compare", "good.npy", "1,2,3"], ["--svg", "--html"]),
    "sum": (["sum", "good.npy"], ["--svg"]),
    "train": (["train", "1", "--update", "0.1", "--steps", "3"], ["--svg", "--csv"]),
    "show": (["show", "0.1"], ["--svg"]),
}
CASES = [(verb, option) for verb, (_, options) in WRITING.items() for option in options]


@pytest.mark.parametrize(("verb", "option"), CASES)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda path: path.mkdir(), "it is a directory, not a file"),
        (os.mkfifo, "it is a pipe, not a file"),
        (lambda path: path.symlink_to("/dev/full"), "it is a device, not a file"),
        (lambda path: path.symlink_to(path), "Too many levels of symbolic links"),
    ],
    ids=["directory", "pipe", "device", "loop"],
)
def test_what_is_no_file_is_not_written_to(command, arrays, verb, option, make, words):
    path = arrays / "out"
    make(path)
    before = os.lstat(path)
    ended = command(*WRITING[verb][0], option, str(path))
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.count("\n") == 1
    assert f"{option} '" in ended.err
    assert words in ended.err
    assert os.path.samestat(os.lstat(path), before)


@pytest.mark.parametrize("path", ["nowhere/x", "new/", "good.npy/x", "a\0b", "x" * 300])
def test_names_that_no_file_can_have(command, arrays, path):
    ended = command("show", "0.1", "--svg", path)
    assert (ended.status, ended.out) == (2, "")
    assert "cannot be written: " in ended.err
    assert sorted(os.listdir(".")) == ["good.npy", "several.npz"]


@pytest.mark.parametrize(
    ("words", "option", "path"),
    [
        (["compare", "good.npy", "good.npy"], "--svg", "good.npy"),
        (["compare", "good.npy", "1,2,3"], "--html", "./good.npy"),
        (["compare", "good.npy", "several.npz::a"], "--svg", "several.npz"),
        (["compare", "good.npy", "good.npy"], "--svg", "symlink"),
        (["compare", "good.npy", "good.npy"], "--svg", "hard"),
        (["compare", "symlink", "1,2,3"], "--html", "hard"),
        (["compare", "1;2", "1;2", "--inputs", "good.npy", "hard"], "--svg", "good.npy"),
        (["sum", "good.npy"], "--svg", "hard"),
        (["sum", "1,2", "--observed", "good.npy,3"], "--svg", "good.npy"),
        (["dot", "1,1,1", "good.npy"], "--svg", "good.npy"),
        (["train", "good.npy", "--update", "0.1"], "--csv", "good.npy"),
        (["train", "1", "--update", "good.npy"], "--svg", "symlink"),
        (["train", "underflow", "good.npy"], "--csv", "hard"),
    ],
)
def test_an_input_is_never_replaced(command, arrays, words, option, path):
    os.symlink("good.npy", "symlink")
    os.link("good.npy", "hard")
    before = {name: (arrays / name).read_bytes() for name in ("good.npy", "several.npz")}
    ended = command(*words, option, path)
    assert (ended.status, ended.out) == (2, "")
    assert (
        ended.err == f"floatlab: {option} '{path}' cannot be written: it is read by this command; name another file\n"
    )
    assert before == {name: (arrays / name).read_bytes() for name in before}


@pytest.mark.parametrize("path", ["nowhere/../good.npy", "link"])
def test_a_path_through_a_folder_that_does_not_exist_is_no_file(command, arrays, path):
    os.symlink("nowhere/../good.npy", "link")
    before = (arrays / "good.npy").read_bytes()
    ended = command("compare", "good.npy", "1,2,3", "--html", path)
    assert (ended.status, ended.out) == (2, "")
    assert f"--html '{path}' cannot be written: No such file or directory" in ended.err
    assert (arrays / "good.npy").read_bytes() == before


def test_two_outputs_are_two_files(command, arrays):
    (arrays / "old").write_bytes(OLD)
    os.link("old", "same")
    for first, second in (("new", "./new"), ("old", "same")):
        ended = command("compare", "good.npy", "1,1,1", "--svg", first, "--html", second)
        assert ended.status == 2
        assert f"--html '{second}' cannot be written: it is also the output of --svg" in ended.err
    assert (arrays / "old").read_bytes() == OLD
    assert not (arrays / "new").exists()


def test_a_number_is_no_input(command, arrays):
    for _ in range(2):  # the second time that a file gets this name
        assert command("show", "1.5", "--svg", "1.5").status == 0
    assert (arrays / "1.5").read_text(encoding="utf-8").startswith("<svg")


def test_standard_output_is_not_replaced(program, tmp_path):
    done = program("{floatlab} show 1.5 --svg /dev/stdout > out.txt")
    assert done.returncode == 2
    assert b"- means standard output" in done.stderr
    assert os.listdir(tmp_path) == ["out.txt"]
    done = program("{floatlab} show 1.5 --svg /dev/stdout | cat")
    assert b"it is a pipe, not a file" in done.stderr


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("verb", "option"), CASES)
def test_a_full_disk_leaves_what_was_there(arrays, verb, option):
    """A limit on the size of files simulates a full disk: writing fails after some bytes."""
    (arrays / "out").write_bytes(OLD)
    code = (
        "import resource, sys\n"
        "from floatlab.cli.main import main\n"
        f"main({WRITING[verb][0]!r})\n"  # everything is imported and cached before
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30, 30))\n"
        f"sys.exit(main([*{WRITING[verb][0]!r}, {option!r}, 'out']))\n"
    )
    env = {**os.environ, "PYTHONPATH": str(HOUSE)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env)
    assert done.returncode == 2, done.stderr
    assert done.stderr == f"floatlab: {option} 'out' cannot be written: File too large\n"
    assert (arrays / "out").read_bytes() == OLD
    assert parts(arrays) == []


def test_a_figure_is_written_whole_or_not_at_all(command, arrays, monkeypatch):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    (arrays / "out.png").write_bytes(OLD)
    words = ["compare", "good.npy", "1,1,2", "--plot", "out.png"]
    with monkeypatch.context() as patch:
        patch.setattr("matplotlib.figure.Figure.savefig", _half)
        ended = command(*words)
    assert ended.status == 2
    assert ended.err == "floatlab: --plot 'out.png' cannot be written: No space left on device\n"
    assert (arrays / "out.png").read_bytes() == OLD
    assert parts(arrays) == []
    assert command(*words).status == 1
    assert (arrays / "out.png").read_bytes().startswith(b"\x89PNG")
    ended = command(*words[:-1], "out.nonsense")
    assert ended.status == 2
    assert "--plot 'out.nonsense' has no extension of a figure format" in ended.err
    assert not (arrays / "out.nonsense").exists()


def _half(self, file, **_):
    file.write(b"half of it")
    raise OSError(28, "No space left on device")


def test_names_in_a_figure_are_no_mathematics(command, arrays):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    os.rename("good.npy", "a$\\frac$b.npy")
    assert command("compare", "a$\\frac$b.npy", "1,1,1", "--plot", "x.svg").status == 0


def test_permissions_and_links_stay(command, arrays):
    target, link = arrays / "target.svg", arrays / "link.svg"
    target.write_bytes(OLD)
    target.chmod(0o640)
    link.symlink_to("target.svg")
    (arrays / "dangling.svg").symlink_to("made.svg")
    assert command("show", "0.1", "--svg", "link.svg").status == 0
    assert command("show", "0.1", "--svg", "dangling.svg").status == 0
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert target.read_bytes() == (arrays / "made.svg").read_bytes() != OLD
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((arrays / "made.svg").stat().st_mode) == 0o666 & ~umask


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_file_that_may_not_be_written_is_not_replaced(command, arrays):
    (arrays / "out.svg").write_bytes(OLD)
    (arrays / "out.svg").chmod(0o444)
    assert "Permission denied" in command("show", "0.1", "--svg", "out.svg").err
    assert (arrays / "out.svg").read_bytes() == OLD


def test_an_interrupted_write_leaves_what_was_there(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(OLD)

    def write_half(trouble):
        with replacing(path) as file:
            file.write(b"half")
            raise trouble

    for trouble in (KeyboardInterrupt, OSError, FileFormatError):
        with pytest.raises(trouble):
            write_half(trouble)
    assert path.read_bytes() == OLD
    assert os.listdir(tmp_path) == ["x"]


def test_a_private_file_is_private_all_the_time(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(OLD)
    path.chmod(0o600)
    with replacing(path) as file:
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == 0o600
