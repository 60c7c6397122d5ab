"""Wrong input gives status 2 and one line that names it; there is no output and no exception."""

import os
import sys

import pytest

from floatlab.cli.main import main

# The arguments of a command, and text that its error message must contain.
WRONG = [
    # no value, or a value that is not a number
    (["show"], "show needs a value"),
    (["--fp16"], "show needs a value"),
    (["show", "--"], "show needs a value"),
    (["show", "abc"], "'abc' is not a number"),
    (["show", "1.5", "abc"], "'abc' is not a number"),
    (["show", ""], "an empty value"),
    (["show", "   "], "an empty value"),
    ([""], "an empty value"),
    (["show", "1,5"], "'1,5'"),
    (["show", "1..5"], "'1..5'"),
    (["show", "1e"], "'1e'"),
    (["show", "1e5.5"], "'1e5.5'"),
    (["show", "1__0"], "'1__0'"),
    (["show", "_1"], "'_1'"),
    (["show", "0x"], "'0x'"),
    (["show", "0xg"], "'0xg'"),
    (["show", "0b2"], "'0b2'"),
    (["show", "0o17"], "'0o17'"),
    (["show", "++1"], "'++1'"),
    (["show", "1+1"], "'1+1'"),
    (["show", "1.5f"], "'1.5f'"),
    (["show", "1/0"], "denominator 0"),
    (["show", "1/2/3"], "'1/2/3'"),
    (["show", "inf/inf"], "'inf/inf'"),
    (["show", "2^2^2"], "'2^2^2'"),
    (["show", "3^5"], "'3^5'"),
    (["show", "½"], "'½'"),
    (["show", "١٢"], "'١٢'"),
    (["show", "-infinite"], "'-infinite'"),
    (["show", "-nano"], "'-nano'"),
    (["show", "-1x"], "'-1x'"),
    (["show", "1e" + "9" * 2000], "the exponent has 2,000 digits"),
    # NaNs
    (["show", "nan("], "'nan('"),
    (["show", "nan(x)"], "'nan(x)'"),
    (["show", "nan(-1)"], "'nan(-1)'"),
    (["show", "nan(1.5)"], "'nan(1.5)'"),
    (["show", "nan(2^99999999)"], "payload"),
    (["show", "nan(0x200)", "--fp16"], "0x1ff"),
    (["show", "snan(0)", "--fp16"], "from 1 to 0x1ff"),
    # codes
    (["show", "bits:"], "'bits:'"),
    (["show", "bits:xyz"], "'bits:xyz'"),
    (["show", "bits:-0x3c"], "'bits:-0x3c'"),
    (["show", "--bits", "1.5"], "'1.5': a code"),
    (["show", "bits:0x10000", "--fp16"], "0xffff"),
    (["show", "bits:0_01111", "--fp16"], "16 bits"),
    (["show", "bits:0x3c7"], "12 bits of which format"),
    (["show", "1.5", "--dialects"], "--dialects takes a code"),
    (["show", "1.5", "--little-endian"], "--little-endian takes a code"),
    (["show", "bits:0b101", "--little-endian"], "3 bits"),
    (["show", "bits:0x" + "f" * 2000, "--fp16"], "8,000 bits"),
    (["show", "bits:0x3c00", "--like", "numpy"], "--like takes a number"),
    # formats
    (["show", "1.5", "--fp17"], "did you mean '--fp16'"),
    (["show", "1.5", "-f", "fp17"], "did you mean 'fp16'"),
    (["show", "1.5", "-f", "mystery"], "'mystery'"),
    (["show", "1.5", "-f"], "-f/--format needs NAME"),
    (["show", "1.5", "--format"], "-f/--format needs NAME"),
    (["show", "1.5", "--format="], "--format ''"),
    (["show", "1.5", "-f", "fp16,"], "'fp16,'"),
    (["show", "1.5", "-f", "e999m999"], "e999m999"),
    (["show", "1.5", "-f", "e1m0"], "e1m0"),
    (["show", "1.5", "-f", "p3109_k99p1se"], "'p3109_k99p1se'"),
    (["show", "1.5", "-f", "x" * 100_000], "(100,000 characters)"),
    (["show", "1.5@"], "'1.5@'"),
    (["show", "@fp16"], "'@fp16'"),
    (["show", "1.5@fp17"], "'fp17'"),
    (["show", "1.5@fp16@fp32"], "'1.5@fp16'"),
    (["show", "1.5", "fp16"], "'fp16' is a format, not a number"),
    (["e4m3", "1.5"], "'e4m3' is a format, not a number"),
    (["formats", "nothing"], "'nothing'"),
    (["formats", "e4m3", "-5"], "'-5'"),
    (["formats", ""], "unknown format ''"),
    (["formats", "-f", "fp16"], "formats has no -f"),
    (["formats", "--fp16"], "formats has no --fp16"),
    # options
    (["show", "1.5", "-fp16"], "did you mean --fp16"),
    (["show", "1.5", "-fp32"], "did you mean --fp32"),
    (["show", "1.5", "-bf16"], "did you mean --bf16"),
    (["show", "1.5", "-json"], "did you mean --json"),
    (["show", "1.5", "-rounding"], "did you mean --rounding"),
    (["show", "1.5", "-help"], "did you mean --help"),
    (["show", "1.5", "-h5"], "'-h5'"),
    (["show", "1.5", "--jso"], "did you mean '--json'"),
    (["show", "1.5", "--form", "fp16"], "did you mean '--format'"),
    (["show", "1.5", "--wdith", "40"], "did you mean '--width'"),
    (["show", "1.5", "--JSON"], "did you mean '--json'"),
    (["show", "1.5", "--no-color"], "did you mean '--color'"),
    (["show", "1.5", "-x"], "'-x'"),
    (["show", "1.5", "---fp16"], "'---fp16'"),
    (["show", "1.5", "--json=1"], "--json takes no value, but '1' was given"),
    (["show", "1.5", "--fp16=3"], "--fp16 takes no value"),
    (["show", "1.5", "--quiet=loud"], "'loud'"),
    (["show", "1.5", "-r"], "-r/--rounding needs DIR"),
    (["show", "1.5", "-r", "upp"], "did you mean 'up'"),
    (["show", "1.5", "-r", "away"], "RAZ, away from zero, and RNA, nearest"),
    (["show", "1.5", "-r", "sideways"], "nearest, up, down, zero"),
    (["show", "1.5", "--rounding="], "''"),
    (["show", "1.5", "--width"], "--width needs N"),
    (["show", "1.5", "--width", "0"], "'0'"),
    (["show", "1.5", "--width", "-5"], "'-5'"),
    (["show", "1.5", "--width", "4" * 5000], "from 20 to 1000"),
    (["show", "1.5", "--width", "wide"], "'wide'"),
    (["show", "1.5", "--width", "٤٠"], "'٤٠'"),
    (["show", "1.5", "--color", "sometimes"], "'sometimes'"),
    (["show", "1.5", "--color="], "auto always never"),
    (["show", "1.5", "--seed", "-1"], "'-1'"),
    (["show", "1.5", "--seed", "١"], "'١'"),
    (["show", "1.5", "--seed", "99999999999999999999"], "'99999999999999999999'"),
    (["show", "1.5", "--overflow", "wrap"], "'wrap'"),
    (["show", "1.5", "--absent", "never"], "'never'"),
    (["show", "1.5", "--nan", "mips"], "'mips'"),
    (["show", "1.5", "--tininess", "during"], "'during'"),
    (["show", "0", "-f", "e8m0", "--absent", "error"], "--absent error"),
    (["show", "1.5", "--like", "nump"], "did you mean 'numpy'"),
    (["show", "1.5", "--like="], "''"),
    # options that exclude each other
    (["show", "1.5", "--json", "--quiet"], "--json and --quiet"),
    (["show", "1.5", "--json", "--svg", "-"], "--json and --svg -"),
    (["show", "1.5", "--quiet=code", "--svg", "-"], "--quiet and --svg -"),
    (["show", "1.5", "--interval", "--directions"], "--interval and --directions"),
    (["show", "1.5", "--dialects", "--like", "numpy"], "--dialects and --like"),
    (["show", "-", "1.5"], "- reads the values"),
    (["show", "1.5", "-"], "- reads the values"),
    (["show", "-", "--svg", "x.svg"], "--svg draws one picture"),
    # files
    (["show", "1.5", "--svg"], "--svg needs FILE"),
    (["show", "1.5", "--svg", ""], "--svg ''"),
    (["show", "1.5", "--svg", "/"], "--svg '/'"),
    (["show", "0x3c7c", "--svg", "/"], "--svg '/'"),  # the hint is not printed before the error
    (["show", "1.5", "--svg", "/no/such/place.svg"], "'/no/such/place.svg'"),
    (["show", "1.5", "--svg", "a\0b"], r"'a\x00b'"),
    # convert
    (["convert"], "convert needs"),
    (["convert", "1.5"], "convert needs --through"),
    (["convert", "--through", "fp16"], "convert needs a value"),
    (["convert", "1.5", "--through"], "--through/--to needs"),
    (["convert", "1.5", "--through="], "--through ''"),
    (["convert", "1.5", "--through", ","], "--through ','"),
    (["convert", "1.5", "--through", "fp32,,fp16"], "'fp32,,fp16'"),
    (["convert", "1.5", "--through", "fp32,fp17"], "'fp17'"),
    (["convert", "1.5", "--fp16"], "convert has no --fp16"),
    (["convert", "1.5", "-f", "fp16"], "convert has no -f"),
    (["convert", "1.5@fp16", "--through", "fp32"], "'1.5@fp16'"),
    (["convert", "bits:0x3c7c1", "--through", "fp16"], "'bits:0x3c7c1'"),
    # verbs
    (["shwo", "1.5"], "did you mean 'show'"),
    (["convrt", "1.5"], "did you mean 'convert'"),
    (["foramts"], "did you mean 'formats'"),
    (["1.5", "show"], "the verb comes first"),
    (["show", "show"], "the verb comes first"),
    (["version"], "did you mean '--version'"),
    (["help", "nonsense"], "'nonsense' is not a verb"),
    (["help", "shwo"], "did you mean 'show'"),
    # control sequences, invalid text, and text that is too long to be shown
    (["show", "\x1b[31m1.5"], r"\x1b[31m1.5"),
    (["show", "1.5", "-f", "\x1b]0;owned\x07"], r"\x1b]0;owned\x07"),
    (["show", "1.5", "--\x1b[2Jfp16"], r"\x1b[2J"),
    (["show", "1.5", "--json=\x1b[2J"], r"\x1b[2J"),
    (["\x1b[2J"], r"\x1b[2J"),
    (["show", "1.5", "--width", "\x1b[2J"], r"\x1b[2J"),
    (["show", "1.5", "--seed", "\x9b2J"], r"\x9b2J"),
    (["show", "1.5", "--svg", "/\x1b[2J/x"], r"\x1b[2J"),
    (["help", "\x1b[2J"], r"\x1b[2J"),
    (["show", "1\n2"], r"1\n2"),
    (["show", "1\x002"], r"1\x002"),
    (["show", "\udcff\udcfe"], r"\udcff\udcfe"),
    (["show", "1.5", "--format=\udcff"], r"\udcff"),
    (["show", "a\u202eb"], r"\u202e"),
    (["show", "x" * 1_000_000], "(1,000,000 characters)"),
    (["show", "1" * 1_000_000 + "x"], "(1,000,001 characters)"),
    (["show", "1_" * 500_000], "(1,000,000 characters)"),
    (["show", "nan(" * 250_000], "(1,000,000 characters)"),
    (["show", "1/" * 500_000], "(1,000,000 characters)"),
    (["show", "2^" * 500_000], "(1,000,000 characters)"),
    (["show", "1.5", "--" + "x" * 1_000_000], "(1,000,002 characters)"),
    (["show", "1.5", "--json=" + "x" * 1_000_000], "(1,000,000 characters)"),
    (["x" * 1_000_000], "(1,000,000 characters)"),
]


def short(value: object) -> str:
    text = ascii(value)
    return text if len(text) < 60 else f"{text[:40]}…{len(text)}"


@pytest.mark.parametrize(("words", "culprit"), WRONG, ids=short)
def test_what_is_wrong_is_named_in_one_line(command, words, culprit):
    ended = command(*words)
    assert ended.status == 2
    assert ended.out == ""
    assert ended.err.startswith("floatlab: ")
    assert culprit in ended.err
    assert "Traceback" not in ended.err
    # One line, printable from start to end, and short enough for a screen.
    assert ended.err.endswith("\n")
    assert ended.err[:-1].isprintable()
    assert len(ended.err) < 400


def test_the_first_of_several_values_that_is_wrong_leaves_nothing_written(command):
    ended = command("show", "1.5", "2.5", "three", "--json")
    assert (ended.status, ended.out) == (2, "")
    assert "'three'" in ended.err


@pytest.mark.parametrize(
    ("line", "culprit"),
    [
        ("{floatlab} show abc", b"'abc'"),
        ("{floatlab} show 1.5 --fp17", b"did you mean '--fp16'"),
        (r"{floatlab} show $(printf '\377\376')", rb"\udcff\udcfe"),
        (r"{floatlab} show $(printf '\033[31m')", rb"\x1b[31m"),
        ("{floatlab} show 1.5 > /dev/full", b"standard output cannot be written"),
        ("{floatlab} --help > /dev/full", b"standard output cannot be written"),
        ("{floatlab} show --help > /dev/full", b"standard output cannot be written"),
        ("{floatlab} show 1.5 >&-", b"standard output is closed"),
        ("{floatlab} --version >&-", b"standard output is closed"),
        ("{floatlab} show - <&-", b"standard input is closed"),
        ("{floatlab} show 1.5 --svg /dev/full", b"--svg '/dev/full'"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="the shell and devices of Linux")
def test_programs_end_the_same_way(program, line, culprit):
    done = program(line)
    assert done.returncode == 2
    assert done.stdout == b""
    assert done.stderr.startswith(b"floatlab: ")
    assert culprit in done.stderr
    assert done.stderr.count(b"\n") == 1
    assert b"\x1b" not in done.stderr


def test_memory_that_is_not_there_is_no_bug_of_ours(monkeypatch, capsys):
    def ask(*_, **__):
        raise MemoryError

    monkeypatch.setattr("floatlab.reduce.results.totals.read_operands", ask)
    assert main(["sum", "1,2"]) == 2
    assert capsys.readouterr() == ("", "floatlab: there is not enough memory for this many numbers\n")


TOO_MANY = [
    ["matmul", "random:normal:100000x1", "random:normal:1x100000"],
    ["matmul", "random:normal:100000x1", "random:normal:1x100000", "--ways"],
    ["matmul", "random:normal:100000x1", "random:normal:1x100000", "--backends", "numpy"],
    ["sum", "random:normal:1000000000"],
    ["compare", "random:normal:1000000000x1000000000", "1"],
    ["compare", f"random:normal:{'x'.join(['999999999999999999'] * 32)}", "1"],
]


@pytest.mark.parametrize("words", TOO_MANY, ids=lambda words: " ".join(words)[:60])
def test_too_many_numbers_are_refused_at_once(words, capsys):
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert "at most" in err


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="nothing is forbidden to root")
def test_a_picture_where_writing_is_forbidden(command, tmp_path):
    tmp_path.chmod(0o500)
    ended = command("show", "1.5", "--svg", str(tmp_path / "x.svg"))
    assert ended.status == 2
    assert "Permission denied" in ended.err


def test_error_lines_go_nowhere_when_standard_error_is_closed(monkeypatch, capsys):
    # print(file=None) would write them to standard output, among the data.
    monkeypatch.setattr(sys, "stderr", None)
    assert main(["show", "abc"]) == 2
    assert capsys.readouterr().out == ""


def test_error_lines_in_an_encoding_without_the_minus_sign(program):
    done = program("{floatlab} show 1.5 --seed x", PYTHONIOENCODING="ascii")
    assert b"from 0 to 2^64 - 1, not 'x'" in done.stderr
