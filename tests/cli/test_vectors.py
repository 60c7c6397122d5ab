"""`vectors check` and `vectors generate` as commands: files good and bad, statuses, counts, streams."""

import gzip
import json
import os
import pty
import signal
import subprocess
import sys
import time

import pytest

from floatlab.cli import vectors as door
from tests.cli.conftest import PROGRAM

PATIENCE = 30
GOOD, WRONG = "3C00 3C00 4000 00\n", "3C00 3C00 4001 00\n"


@pytest.fixture
def vectors(command, tmp_path, monkeypatch):
    """Run `vectors` beside files made of text, bytes, or nothing."""
    monkeypatch.chdir(tmp_path)

    def run(*words, **files):
        for name, content in files.items():
            data = content.encode() if isinstance(content, str) else content
            (tmp_path / name.replace("__", ".")).write_bytes(data)
        return command("vectors", *words)

    return run


def one_line(err: str) -> bool:
    return err.startswith("floatlab: ") and err.endswith("\n") and err[:-1].isprintable() and len(err) < 400


# Wrong command lines: nothing is computed.
REFUSED = [
    ([], "takes check or generate"),
    (["chek", "f16_add", "x"], "not 'chek'; did you mean 'check'"),
    (["f16_add", "x"], "not 'f16_add'"),
    (["check"], "needs a function"),
    (["generate"], "needs a function"),
    (["check", "f16_add"], "needs a file of vectors, or - for standard input"),
    (["check", "x.txt", "f16_add"], "unknown function 'x.txt'"),
    (["check", "f16_ad", "x"], "did you mean 'f16_add'"),
    (["check", "f17_add", "x"], "unknown format 'f17'"),
    (["check", "add", "x"], "did you mean 'f32_add'"),
    (["check", "i32_to_i64", "x"], "nothing to round"),
    (["check", "f32_to_i33", "x"], "not 'i33'"),
    (["check", "f16_add", "-", "-"], "- is standard input, which can be read only once"),
    (["check", "f16_add", "x", "--lines", "3"], "--lines is not an option of vectors check (only of: generate)"),
    (["check", "f16_add", "x", "--level", "1"], "--level is not an option of vectors check (only of: generate)"),
    (["check", "f16_add", "x", "--svg", "y.svg"], "vectors has no picture"),
    (["check", "f16_add", "x", "-f", "fp16"], "the name of the function has the formats"),
    (["check", "f16_add", "x", "--fp16"], "the name of the function has the formats"),
    (["check", "f16_add", "x", "-r", "near"], "'near'"),
    (["check", "f16_add", "x", "--nan", "mips"], "'mips'"),
    (["check", "f16_add", "x", "--tininess", "never"], "'never'"),
    (["check", "f16_add", "x", "--json", "--quiet"], "--json and --quiet"),
    (["check", "f16_add", "x", "--color", "maybe"], "'maybe'"),
    (["check", "f16_add", "x", "--exact"], "did you mean '--notexact'"),
    (["generate", "f16_add", "x"], "but 'x' was given, too"),
    (["generate", "f16_add", "-"], "but '-' was given, too"),
    (["generate", "f16_add", "--lines", "0"], "'0'"),
    (["generate", "f16_add", "--lines", "-1"], "'-1'"),
    (["generate", "f16_add", "--lines", "1e6"], "'1e6'"),
    (["generate", "f16_add", "--lines", "9999999999999"], "'9999999999999'"),
    (["generate", "f16_add", "--level", "3"], "'3'"),
    (["generate", "f16_add", "--level="], "''"),
    (["generate", "f16_add", "--seed", "-1"], "'-1'"),
    (["generate", "f16_add", "--seed", "one"], "'one'"),
    (["generate", "f16_add", "--all"], "--all is not an option of vectors generate (only of: check)"),
    (["generate", "f16_add", "--json"], "--json is not an option of vectors generate (only of: check)"),
    (["generate", "f16_add", "--quiet"], "--quiet is not an option of vectors generate (only of: check)"),
    (["generate", "f16_add", "--nan", "any"], "--nan any is for vectors check"),
    (["generate", "f16_add", "--width", "x"], "'x'"),
    (["generate", "e999m1_add"], "e999m1"),
    (["generate", "\x1b[2J_add"], r"\x1b[2J"),
    (["generate", "e8m0_sub", "--absent", "error"], "e8m0fnu has no zero"),
]


@pytest.mark.parametrize(
    ("words", "culprit"), REFUSED, ids=lambda value: " ".join(value) if isinstance(value, list) else ""
)
def test_what_is_typed_wrong_is_named_in_one_line(vectors, words, culprit):
    ended = vectors(*words)
    assert (ended.status, ended.out) == (2, "")
    assert one_line(ended.err)
    assert culprit in ended.err


# Files that are not vectors: the error message, and the number of lines counted before it.
PACKED = gzip.compress((GOOD * 5000 + WRONG).encode(), mtime=0)
NOISE = bytes(range(256)) * 12
BROKEN = PACKED[:20] + bytes(255 - each for each in PACKED[20:24]) + PACKED[24:]
FILES = [
    ("empty", b"", "'x.txt' contains no vectors", 0),
    ("blank", b"\n \n\r\n", "'x.txt' contains no vectors", 0),
    ("noise", NOISE, "'x.txt': line 1", 0),
    ("zeros", b"\0" * 9000, "'x.txt': line 1", 0),
    ("nul", GOOD.encode() + b"3C00 3C00\x004000 00\n", r"line 2: f16_add takes 4 words per line", 1),
    ("prefix", b"0x3C00 0x3C00 0x4000 00\n", "4 hexadecimal digits without 0x", 0),
    ("wide", GOOD.encode() + b"13C00 3C00 4000 00\n", "line 2: '13C00' is not the first operand", 1),
    ("cut off", GOOD.encode() + b"3C00 3C00 40", "line 2: f16_add takes 4 words", 1),
    ("cut off in the flags", GOOD.encode() + b"3C00 3C00 4000 0", "line 2: '0' is not the flags", 1),
    ("of another function", b"3F800000 3F800000 40000000 00\n", "'3F800000' is not the first operand", 0),
    ("of another arity", b"3C00 3C00 00\n", "and this one has 3", 0),
    ("utf-16", GOOD.encode("utf-16"), "line 1: ", 0),
    ("old line ends", GOOD.replace("\n", "\r").encode() * 2, "this one has 8", 0),
    ("a long line", GOOD.encode() + b"3" * 2_000_000, "line 2 has over 10,000 bytes", 1),
    ("cut off packing", PACKED[: len(PACKED) // 2], "cannot be read", None),
    ("bad packing", BROKEN, "", None),
    ("bad check sum", PACKED[:-6] + b"\1\2\3\4\5\6", "cannot be read past line 5,001: CRC check failed", 5001),
    ("only the start of packing", PACKED[:2], "cannot be read", 0),
    ("packed noise", gzip.compress(NOISE), "line 1", 0),
    ("packed nothing", gzip.compress(b""), "contains no vectors", 0),
    ("a bomb", gzip.compress(b"3" * 50_000_000, 1), "line 1 has over 10,000 bytes", 0),
]


@pytest.mark.parametrize(("data", "culprit", "counted"), [row[1:] for row in FILES], ids=[row[0] for row in FILES])
def test_files_that_cannot_be_read_to_their_end(vectors, data, culprit, counted):
    ended = vectors("check", "f16_add", "x.txt", x__txt=data)
    assert ended.status == 2
    assert one_line(ended.err)
    assert culprit in ended.err
    if counted == 0:
        assert ended.out == ""
    elif counted is not None:
        assert f": {counted:,} line" in ended.out.splitlines()[-1]
    assert "Traceback" not in ended.err


@pytest.mark.parametrize(
    ("name", "culprit"),
    [
        ("missing.txt", "'missing.txt': cannot be read: No such file or directory"),
        (".", "'.': cannot be read: Is a directory"),
        ("a\0b", r"'a\x00b': cannot be read"),
        ("\x1b[2J", r"'\x1b[2J': cannot be read"),
        ("", "'': cannot be read: No such file or directory"),
    ],
)
def test_files_that_are_none(vectors, name, culprit):
    ended = vectors("check", "f16_add", name)
    assert (ended.status, ended.out) == (2, "")
    assert one_line(ended.err)
    assert culprit in ended.err


def test_a_name_that_promises_packing(vectors):
    ended = vectors("check", "f16_add", "x.gz", x__gz=GOOD)
    assert (ended.status, one_line(ended.err)) == (2, True)
    assert "'x.gz': is named .gz, but is not compressed with gzip" in ended.err


def test_the_good_lines_before_a_bad_one_count(vectors):
    ended = vectors("check", "f16_add", "x.txt", x__txt=GOOD + WRONG + "\n" + GOOD + "zz\n" + WRONG)
    assert ended.status == 2
    assert ended.out.startswith("x.txt:2: 3C00 3C00 4001 00\n")
    assert ended.out.splitlines()[-1].endswith(": 3 lines, 1 differs")
    assert "'x.txt': line 5: " in ended.err
    assert ended.err.endswith("'zz'; of 3 lines before it, 1 differs\n")


def test_many_mismatches_before_a_bad_line_leave_one_line_of_words(vectors):
    ended = vectors("check", "f16_add", "x.txt", x__txt=WRONG * 30 + "zz\n")
    assert ended.status == 2
    assert one_line(ended.err)
    assert ended.out.count("see why") == door.SHOWN
    assert "x.txt: 10 more lines differ; --all writes them\n" in ended.out
    assert vectors("check", "f16_add", "x.txt", "--all").out.count("see why") == 30


@pytest.mark.parametrize("data", [GOOD, GOOD.lower(), GOOD.replace("\n", "\r\n"), "\ufeff" + GOOD, "\n\n" + GOOD[:-1]])
def test_files_as_other_systems_write_them(vectors, data):
    ended = vectors("check", "f16_add", "x.txt", x__txt=data)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out == "f16_add RNE, tininess after rounding, NaNs as x86: 1 line, 0 differ\n"


@pytest.mark.parametrize("name", ["x.gz", "x.txt"])
def test_packed_files_are_known_by_what_they_hold(vectors, name):
    ended = vectors("check", "f16_add", name, **{name.replace(".", "__"): PACKED})
    assert ended.status == 1
    assert ended.out.endswith(": 5,001 lines, 1 differs\n")


def test_a_mismatch_is_written_with_both_results_and_the_command(vectors):
    ended = vectors("check", "f16_add", "x.txt", x__txt="3C00 0001 3C01 00\n")
    assert (ended.status, ended.err) == (1, "")
    assert ended.out.splitlines() == [
        "x.txt:1: 3C00 0001 3C01 00",
        "  expected  3C01 00  (no flags)",
        "  computed  3C00 01  (inexact)",
        "  see why   floatlab add bits:0x3c00 bits:0x0001 -f binary16 -r RNE --nan x86",
        "f16_add RNE, tininess after rounding, NaNs as x86: 1 line, 1 differs",
    ]


def test_records_of_mismatches_and_of_the_whole(vectors):
    ended = vectors("check", "f16_add", "x.txt", "--json", x__txt=GOOD + "3C00 0001 0001 03\n" + GOOD)
    assert ended.status == 1
    found, whole = map(json.loads, ended.out.splitlines())
    assert (found["file"], found["line"], found["text"]) == ("x.txt", 2, "3C00 0001 0001 03")
    assert found["expected"] == {"code": "0x0001", "flags": ["underflow", "inexact"]}
    assert found["computed"] == {"code": "0x3c00", "flags": ["inexact"]}
    assert found["command"].startswith("floatlab add ")
    assert whole == {"schema": 1, "operation": "vectors check", "function": "f16_add", "lines": 3, "differ": 1}


def test_quiet_is_the_number_of_mismatches(vectors):
    assert vectors("check", "f16_add", "x.txt", "--quiet", x__txt=GOOD + WRONG * 2)[:2] == (1, "2\n")


def test_files_after_a_bad_one_are_not_reached_and_those_before_count(vectors):
    ended = vectors("check", "f16_add", "a.txt", "b.txt", "c.txt", a__txt=GOOD + WRONG, b__txt="zz\n", c__txt=GOOD)
    assert ended.status == 2
    assert "'b.txt': line 1" in ended.err
    assert ended.out.endswith(": 2 lines, 1 differs\n")
    ended = vectors("check", "f16_add", "a.txt", "c.txt")
    assert (ended.status, ended.err) == (1, "")
    assert ended.out.endswith(": 3 lines, 1 differs\n")


def test_standard_input_keeps_its_line_numbers(feed):
    ended = feed(f"\n{GOOD}\n\n{WRONG}zz\n".encode(), "vectors", "check", "f16_add", "-")
    assert ended.status == 2
    assert ended.out.startswith("line 5: 3C00")
    assert "standard input: line 6: " in ended.err
    assert one_line(ended.err)


@pytest.mark.parametrize("data", [b"", NOISE, b"\0" * 100, b"\xff\xfe", b"3" * 20_000])
def test_standard_input_that_holds_no_vectors(feed, data):
    ended = feed(data, "vectors", "check", "f16_add", "-")
    assert ended.status == 2
    assert one_line(ended.err)
    assert "standard input" in ended.err


def test_any_nan_and_other_rules(vectors):
    nan = "7E01 3C00 FFFF 00\n"
    assert vectors("check", "f16_add", "x.txt", x__txt=nan).status == 1
    ended = vectors("check", "f16_add", "x.txt", "--nan", "any")
    assert (ended.status, "any NaN" in ended.out) == (0, True)
    # The default NaN: negative on x86, positive on Arm.
    for rule, line in (("x86", "7C00 FC00 FE00 10\n"), ("arm", "7C00 FC00 7E00 10\n")):
        assert vectors("check", "f16_add", "x.txt", "--nan", rule, x__txt=line).status == 0


def test_vectors_made_without_exact(vectors):
    # TestFloat's output without the option -exact.
    lines = "4100 4000 00\n"
    assert vectors("check", "f16_roundToInt", "x.txt", x__txt=lines).status == 1
    assert vectors("check", "f16_roundToInt", "x.txt", "--notexact").status == 0


@pytest.mark.parametrize(
    "rules",
    [[], ["-r", "minMag"], ["-r", "SR", "--seed", "9"], ["--tininess", "before", "--nan", "arm"], ["--ftz", "--daz"],
     ["--overflow", "saturate", "--absent", "nan"], ["--notexact"]],
    ids=" ".join,
)  # fmt: skip
@pytest.mark.parametrize(
    "function", ["f32_mulAdd", "p3109_k8p4se_div", "x87_sqrt", "e8m0_mul", "f64_to_i32", "e5m3fn_rem"]
)
def test_what_generate_writes_check_accepts(command, feed, function, rules):
    written = command("vectors", "generate", function, "--lines", "200", *rules)
    assert (written.status, written.err) == (0, "")
    assert len(written.out.splitlines()) == 200
    ended = feed(written.out.encode(), "vectors", "check", function, "-", *rules)
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.endswith(": 200 lines, 0 differ\n")


def test_generate_is_the_same_for_the_same_seed(command):
    first, again, other = (
        command("vectors", "generate", "bf16_mul", "--lines", "3000", "--seed", seed).out for seed in ("3", "3", "4")
    )
    assert first == again != other


# As programs.


def test_a_pipe_of_two_programs(program):
    done = program("{floatlab} vectors generate f32_add --lines 3000 | {floatlab} vectors check f32_add - --quiet")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"0\n", b"")


def test_a_packed_file_on_standard_input(program, tmp_path):
    (tmp_path / "x.gz").write_bytes(PACKED)
    done = program("{floatlab} vectors check f16_add - --quiet < x.gz")
    assert (done.returncode, done.stdout, done.stderr) == (1, b"1\n", b"")


@pytest.mark.skipif(sys.platform != "linux", reason="the shell and devices of Linux")
@pytest.mark.parametrize(
    ("line", "culprit"),
    [
        ("{floatlab} vectors check f16_add - < /dev/zero", b"standard input: line 1 has over 10,000 bytes"),
        ("yes 3C00 3C00 | {floatlab} vectors check f16_add -", b"line 1: f16_add takes 4 words"),
        ("{floatlab} vectors check f16_add /dev/zero", b"'/dev/zero': line 1 has over 10,000 bytes"),
        ("{floatlab} vectors check f16_add - <&-", b"standard input is closed"),
        ("{floatlab} vectors generate f16_add > /dev/full", b"standard output cannot be written"),
        ("{floatlab} vectors generate f16_add >&-", b"standard output is closed"),
    ],
)  # fmt: skip
def test_endless_and_closed_streams_end_in_one_line(program, line, culprit):
    done = program(line)
    assert done.returncode == 2
    assert culprit in done.stderr
    assert done.stderr.count(b"\n") == 1


def test_a_reader_that_leaves_ends_generate_quietly(program):
    done = program("{floatlab} vectors generate f16_add --lines 100000000 | head -1")
    assert (done.stdout, done.stderr) == (b"0000 0000 0000 00\n", b"")


def _until(condition) -> bool:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        if condition():
            return True
        time.sleep(0.01)
    return False


@pytest.mark.parametrize("words", [["generate", "f16_add", "--lines", "100000000"], ["check", "f16_add", "-"]])
def test_interrupting_ends_quietly(environment, words):
    with subprocess.Popen(
        [*PROGRAM, "vectors", *words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
    ) as running:
        if words[0] == "generate":
            assert running.stdout.readline()
        else:  # a mismatch is printed as soon as it is read
            running.stdin.write(WRONG.encode())
            running.stdin.flush()
            assert running.stdout.readline()
        running.send_signal(signal.SIGINT)
        running.stdout.close() if words[0] == "check" else running.stdout.read()
        assert running.wait(PATIENCE) == 130
        assert running.stderr.read() == b""


def test_progress_is_told_to_a_terminal_and_taken_away_again(environment, tmp_path):
    (tmp_path / "x.txt").write_text(GOOD * 60_000)
    ours, theirs = pty.openpty()
    script = (
        "import sys; from floatlab.cli import vectors; vectors._EVERY = 0.0; from floatlab.cli.main import main;"
        "sys.exit(main(['vectors', 'check', 'f16_add', 'x.txt']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=theirs, env=environment(), cwd=tmp_path
    ) as running:
        os.close(theirs)
        seen = b""
        try:
            while part := os.read(ours, 65536):
                seen += part
        except OSError:  # Linux's error if the other side has closed
            pass
        out = running.stdout.read()
        assert running.wait(PATIENCE) == 0
    os.close(ours)
    assert b"2,000 lines checked" in seen
    assert b" a second" in seen
    assert seen.endswith(b"\r\x1b[K")
    assert out == b"f16_add RNE, tininess after rounding, NaNs as x86: 60,000 lines, 0 differ\n"


def test_no_progress_where_nobody_watches(vectors, monkeypatch):
    monkeypatch.setattr(door, "_EVERY", 0.0)
    assert vectors("check", "f16_add", "x.txt", x__txt=GOOD * 5000).err == ""
    assert vectors("generate", "f16_add", "--lines", "5000").err == ""
