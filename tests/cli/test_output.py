"""Output of answers: colour, width, characters, pictures, JSON."""

import json
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import pytest

from floatlab.cli.output import _colour, _width, shows_unicode

DATUM_KEYS = ["format", "code", "sign", "biased_exponent", "trailing_significand", "class", "exact", "hex", "shortest"]
RESULT_KEYS = ["schema", "operation", "format", "context", "operands", "steps", "result", "flags", "error"]
FLAGS = ["invalid", "divide_by_zero", "overflow", "underflow", "inexact"]


class Out:
    """A stream that is a terminal or is not."""

    def __init__(self, terminal, encoding="utf-8"):
        self.terminal, self.encoding = terminal, encoding

    def isatty(self):
        return self.terminal

    def fileno(self):
        raise OSError("no descriptor")


@pytest.mark.parametrize(
    ("word", "variables", "terminal", "coloured"),
    [
        ("auto", {}, True, True),
        ("auto", {}, False, False),
        ("auto", {"TERM": "dumb"}, True, False),
        ("auto", {"FORCE_COLOR": "1"}, False, True),
        ("auto", {"FORCE_COLOR": "1", "TERM": "dumb"}, False, True),
        ("auto", {"FORCE_COLOR": ""}, False, False),
        ("auto", {"NO_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": "0"}, True, False),  # set and not empty: its value does not matter
        ("auto", {"NO_COLOR": ""}, True, True),
        ("auto", {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        ("auto", {"NO_COLOR": "", "FORCE_COLOR": "1"}, False, True),
        ("always", {"NO_COLOR": "1", "TERM": "dumb"}, False, True),
        ("never", {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_the_option_beats_the_variables_and_they_beat_the_terminal(monkeypatch, word, variables, terminal, coloured):
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert _colour(word, Out(terminal)) is coloured


def test_colour_is_for_pages_only(command):
    assert "\x1b[" in command("show", "1.5", "--color", "always").out
    for settings in ("--json", "--quiet", "--quiet=code", "--svg=-"):
        assert "\x1b" not in command("show", "1.5", settings, "--color", "always").out


@pytest.mark.parametrize(
    ("columns", "width"), [(100, 100), (300, 120), (10, 20), (0, 80)], ids=["as it is", "wide", "narrow", "unknown"]
)
def test_the_width_is_the_terminals_within_reason(monkeypatch, columns, width):
    monkeypatch.setattr("os.get_terminal_size", lambda _: SimpleNamespace(columns=columns))
    out = Out(True)
    out.fileno = lambda: 1
    assert _width(None, out) == width
    assert _width("40", out) == 40


def test_the_width_is_80_without_a_terminal():
    assert _width(None, Out(False)) == 80
    assert _width(None, Out(True)) == 80  # a terminal of unknown width


@pytest.mark.parametrize("width", [20, 32, 40, 60, 80, 100, 1000])
@pytest.mark.parametrize("words", ["0.1 --fp16", "1/3 --fp64 --interval", "0.1 --fp16 --directions"])
def test_pages_keep_to_their_width(command, width, words):
    out = command("show", *words.split(), "--width", str(width)).out
    assert max(map(len, out.splitlines())) <= width


def test_encodings_that_cannot_show_a_page():
    assert shows_unicode(Out(True, "utf-8"))
    assert shows_unicode(Out(True, "UTF-8"))
    assert shows_unicode(Out(True, None))
    for encoding in ("ascii", "latin-1", "cp1252", "no-such-encoding"):
        assert not shows_unicode(Out(True, encoding))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("variables", [{"PYTHONIOENCODING": "ascii"}, {"PYTHONIOENCODING": "latin-1"}, {"LC_ALL": "C"}])
@pytest.mark.parametrize(
    "words", ["show 0.1 --fp16", "convert 1.1 --through fp32,fp16", "formats e4m3", "--help", "convert --help"]
)
def test_every_page_can_be_written_in_every_encoding(program, words, variables):
    done = program("{floatlab} " + words, **variables)
    assert (done.returncode, done.stderr) == (0, b"")
    done.stdout.decode(variables.get("PYTHONIOENCODING", "utf-8"))


def test_ascii_means_ascii(command):
    for words in ("show 0.1 inf nan --fp16 --interval", "show 0.1 --fp16 --directions", "formats", "formats e4m3"):
        ended = command(*words.split(), "--ascii")
        assert ended.status == 0
        assert ended.out.isascii()
        assert "?" not in ended.out


def test_a_picture_goes_to_its_file_beside_the_text(command, tmp_path):
    path = tmp_path / "picture.svg"
    ended = command("show", "0.1", "--fp16", "--svg", str(path))
    assert ended == command("show", "0.1", "--fp16")
    picture = path.read_text(encoding="utf-8")
    assert ET.fromstring(picture).tag.endswith("svg")
    assert picture == command("show", "0.1", "--fp16", "--svg", "-").out


def test_a_picture_of_several_values_is_one_picture(command):
    assert ET.fromstring(command("show", "0.1", "2.5", "--svg", "-").out).tag.endswith("svg")


def test_a_picture_beside_json_or_one_word(command, tmp_path):
    # Neither draws a page, but the requested file must be written.
    for settings in ("--json", "--quiet"):
        path = tmp_path / f"picture{settings}.svg"
        ended = command("show", "0.1", "--fp16", "--svg", str(path), settings)
        assert ended == command("show", "0.1", "--fp16", settings)
        assert ET.fromstring(path.read_text(encoding="utf-8")).tag.endswith("svg")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_picture_is_good_xml_in_every_encoding(program, encoding):
    # Without a declaration XML is UTF-8: a latin-1 × would break it.
    done = program("{floatlab} show 0.1 --fp16 --svg -", PYTHONIOENCODING=encoding)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.isascii()
    assert "×" in "".join(ET.fromstring(done.stdout.decode("utf-8")).itertext())


def check_datum(datum):
    assert list(datum)[: len(DATUM_KEYS)] == DATUM_KEYS
    assert set(datum) <= {*DATUM_KEYS, "integer_bit", "fields"}
    assert datum["code"] == datum["code"].lower()
    assert datum["code"].startswith("0x")


@pytest.mark.parametrize(
    "words",
    [
        "show 0.1 -inf nan(0x3) snan 1/3 1e999999999 0 --fp16 --x87",
        "show 0.1 --directions",
        "show 0.1 --interval --e4m3 --e2m1 -f e8m0",
        "show bits:0x38 --dialects",
        "show 1e5 -r SR --seed 0xffffffffffffffff --tf32",
        "convert 1.00048828126 --through fp32,fp16",
        "convert bits:0x7c01 nan --through fp16,e4m3",
    ],
)
def test_json_is_one_object_a_line_with_the_keys_that_are_promised(command, words):
    ended = command(*words.replace("--x87", "-f x87").split(), "--json")
    assert (ended.status, ended.err) == (0, "")
    assert ended.out.isascii()
    records = [json.loads(each) for each in ended.out.splitlines()]
    assert records
    for record in records:
        assert set(RESULT_KEYS) <= set(record)
        assert record["schema"] == 1
        assert set(record["error"]) >= {"exact", "ulps"}
        check_datum(record["result"])
        assert record["format"] == record["result"]["format"]
        assert record["flags"] == [flag for flag in FLAGS if flag in record["flags"]]


def test_json_of_formats_is_one_object_a_line(command):
    records = [json.loads(each) for each in command("formats", "--json").out.splitlines()]
    assert {"binary16", "e4m3fn", "e8m0fnu"} <= {record["format"] for record in records}
    table = json.loads(command("formats", "e2m1", "--json").out)["table"]
    assert len(table) == 16
    for datum in table:
        check_datum(datum)


def test_json_integers_beyond_binary64_are_strings(command):
    record = json.loads(command("show", "1/3", "--fp128", "--json").out)
    assert isinstance(record["result"]["trailing_significand"], str)
    seeded = json.loads(command("show", "1", "--fp16", "--json", "-r", "SR", "--seed", "0xffffffffffffffff").out)
    assert seeded["context"]["seed"] == "18446744073709551615"


def test_quiet_is_one_word_a_result(command):
    assert command("show", "0.1", "-inf", "--fp16", "--bf16", "--quiet").out == "0.1\n0.1\n-inf\n-inf\n"
    assert command("show", "0.1", "--fp16", "--bf16", "--quiet=code").out == "0x2e66\n0x3dcd\n"


def test_hints_are_words_and_do_not_mix_with_data(command):
    ended = command("show", "0x3c7c", "--fp16", "--quiet")
    assert ended.out == "15490\n"
    assert ended.err == "floatlab: 0x3c7c is the number 15484; for the code, type bits:0x3c7c\n"


def test_a_hexadecimal_number_too_long_for_a_code_gets_no_hint(command):
    # Python's int() refuses to write so many decimal digits.
    ended = command("show", "0x" + "f" * 5000, "--fp16", "--quiet")
    assert ended == (0, "inf\n", "")
