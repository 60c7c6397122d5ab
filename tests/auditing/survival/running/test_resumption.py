"""`--resume`: audits that are interrupted continue, and files that belong to other audits are refused unchanged."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import floatlab as fl
from floatlab.auditing.survival.running import runner
from floatlab.cli.main import main
from floatlab.errors import UnsupportedError
from tests.auditing.survival.running.conftest import RECIPES

# Sends small work to processes, and runs the program.
PROGRAM = (
    "from floatlab.auditing.survival.running import runner\n"
    "from floatlab.__main__ import run\n"
    "if __name__ == '__main__':\n"
    "    runner._WORTH_PROCESSES = 1\n"
    "    run()\n"
)


@pytest.fixture(scope="module")
def kept(checkpoint, tmp_path_factory):
    """The file of a complete audit."""
    path = tmp_path_factory.mktemp("kept") / "kept.jsonl"
    fl.audit(checkpoint, to=RECIPES, resume=path)
    return path.read_bytes()


@pytest.fixture
def path(kept, tmp_path):
    found = tmp_path / "kept.jsonl"
    found.write_bytes(kept)
    return found


@pytest.fixture
def count(monkeypatch):
    """Return a function that returns the number of jobs done since its last call."""
    from floatlab.auditing.survival import survey

    done = []
    work = survey.work
    monkeypatch.setattr(survey, "work", lambda job: done.append(job) or work(job))

    def counted():
        found = len(done)
        done.clear()
        return found

    return counted


def test_a_finished_audit_is_not_done_again(checkpoint, path, answer, count, kept):
    assert answer(checkpoint, "--resume", str(path)) == answer(checkpoint)
    assert count() == kept.count(b"\n") - 1  # those of the second call
    assert path.read_bytes() == kept


@pytest.mark.parametrize(
    ("lines", "torn"),
    [(1, b""), (1, bytes(4096)), (2, b"{"), (5, b'{"job":[false,3,0,0],"result"'), (18, b""), (18, bytes(4096))],
)
def test_an_audit_continues_after_any_line(checkpoint, path, kept, answer, count, lines, torn):
    expected = answer(checkpoint)
    whole = kept.splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:lines]) + torn)
    count()
    assert answer(checkpoint, "--resume", str(path)) == expected
    assert count() == len(whole) - lines
    assert sorted(path.read_bytes().splitlines()) == sorted(kept.splitlines())


@pytest.mark.parametrize("size", [0, 1, 40])
def test_an_interrupted_first_line_is_written_again(checkpoint, path, kept, size):
    path.write_bytes(kept[:size])
    fl.audit(checkpoint, to=RECIPES, resume=path)
    assert path.read_bytes() == kept


def test_results_may_come_twice_and_in_any_order(checkpoint, path, kept, answer):
    first, *rest = kept.splitlines(keepends=True)
    path.write_bytes(first + b"".join(rest[::-1] + rest[:4]))
    assert answer(checkpoint, "--resume", str(path)) == answer(checkpoint)


def program(checkpoint, path, *options):
    """Start an audit in a group of its own, so that a signal reaches its processes, too, as Ctrl-C does."""
    command = [sys.executable, "-c", PROGRAM, "audit", checkpoint, "--to", RECIPES, "--json", "--resume", str(path)]
    return subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def started(running, path, lines):
    """Wait until the file has some lines."""
    deadline = time.monotonic() + 120
    while not path.exists() or path.read_bytes().count(b"\n") < lines:
        assert running.poll() is None, running.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.002)


def members(group):
    """Return the processes of a group that have not ended."""
    found = []
    for name in os.listdir("/proc"):
        try:
            with open(f"/proc/{name}/stat") as file:
                state, _, its_group = file.read().rpartition(")")[2].split()[:3]
        except (OSError, ValueError):
            continue
        if name.isdigit() and int(its_group) == group and state != "Z":
            found.append(int(name))
    return found


def gone(group):
    """Wait until all processes of a group have ended; return whether they have."""
    deadline = time.monotonic() + 20
    while members(group) and time.monotonic() < deadline:
        time.sleep(0.02)
    return not members(group)


on_linux = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="processes are looked up in /proc")


@pytest.mark.one_in(4)
@on_linux
@pytest.mark.parametrize("options", [(), ("--jobs", "2")], ids=" ".join)
@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGKILL, -signal.SIGKILL)], ids=["Ctrl-C", "killed"]
)
def test_an_interrupted_audit_continues(checkpoint, tmp_path, answer, kept, options, number, status):
    path = tmp_path / "kept.jsonl"
    running = program(checkpoint, path, *options)
    started(running, path, 4)
    # Ctrl-C reaches all processes of the terminal; a kill only the first one.
    (os.killpg if number == signal.SIGINT else os.kill)(running.pid, number)
    out, err = running.communicate(timeout=60)
    assert (running.returncode, out) == (status, "")
    # After a kill, Python itself may report semaphores.
    assert number == signal.SIGKILL or (err.count("\n") == 1 and "keeps what is finished" in err)
    assert gone(running.pid)
    lines = path.read_bytes().count(b"\n")
    assert 4 <= lines < kept.count(b"\n")
    again = program(checkpoint, path, *options)
    out, err = again.communicate(timeout=120)
    assert (again.returncode, err.count("\n")) == (0, 1)
    assert "floatlab: tensors already in " in err
    assert out == answer(checkpoint)
    assert sorted(path.read_bytes().splitlines()) == sorted(kept.splitlines())


@on_linux
def test_a_killed_process_loses_nothing(checkpoint, tmp_path, answer, kept):
    path = tmp_path / "kept.jsonl"
    running = program(checkpoint, path, "--jobs", "2")
    started(running, path, 4)
    workers = [pid for pid in members(running.pid) if _spawned(pid)]
    os.kill(workers[0], signal.SIGKILL)
    out, err = running.communicate(timeout=120)
    assert running.returncode == 0
    assert out == answer(checkpoint)
    assert err.splitlines() == ["floatlab: a process of the audit has died; others do its work again"]
    assert sorted(path.read_bytes().splitlines()) == sorted(kept.splitlines())
    assert gone(running.pid)


def _spawned(pid):
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return b"spawn_main" in file.read()
    except OSError:
        return False


# Files that belong to another audit, or to none.


def refused(capsys, checkpoint, path, *options, to=RECIPES):
    before = path.read_bytes() if os.path.isfile(path) else None
    assert main(["audit", str(checkpoint), "--to", to, "--resume", str(path), *options]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert said.err.strip().isprintable()
    assert len(said.err) < 400
    assert before is None or path.read_bytes() == before
    return said.err


def test_other_settings(checkpoint, path, capsys):
    assert "recipes: name another file" in refused(capsys, checkpoint, path, to="mxfp4")
    assert "other overflow: name" in refused(capsys, checkpoint, path, "--saturate")
    assert "other tensors" in refused(capsys, checkpoint, path, "--only", "layers.*")


def test_other_files(checkpoint, path, capsys, tmp_path):
    other = tmp_path / "model.safetensors"
    shutil.copy(checkpoint, other)
    shutil.copy(os.path.join(os.path.dirname(checkpoint), "config.json"), tmp_path)
    assert "other files" in refused(capsys, other, path)  # the same contents, but another time
    shutil.copystat(checkpoint, other)
    shutil.copystat(os.path.join(os.path.dirname(checkpoint), "config.json"), tmp_path / "config.json")
    assert main(["audit", str(other), "--to", RECIPES, "--resume", str(path), "--quiet"]) == 0
    capsys.readouterr()
    stamp = os.stat(other)
    with open(other, "r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\1")
    os.utime(other, ns=(stamp.st_atime_ns, stamp.st_mtime_ns + 1))
    assert "other files" in refused(capsys, other, path)


def changed(kept, line, **changes):
    """Return a kept file one of whose lines has other members."""
    lines = kept.splitlines(keepends=True)
    lines[line] = json.dumps(json.loads(lines[line]) | changes).encode() + b"\n"
    return b"".join(lines)


def measured(kept, edit):
    """Return a kept file whose first measured result is edited."""
    lines = kept.splitlines(keepends=True)
    at = next(i for i, line in enumerate(lines) if b"measured" in line)
    found = json.loads(lines[at])
    edit(found["result"]["measured"])
    lines[at] = json.dumps(found).encode() + b"\n"
    return b"".join(lines)


HUGE = b"9" * 5000
HOSTILE = {
    "a pickle": lambda kept: b"\x80\x04cos\nsystem\n(S'touch x'\ntR.",
    "a safetensors": lambda kept: b"\x10\0\0\0\0\0\0\0" + b" " * 1000,
    "empty lines": lambda kept: b"\n" * 100_000,
    "another JSON": lambda kept: b'{"a": 1}\n',
    "another journal": lambda kept: b'{"floatlab": "bill"}\n' + kept,
    "no line ends": lambda kept: b"x" * (20 << 20),
    "a list": lambda kept: b"[]\n",
    "brackets": lambda kept: b"[" * 100_000 + b"\n",
    "brackets later": lambda kept: kept + b'{"job":' + b"[" * 100_000 + b"\n",
    "a long line": lambda kept: kept + b" " * (17 << 20) + b"\n",
    "zeros": lambda kept: kept + bytes(4096) + b"\n",
    "no UTF-8": lambda kept: kept + b'{"job": "\xff"}\n',
    "a list later": lambda kept: kept + b"[1]\n",
    "a name twice": lambda kept: kept + b'{"job":[false,0,0,0],"job":[false,0,0,0]}\n',
    "a line that is no job": lambda kept: kept + b"{}\n",
    "a job of text": lambda kept: changed(kept, 3, job="x"),
    "a job of three": lambda kept: changed(kept, 3, job=[False, 0, 0]),
    "a job below 0": lambda kept: changed(kept, 3, job=[False, 0, 0, -1]),
    "a job with a huge number": lambda kept: kept + b'{"job":[false,0,0,' + HUGE + b"]}\n",
    "a job with a large number": lambda kept: changed(kept, 3, job=[False, 0, 0, 10**40]),
    "a job with fractions": lambda kept: changed(kept, 3, job=[False, 0, 0, 0.5]),
    "no result": lambda kept: changed(kept, -1, result=None),
    "a text as result": lambda kept: changed(kept, -1, result="__import__('os').system('touch x')"),
    "an object as result": lambda kept: changed(kept, -1, result={"__reduce__": ["os.system", "x"]}),
    "no measures": lambda kept: changed(kept, -1, result={"measured": []}),
    "too many measures": lambda kept: measured(kept, lambda found: found.append(found[0])),
    "measures of texts": lambda kept: changed(kept, -1, result={"measured": ["a", "b", "c"]}),
    "peaks where there are none": lambda kept: changed(kept, -1, result={"peaks": [1.0, 1.0, 1.0]}),
    "peaks of texts": lambda kept: changed(kept, 1, result={"peaks": ["a", "b"]}),
    "too many peaks": lambda kept: changed(kept, 1, result={"peaks": [1.0] * 9}),
    "another size": lambda kept: measured(kept, lambda found: found[0][0].__setitem__(0, 5)),
    "a count below 0": lambda kept: measured(kept, lambda found: found[0][0].__setitem__(1, -1)),
    "a count above the size": lambda kept: measured(kept, lambda found: found[0][0].__setitem__(3, 1 << 30)),
    "a count that is true": lambda kept: measured(kept, lambda found: found[0][0].__setitem__(3, True)),
    "a count that is text": lambda kept: measured(kept, lambda found: found[0][0].__setitem__(3, "1")),
    "a negative square": lambda kept: measured(kept, lambda found: found[0][0].__setitem__(-4, -1.0)),
    "an integer for a sum": lambda kept: measured(kept, lambda found: found[0][0].__setitem__(-4, 10**400)),
    "a bin that does not exist": lambda kept: measured(kept, lambda found: found[0][0][8].__setitem__(0, [99999] * 3)),
    "more bins than counts": lambda kept: measured(kept, lambda found: found[0][0][8][0].append(2047)),
    "bins in the wrong order": lambda kept: measured(kept, lambda found: found[0][0][8][0].reverse()),
    "more errors than numbers": lambda kept: measured(kept, lambda found: found[0][0][12][1].__setitem__(0, 1 << 40)),
    "a missing figure": lambda kept: measured(kept, lambda found: found[0][0].pop()),
    "scales of text": lambda kept: measured(kept, lambda found: found[0].__setitem__(1, "x")),
    "a scale below 0": lambda kept: measured(kept, lambda found: found[0][1].__setitem__(5, -1.0)),
    "an exponent out of reach": lambda kept: measured(kept, lambda found: found[0][1].__setitem__(7, [[10**9, 1]])),
    "an output of text": lambda kept: measured(kept, lambda found: found[0].__setitem__(2, [1])),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(checkpoint, path, kept, capsys, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    path.write_bytes(HOSTILE[name](kept))
    start = time.process_time()
    said = refused(capsys, checkpoint, path)
    assert time.process_time() - start < 10
    assert "kept.jsonl' is damaged: line" in said or "is not a file that --resume" in said or "a line of over" in said
    assert os.listdir(tmp_path) == ["kept.jsonl"]


def test_files_that_cannot_be_written(checkpoint, capsys, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    os.mkfifo(tmp_path / "pipe")
    for path, said in (
        (folder, "directory"), (tmp_path / "no folder" / "x", "cannot be read"), (tmp_path / "pipe", "pipe"),
        (tmp_path / "a\0b", "not a file name"), (tmp_path / ("x" * 300), "cannot be read"),
    ):  # fmt: skip
        assert said in refused(capsys, checkpoint, path)


def test_a_checkpoint_is_never_taken_for_a_kept_file(checkpoint, capsys):
    with open(checkpoint, "rb") as file:
        before = file.read()
    assert main(["audit", checkpoint, "--to", RECIPES, "--resume", checkpoint]) == 2
    assert "is not a file that --resume has written" in capsys.readouterr().err
    with open(checkpoint, "rb") as file:
        assert file.read() == before


def test_arrays_in_memory_are_refused(tmp_path):
    with pytest.raises(UnsupportedError, match="arrays in memory have no files"):
        fl.audit({"a": np.ones((4, 64))}, to="bf16", resume=tmp_path / "x")


def test_a_full_disk(checkpoint, capsys):
    if not os.path.exists("/dev/full"):
        pytest.skip("the system has no /dev/full")
    assert main(["audit", checkpoint, "--to", RECIPES, "--resume", "/dev/full"]) == 2
    assert "is a device" in capsys.readouterr().err


def test_tensors_that_cannot_be_read_are_not_kept(tmp_path, capsys):
    """The trouble may be over when the audit continues."""
    path, kept = tmp_path / "x.npz", tmp_path / "kept"
    np.savez(path, a=np.ones((64, 64), np.float32), b=np.zeros(3, np.float32))
    whole = path.read_bytes()
    at = whole.index(np.float32(1).tobytes() * 64)
    stamp = os.stat(path)
    path.write_bytes(whole[:at] + b"\1" + whole[at + 1 :])
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert main(["audit", str(path), "--to", "bf16", "--resume", str(kept)]) == 1
    assert "cannot be read" in capsys.readouterr().out
    path.write_bytes(whole)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    assert main(["audit", str(path), "--to", "bf16", "--resume", str(kept)]) == 0


def test_the_runner_sends_only_what_is_missing(checkpoint, path, kept, monkeypatch):
    monkeypatch.setattr(runner, "_WORTH_PROCESSES", 1)
    from floatlab.auditing.survival.running.workers import Processes

    with Processes(2) as executor:
        fl.audit(checkpoint, to=RECIPES, resume=path, executor=executor)
        assert executor._pool is None
    assert path.read_bytes() == kept
