"""`-`: values from standard input, one per line, answered immediately."""

import io
import json
import os
import subprocess
import sys
import threading

import pytest

from floatlab.cli import standard_input
from floatlab.cli.main import main
from tests.cli.conftest import PROGRAM

PATIENCE = 30  # seconds; generous, since machines are noisy and a program that hangs never ends


def first_lines(stream, count):
    """Read lines, with a time limit."""
    found = []
    reader = threading.Thread(target=lambda: found.extend(stream.readline() for _ in range(count)), daemon=True)
    reader.start()
    reader.join(PATIENCE)
    return found


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        (["show", "-", "--fp16", "--quiet"], [b"0.1\n", b"2.5\n"]),
        (["show", "-", "--fp16", "--quiet=code"], [b"0x2e66\n", b"0x4100\n"]),
        (["-", "--fp16", "--quiet"], [b"0.1\n", b"2.5\n"]),
        (["convert", "-", "--through", "fp32,fp16", "--quiet"], [b"0.1\n", b"2.5\n"]),
    ],
)
def test_a_line_is_answered_before_the_next_one_is_sent(environment, words, lines):
    with subprocess.Popen(
        [*PROGRAM, *words], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    ) as program:
        for value, line in zip((b"0.1\n", b"2.5\n"), lines, strict=True):
            program.stdin.write(value)
            program.stdin.flush()
            assert first_lines(program.stdout, 1) == [line]
            assert program.poll() is None
        rest = program.communicate(timeout=PATIENCE)
        assert (rest, program.returncode) == ((b"", b""), 0)


def test_a_json_record_comes_with_each_line(environment):
    with subprocess.Popen(
        [*PROGRAM, "show", "-", "--fp16", "--json"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment()
    ) as program:
        program.stdin.write(b"0.1\n")
        program.stdin.flush()
        (line,) = first_lines(program.stdout, 1)
        assert json.loads(line)["result"]["code"] == "0x2e66"
        program.communicate(timeout=PATIENCE)
        assert program.returncode == 0


def test_bad_lines_are_reported_by_number_and_the_rest_goes_on(feed):
    ended = feed(b"1.5\nabc\n\n  \n-inf\n1.5@fp17\n-2\n", "show", "-", "--fp16", "--quiet")
    assert ended.status == 2
    assert ended.out == "1.5\n-inf\n-2\n"
    first, second = ended.err.splitlines()
    assert first.startswith("floatlab: line 2: 'abc' is not a number")
    assert second.startswith("floatlab: line 6: ")
    assert "'fp17'" in second


def test_values_that_a_format_refuses_are_bad_lines(feed):
    ended = feed(b"0\n1\n", "show", "-", "-f", "e8m0", "--absent", "error", "--quiet")
    assert (ended.status, ended.out) == (2, "1\n")
    assert ended.err.startswith("floatlab: line 1: '0': ")


@pytest.mark.parametrize(
    ("data", "out"),
    [
        (b"1.5\n2.5\n", "1.5\n2.5\n"),
        (b"1.5\r\n2.5\r\n", "1.5\n2.5\n"),
        (b"1.5\n2.5", "1.5\n2.5\n"),
        (b"\n\n 1.5 \t\n\n2.5\n\n", "1.5\n2.5\n"),
        (b"\xef\xbb\xbf1.5\n2.5\n", "1.5\n2.5\n"),
        ("−1.5\n".encode(), "-1.5\n"),
        (b"--fp16\n", None),
        (b"-\n", None),
        (b"", ""),
    ],
    ids=["lines", "of Windows", "no last end", "blanks", "a mark", "a minus", "no options", "no streams", "nothing"],
)
def test_lines_are_values_and_nothing_else(feed, data, out):
    ended = feed(data, "show", "-", "--fp16", "--quiet")
    if out is None:
        assert ended.status == 2
        assert ended.err.startswith("floatlab: line 1: ")
    else:
        assert ended == (0, out, "")


def test_lines_that_are_not_text_are_shown_harmlessly(feed):
    ended = feed(b"\x1b[2J\n\xff\xfe\n1\x00\n\x9b2J\n1.5\n", "show", "-", "--fp16", "--quiet")
    assert (ended.status, ended.out) == (2, "1.5\n")
    lines = ended.err.splitlines()
    assert [line[:16] for line in lines] == [f"floatlab: line {n}" for n in (1, 2, 3, 4)]
    assert all(line.isprintable() for line in lines)
    for line, shown in zip(lines, (r"'\x1b[2J'", r"'\xff\xfe'", r"'1\x00'", r"'\x9b2J'"), strict=True):
        assert shown in line


def test_pages_are_apart_by_one_empty_line(feed, command):
    one, two = (command("show", value, "--fp16").out for value in ("1.5", "2.5"))
    assert feed(b"1.5\nbad\n2.5\n", "show", "-", "--fp16").out == f"{one}\n{two}"


def test_a_line_that_is_too_long_is_skipped_and_not_kept(feed, monkeypatch):
    monkeypatch.setattr(standard_input, "MAX_LINE", 20)
    ended = feed(b"1.5\n" + b"1" * 1000 + b"\n2.5\n" + b"1" * 20 + b"\n" + b"0" * 21, "show", "-", "--fp32", "--quiet")
    assert ended.out == "1.5\n2.5\n"
    assert [line.split(":")[1] for line in ended.err.splitlines()] == [" line 2", " line 4", " line 5"]


def test_a_million_digits_on_a_line(feed):
    # Work and output are bounded: the value is not repeated in full.
    ended = feed(b"0." + b"3" * 1_000_000 + b"\n" + b"x" * 1_000_000 + b"\n", "show", "-", "--fp16")
    assert ended.status == 2
    assert "0x3555" in ended.out
    assert len(ended.out) < 2000
    assert "line 2" in ended.err
    assert len(ended.err) < 400


def test_a_missing_library_is_told_once_at_the_end(feed, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)  # as if the library were not installed
    ended = feed(b"1.5\n2.5\n", "show", "-", "--fp16", "--like", "torch", "--quiet")
    assert (ended.status, ended.out) == (3, "1.5\n2.5\n")
    assert ended.err == "floatlab: --like torch needs torch: pip install torch\n"


def test_options_are_checked_before_anything_is_read(feed):
    for words in (["-f", "fp17"], ["--width", "wide"], ["-r", "upp"], ["--interval", "--directions"], ["--svg", "-"]):
        ended = feed(b"1.5\n", "show", "-", *words)
        assert (ended.status, ended.out) == (2, "")
        assert "line 1" not in ended.err


def test_standard_input_is_not_read_without_being_named(command, monkeypatch):
    class Untouched(io.StringIO):
        def read(self, *_):
            raise AssertionError("read")

        readline = readlines = __next__ = read

    monkeypatch.setattr(sys, "stdin", Untouched())
    assert command("show", "1.5").status == 0
    assert command("formats").status == 0
    assert command("show").status == 2


def test_a_pipe_that_never_ends_does_not_hold_a_program(environment):
    # As under cron: standard input is open, but nothing is ever written to it.
    reading, writing = os.pipe()
    try:
        done = subprocess.run(
            [*PROGRAM, "show", "1.5", "--fp16", "--quiet"],
            stdin=reading, capture_output=True, env=environment(), timeout=PATIENCE,
        )  # fmt: skip
        assert done.stdout == b"1.5\n"
    finally:
        os.close(reading)
        os.close(writing)


def test_input_that_cannot_be_read_is_named(monkeypatch, capsys):
    class Broken:
        def readline(self, _):
            raise OSError(5, "Input/output error")

    class Stdin:
        buffer = Broken()

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert main(["show", "-"]) == 2
    assert capsys.readouterr() == ("", "floatlab: standard input cannot be read: Input/output error\n")
