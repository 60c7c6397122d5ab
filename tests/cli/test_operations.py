"""The arithmetic verbs as commands: wrong input, mixed formats, codes, streams, forms of output."""

import json
from xml.etree import ElementTree

import pytest

from floatlab.verbs.arithmetic.answer import ARITIES

OPERANDS = ["1.125", "0.12457275390625", "-1"]


def words(verb: str) -> list[str]:
    """Return a verb with as many operands as it takes."""
    return [verb, OPERANDS[0], "3"] if verb == "scaleb" else [verb, *OPERANDS[: ARITIES[verb]]]


WRONG = [
    # how many
    (["add"], "add needs a value"),
    (["add", "1"], "add takes two values, but got 1: '1'"),
    (["add", "1", "2", "3"], "add takes two values, but got 3: '1 2 3'"),
    (["add", "1", "+", "2"], "got 3: '1 + 2'"),
    (["sub", "1,2"], "sub takes two values, but got 1: '1,2'"),
    (["sqrt", "1", "2"], "sqrt takes one value, but got 2"),
    (["fma", "1", "2"], "fma takes three values, but got 2"),
    (["fma", *"1234"], "fma takes three values, but got 4"),
    (["fma", "--witness", "-f", "e2m0fn"], "the same result for all numbers of this format"),
    (["cmp", "1"], "cmp takes two values"),
    (["toint", "1", "2"], "toint takes one value"),
    (["rint"], "rint needs a value"),
    (["add", *["1"] * 5000], "got 5000: '1 1 1"),
    (["add", "\x1b[2J"], r"\x1b[2J"),
    # values
    (["add", "a", "1"], "'a' is not a number"),
    (["mul", "1", "1..5"], "'1..5'"),
    (["add", "", "1"], "an empty value"),
    (["add", "1", "fp16"], "'fp16' is a format, not a number"),
    (["add", "1", "show"], "the verb comes first"),
    (["add", "1@", "2"], "'1@': VALUE@FORMAT needs a format after the @"),
    (["add", "@fp16", "2"], "'@fp16': VALUE@FORMAT needs a value before the @"),
    (["add", "1@fp17", "2"], "did you mean 'fp16'"),
    (["add", "1@fp16@fp32", "2"], "'1@fp16'"),
    (["add", "nan(0x200)", "1", "--fp16"], "0x1ff"),
    (["add", "nan(0x200)@fp16", "1"], "0x1ff"),
    (["add", "x" * 100_000, "1"], "(100,000 characters)"),
    # codes
    (["add", "bits:0x3c00", "1"], "a code needs a format: use -f, or write bits:0x3c00@fp16"),
    (["add", "bits:0x" + "3" * 900, "1"], "(907 characters)"),
    (["add", "0x3c00", "1.5", "--bits", "--fp16"], "'1.5': a code"),
    (["add", "bits:0x13c00@fp16", "1"], "binary16 codes have 16 bits"),
    (["add", "bits:0x13c00", "1", "--fp16"], "binary16 codes have 16 bits"),
    (["sqrt", "0x3c00", "--bits"], "a code needs a format"),
    # formats
    (["add", "1", "2", "--fp17"], "did you mean '--fp16'"),
    (["add", "1", "2", "-fp16"], "did you mean --fp16"),
    (["add", "1", "2", "--fp16", "--fp32"], "one result, in one format, but -f names binary16, binary32"),
    (["div", "1", "2", "-f", "fp16,bf16"], "binary16, bfloat16"),
    (["add", "1@e19m236", "1@fp64"], "no promotion format holds e19m236, binary64: name the result's format with -f"),
    (["sub", "1", "2", "-f", "e8m0", "--absent", "error"], "e8m0fnu"),
    # options
    (["add", "1", "2", "--steps"], "--steps needs N"),
    (["add", "1", "2", "--steps", "0"], "from 1 to 1,000, not '0'"),
    (["add", "1", "2", "--steps", "-1"], "'-1'"),
    (["add", "1", "2", "--steps", "two"], "'two'"),
    (["add", "1", "2", "--steps", "1001"], "'1001'"),
    (["add", "1", "2", "--steps", "2", "--brief"], "--steps and --brief"),
    (["cmp", "1", "2", "--steps", "2"], "unknown option '--steps'"),
    (["cmp", "1", "2", "--brief"], "unknown option '--brief'"),
    (["add", "1", "2", "--signaling"], "unknown option '--signaling'"),
    (["add", "1", "2", "--int", "i32"], "unknown option '--int'"),
    (["sqrt", "2", "--notexact"], "unknown option '--notexact' of sqrt: it is an option of toint rint"),
    (["fma", "1", "2", "3", "--precision", "53"], "unknown option '--precision' of fma: it is an option of add sub"),
    (["sqrt", "2", "-f", "x87", "--precision", "abc"], "--precision takes 24, 53 or 64 bits"),
    (["sqrt", "2", "-f", "x87", "--precision", "32"], "--precision takes 24, 53 or 64 bits"),
    (["add", "1", "2", "-r", "upp"], "'upp'"),
    (["add", "1", "2", "--json", "--quiet"], "--json and --quiet"),
    (["add", "1", "2", "--svg", "/no/such/place.svg"], "'/no/such/place.svg'"),
    (["toint", "1", "--int"], "--int/--to needs TYPE"),
    (["toint", "1", "--int="], "not ''"),
    (["toint", "1", "--int", "i33"], "not 'i33'"),
    (["toint", "1", "--int", "32"], "did you mean 'i32' or 'ui32'"),
    (["toint", "1", "--to", "fp16"], "not 'fp16'"),
    (["toint", "1", "--int", "\x1b[2J"], r"\x1b[2J"),
    # verbs and streams
    (["ad", "1", "2"], "did you mean 'add'"),
    (["fms", "1", "2", "3"], "did you mean 'fma'"),
    (["add", "-", "1"], "- reads the values from standard input, so no other value may be given"),
    (["add", "-", "--svg", "x.svg"], "--svg draws one picture"),
]


@pytest.mark.parametrize(("line", "culprit"), WRONG, ids=lambda value: ascii(value)[:50])
def test_what_is_typed_wrong_is_named_in_one_line(command, line, culprit):
    ended = command(*line)
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("floatlab: ")
    assert ended.err.endswith("\n")
    assert ended.err[:-1].isprintable()
    assert len(ended.err) < 400
    assert culprit in ended.err


@pytest.mark.parametrize("verb", ARITIES)
@pytest.mark.parametrize("way", [[], ["--json"], ["--svg", "-"], ["--quiet"], ["--quiet=code"], ["--width", "40"]])
def test_every_verb_is_shown_in_every_way(command, verb, way):
    ended = command(*words(verb), "--fp16", *way)
    assert (ended.status, ended.err) == (0, "")
    if way == ["--json"]:
        (record,) = map(json.loads, ended.out.splitlines())
        assert record["schema"] == 1
        assert len(record["operands"]) == ARITIES[verb]
        assert isinstance(record["flags"], list)
    elif way == ["--svg", "-"]:
        ElementTree.fromstring(ended.out)
    elif "--quiet" in way[:1] or "--quiet=code" in way:
        assert len(ended.out.split()) == 1
    else:
        assert max(map(len, ended.out.splitlines())) <= (40 if way else 80)


@pytest.mark.parametrize("verb", [verb for verb in ARITIES if verb not in ("cmp", "toint")])
def test_steps_beyond_the_end_are_all_the_steps(command, verb):
    whole, beyond = command(*words(verb)), command(*words(verb), "--steps", "1000")
    assert whole == beyond
    first = command(*words(verb), "--steps", "1")
    assert first.status == 0
    assert len(first.out) < len(whole.out)
    brief = command(*words(verb), "--brief")
    assert brief.status == 0
    # One line per computation; a narrow page may wrap it.
    assert len(brief.out.splitlines()) <= 4


def test_steps_shorten_the_records_of_both_ways(command):
    (record,) = map(json.loads, command("fma", "0.1", "10", "-1", "--json", "--steps", "2").out.splitlines())
    assert (len(record["steps"]), len(record["separate"]["steps"])) == (2, 2)
    assert record["same"] is False
    (record,) = map(json.loads, command("fma", "1", "2", "3", "--json").out.splitlines())
    assert record["same"] is True
    assert record["separate"]["operation"] == "multiply_then_add"
    assert record["separate"]["result"] == record["result"]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        # The worked examples.
        ("add 1.125 0.12457275390625 --fp16", "0x3d00"),
        ("add 1.125 0.12457275390625 --fp32", "0x3f9ff200"),
        ("fma 1.0009765625 1.0009765625 -1.001953125 --fp16", "0x0010"),
        # Without -f: binary32, or a format that contains all operands.
        ("add 1 1", "0x40000000"),
        ("add 1.125@fp32 0.1246@fp16", "0x3f9ff200"),
        ("add 1@fp16 1@bf16", "0x40000000"),
        ("add 1@e5m2 1@e4m3", "0x4000"),
        ("add 1@fp16 1", "0x4000"),
        ("add 1@x87 1@fp64", "0x40000000000000000000000000000000"),
        # With -f: narrower than the operands, and rounded once; through binary32, it would be a tie.
        ("add 1@fp64 0x1.00002p-11@fp64 --fp16", "0x3c01"),
        ("add 1.125@fp32 0.1246@fp16 --e4m3", "0x3a"),
        # Codes.
        ("add bits:0x3c00@fp16 1", "0x4000"),
        ("add bits:0x3c00 bits:0x3c00 --fp16", "0x4000"),
        ("add 0x3c00 0_01111_0000000000 --bits --fp16", "0x4000"),
        ("add 0x3c00@fp16 0x3f80@bf16 --bits", "0x40000000"),
        # A leading minus is a value.
        ("add -inf 1 --fp16", "0xfc00"),
        ("sub -1 -1 --fp16", "0x0000"),
        ("sqrt -0 --fp16", "0x8000"),
        ("fma -.5 -0x1p1 -1/3 --fp16", "0x3956"),
        # The rules.
        ("sub 1 1 --fp16 -r RTN", "0x8000"),
        ("div 1 0 --e4m3", "0x7f"),
        ("add 448 32 --e4m3 --overflow saturate", "0x7e"),
        ("add nan(0x1) snan --fp16 --nan riscv", "0x7e00"),
        ("div 2^-14 2 --fp16 --ftz", "0x0000"),
        ("rint 2.5 --fp16 -r near_maxMag", "0x4200"),
        ("toint -1 --int ui8", "0xff"),
        ("toint -1 --int ui8 --nan arm", "0x00"),
        ("toint 2.5 --int i128", "0x00000000000000000000000000000002"),
    ],
)
def test_results(command, line, code):
    ended = command(*line.split(), "--quiet=code")
    assert (ended.status, ended.out.strip(), ended.err) == (0, code, "")


@pytest.mark.parametrize(
    ("line", "flags"),
    [
        ("cmp nan 1 --fp16", []),
        ("cmp nan 1 --fp16 --signaling", ["invalid"]),
        ("cmp snan 1 --fp16", ["invalid"]),
        ("rint 2.5 --fp16", ["inexact"]),
        ("rint 2.5 --fp16 --notexact", []),
        ("toint 2.5", ["inexact"]),
        ("toint 2.5 --notexact", []),
        ("toint 1e10 --notexact", ["invalid"]),
        ("div 1 0", ["divide_by_zero"]),
    ],
)
def test_flags(command, line, flags):
    (record,) = map(json.loads, command(*line.split(), "--json").out.splitlines())
    assert record["flags"] == flags


@pytest.mark.parametrize("verb", ["rint", "toint"])
def test_help_says_what_notexact_does(command, verb):
    (line,) = (line for line in command(verb, "--help").out.splitlines() if line.startswith("  --notexact"))
    assert line.split()[1:] == ["do", "not", "raise", "inexact"]


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("cmp 1 2", "less"),
        ("cmp 2 1", "greater"),
        ("cmp -0 0", "equal"),
        ("cmp nan nan", "unordered"),
        ("cmp 0.1@fp16 0.1@fp32", "less"),
        ("cmp 5e-324@fp64 0@fp64 --daz", "equal"),
        ("toint 1e40", "-2147483648"),
        ("toint 255.5 --int ui8 -r RTZ", "255"),
    ],
)
def test_words(command, line, word):
    assert command(*line.split(), "--quiet").out == f"{word}\n"


def test_what_was_typed_is_in_the_record(command):
    line = ["add", "0.1@fp16", "0.2", "--fp32", "--json"]
    (record,) = map(json.loads, command(*line).out.splitlines())
    assert [operand.get("literal") for operand in record["operands"]] == ["0.1", "0.2"]
    assert [operand["format"] for operand in record["operands"]] == ["binary16", "binary32"]
    assert [step["step"] for step in record["steps"]].count("promote") == 1


def test_a_line_of_standard_input_holds_the_operands(feed):
    ended = feed(b"1 2\n\n  0.5\t0.25  \r\n", "add", "-", "--fp16", "--quiet")
    assert ended == (0, "3\n0.75\n", "")
    ended = feed(b"1@fp16 bits:0x3c00@fp16 -inf\n", "fma", "-", "--quiet")
    assert ended == (0, "-inf\n", "")


def test_bad_lines_are_numbered_and_the_rest_goes_on(feed):
    lines = b"1 2\nx 1\n\n3\n1 2 3\n\x00\xff 1\n" + b"5 " * 20_000 + b"\n3 4\n"
    ended = feed(lines, "add", "-", "--fp16", "--quiet")
    assert (ended.status, ended.out) == (2, "3\n7\n")
    errors = ended.err.splitlines()
    assert [line.split(":")[1] for line in errors] == [" line 2", " line 4", " line 5", " line 6", " line 7"]
    assert all(line.isprintable() and len(line) < 400 for line in errors)


def test_a_picture_in_a_file(command, tmp_path):
    path = tmp_path / "fma.svg"
    ended = command("fma", "0.1", "10", "-1", "--svg", str(path))
    assert (ended.status, ended.err) == (0, "")
    assert "".join(ElementTree.parse(path).getroot().itertext()).count("separate")


def test_huge_and_tiny_operands_end_soon(command):
    for line in ("add 1e999999999 1", "rem 1e4900 3 --fp128", "add 1e-999999999 1 --fp128", "toint 1e999999 -f e19m2"):
        assert command(*line.split(), "--quiet").status == 0
    assert command("rem", "2^200000", "3", "-f", "e19m236", "--brief").status == 0
