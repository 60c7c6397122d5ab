"""Commands that newcomers type: they work, or one line says which command does."""

import json
import sys

import numpy as np
import pytest

from floatlab.cli.parser import read_question
from floatlab.numbers import Context, Direction
from floatlab.numbers.rounding import parse_direction
from floatlab.reduce import parse_schedule
from floatlab.reduce import sum as add_up
from floatlab.reduce.explain.attribution import attribute
from floatlab.verbs.option import UsageError
from floatlab.verbs.registry import command_of

WORDS = {
    "up": "RTP", "upward": "RTP", "ceil": "RTP", "down": "RTN", "floor": "RTN", "zero": "RTZ", "toward-zero": "RTZ",
    "Toward Zero": "RTZ", "truncate": "RTZ", "nearest": "RNE", "even": "RNE", "half_even": "RNE", "odd": "RTO",
    "away-from-zero": "RAZ", "ties-to-away": "RNA", "stochastic": "SR",
}  # fmt: skip


@pytest.mark.parametrize(("word", "name"), WORDS.items())
def test_directions_have_everyday_names(command, word, name):
    assert parse_direction(word) is Direction[name]
    ended = command("show", "0.1", "-0.1", "--fp16", "--rounding", word, "--quiet=code")
    assert ended == command("show", "0.1", "-0.1", "--fp16", "--rounding", name, "--quiet=code")


def test_up_is_upwards_for_both_signs(command):
    # 0.1 lies between 0x2e66 and 0x2e67.
    assert command("0.1", "-0.1", "--fp16", "-r", "up", "--quiet=code").out.split() == ["0x2e67", "0xae66"]
    assert command("0.1", "-0.1", "--fp16", "-r", "zero", "--quiet=code").out.split() == ["0x2e66", "0xae66"]


class TestComparing:
    """`cmp` compares the values as read, and names the format."""

    def test_a_number_without_a_format_is_read_into_binary32(self, command):
        ended = command("cmp", "0.1", "0.1@fp16")
        assert ended.out.splitlines()[0].strip() == "0.1@binary32 > 0.1@binary16"
        assert "0x3dcccccd" in ended.out
        assert "0x2e66" in ended.out
        # NumPy agrees: its binary16 0.1 is below its binary32 one.
        assert np.float32("0.1") > np.float32(np.float16("0.1"))
        assert command("cmp", "0.1@fp16", "0.1", "--quiet").out == "less\n"
        assert command("cmp", "0.1@fp32", "0.1", "--quiet").out == "equal\n"
        assert command("cmp", "0.1", "bits:0x2e66@fp16", "--quiet").out == "greater\n"

    def test_what_the_other_format_cannot_hold_is_not_made_infinite(self, command):
        assert "overflow" not in command("cmp", "1e30", "inf@fp16").out
        assert command("cmp", "1e30", "inf@fp16", "--quiet").out == "less\n"

    def test_a_format_that_is_named_takes_what_has_none(self, command):
        assert command("cmp", "0.1", "0.1@fp16", "--fp16", "--quiet").out == "equal\n"
        assert command("cmp", "0.1", "0.1@fp16", "--fp64", "--quiet").out == "greater\n"


class TestConverting:
    """Formats may follow the value."""

    @pytest.mark.parametrize("words", ["fp16", "--to fp16", "to fp16"])
    def test_one_format(self, command, words):
        assert command("convert", "0.1", *words.split()) == command("convert", "0.1", "--through", "fp16")

    def test_several_formats_and_values(self, command):
        wanted = command("convert", "1.00048828126", "-2.5", "--through", "fp32,fp16")
        assert command("convert", "1.00048828126", "-2.5", "fp32", "fp16") == wanted
        assert command("convert", "1.00048828126", "-2.5", "fp32,fp16") == wanted

    def test_standard_input(self, feed):
        assert feed(b"0.1\n1e9\n", "convert", "-", "fp16", "--quiet=code").out == "0x2e66\n0x7c00\n"

    def test_the_command_of_the_question_runs(self):
        assert (
            command_of(read_question(["convert", "0.1", "fp32", "fp16"])) == "floatlab convert 0.1 --through fp32,fp16"
        )


class TestArraysOnStandardInput:
    """`-` is an array of `sum`, `dot` and `matmul`."""

    @pytest.mark.parametrize("data", [b"2048\n1\n3\n", b"2048 1 3", b"2048, 1, 3\n# a remark\n", b"2048\r\n1\r\n3\r\n"])
    def test_a_sum(self, feed, command, data):
        assert feed(data, "sum", "-", "--fp16") == command("sum", "2048,1,3", "--fp16")

    def test_products(self, feed):
        assert feed(b"1\n2\n", "dot", "-", "3,4", "--quiet").out == "11\n"
        assert feed(b"1\n2\n", "dot", "3,4", "-", "--quiet").out == "11\n"
        assert feed(b"1,2\n3,4\n", "matmul", "-", "1,2;3,4", "--fp16", "--quiet").out == "7,10\n15,22\n"

    def test_observed_results(self, feed, command):
        words = ["--fp16", "--observed", "2052", "--quiet"]
        assert feed(b"2048 1 3", "sum", "-", *words) == command("sum", "2048,1,3", *words)

    @pytest.mark.parametrize(
        ("data", "said"),
        [
            (b"1\nabc\n", "standard input line 2: 'abc' is not a number"),
            (b"", "standard input has no numbers"),
            (b"1 2\n3\n", "standard input line 2 has 1 number; earlier lines have 2"),
        ],
    )
    def test_what_is_wrong_is_said_of_standard_input(self, feed, data, said):
        ended = feed(data, "sum", "-")
        assert (ended.status, ended.out) == (2, "")
        assert said in ended.err
        assert "floatlab-" not in ended.err  # the file that it passes through

    def test_too_much_is_refused(self, feed, monkeypatch):
        monkeypatch.setattr("floatlab.cli.standard_input.MAX_INPUT", 10)
        ended = feed(b"1\n" * 6, "sum", "-")
        assert (ended.status, ended.out) == (2, "")
        assert "standard input has over 10 bytes" in ended.err

    def test_no_room_for_it_is_said(self, feed, monkeypatch, tmp_path):
        monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "nowhere"))
        ended = feed(b"1 2 3", "sum", "-")
        assert (ended.status, ended.out) == (2, "")
        assert "cannot be copied to a temporary file: No such file or directory" in ended.err

    def test_closed_input_is_said(self, command, monkeypatch):
        monkeypatch.setattr(sys, "stdin", None)
        assert "standard input is closed" in command("sum", "-").err

    def test_the_explorer_reads_none(self):
        with pytest.raises(UsageError, match="standard input"):
            read_question(["sum", "-"])


class TestObservedUnderRules:
    """`--observed` tries all candidates with the given rules."""

    # In binary16 the sum of the first two is subnormal: a machine that flushes gets 0 here, and 2^-14 at the end.
    TERMS = "0x1p-14,-0x1.8p-15,0x1p-14"

    @staticmethod
    def flushed(terms):
        total = np.float16(0)
        for term in terms:
            total = np.float16(total + np.float16(term))
            total = np.float16(0) if abs(total) < 2.0**-14 else total
        return float(total)

    def test_flushing_to_zero(self, command):
        found = self.flushed([2.0**-14, -1.5 * 2.0**-15, 2.0**-14])
        assert found == 2.0**-14
        words = ["sum", self.TERMS, "--fp16", "--observed", str(found)]
        ended = command(*words, "--ftz")
        assert ended.out.splitlines()[0].split(":")[1].startswith(" serial")
        assert "every candidate flushes tiny results to zero" in ended.out
        assert "none of" not in ended.out
        assert not command(*words, "--quiet").out.startswith("serial")

    def test_a_direction(self, command):
        words = ["sum", "1,0x1p-30,0x1p-30", "--fp32", "--observed", "1.00000024"]  # two steps up
        assert command(*words, "-r", "up", "--quiet").out.startswith("serial")
        assert command(*words, "--quiet").out.startswith("not explained")

    def test_rounded_products_are_flushed_and_fused_ones_are_not(self, command):
        # 2^-8 · 2^-8 is subnormal in binary16. A rounded product is flushed to 0; a fused one adds a quarter of 2^-14.
        words = ["dot", "1,0x1p-8", "0x1p-14,0x1p-8", "--fp16", "--ftz", "--quiet", "--observed"]
        assert command(*words, "6.1035e-05").out.startswith("serial,")
        assert command(*words, "7.6294e-05").out.startswith("serial with FMA")
        words.remove("--ftz")
        assert command(*words, "7.6294e-05").out.startswith("serial,")

    def test_the_record_tells_the_rules(self, command):
        record = json.loads(command("sum", "1,2,3", "--observed", "6", "--ftz", "--daz", "--json").out)
        assert record["context"]["flush_results"] is True
        assert record["context"]["flush_inputs"] is True

    def test_stochastic_rounding_explains_nothing(self, command):
        ended = command("sum", "1,2,3", "--observed", "6", "-r", "SR")
        assert ended.status == 2
        assert "draws other random bits" in ended.err

    @pytest.mark.parametrize("rule", [["--ftz"], ["-r", "RTZ"], ["--overflow", "saturate"]])
    @pytest.mark.parametrize("option", ["--ways", "--backends"])
    def test_real_products_take_no_rules(self, command, option, rule):
        ended = command("matmul", "1,2;3,4", "1,2;3,4", option, *rule)
        assert (ended.status, ended.out) == (2, "")
        assert f"{option} and --" in ended.err
        assert "exclude each other" in ended.err


@pytest.mark.parametrize("name", ["u32", "uint32", "ui32", "uint32_t", "U32"])
def test_integer_types_have_everyday_names(command, name):
    assert command("toint", "3e9", "--to", name) == command("toint", "3e9", "--int", "ui32")
    assert command("toint", "3e9", "--to", name, "--quiet").out == "3000000000\n"


SAID = [
    # operations by their other names, and between their operands
    ("0.1 + 0.2", "did you mean floatlab add A B"),
    ("3 * 4", "did you mean floatlab mul A B"),
    ("3 - 4", "to subtract, use sub A B"),
    ("multiply 2 3", "did you mean floatlab mul A B"),
    ("divide 1 3", "did you mean floatlab div A B"),
    ("mod 5 3", "did you mean floatlab rem A B"),
    ("floor 2.5", "floatlab rint VALUE -r down"),
    ("int 2.5", "floatlab toint VALUE --to i32"),
    ("decode 0x3c00 --fp16", "floatlab show bits:0x3c7c -f NAME"),
    ("bits 0x3c00 --fp16", "floatlab show bits:0x3c7c -f NAME"),
    ("round 0.1 --fp16", "floatlab rint VALUE"),
    ("info fp16", "did you mean floatlab formats"),
    ("version", "did you mean '--version'"),
    ("-v", "did you mean '--version'"),
    # formats in the wrong place, and other names of formats
    ("0.1 fp16", "write -f 'fp16'"),
    ("add 0.1 0.2 fp16", "'fp16' is a format, not a number: write -f fp16"),
    ("0.1 --half", "write -f half for this format"),
    ("0.1 --fp16,bf16", "write -f fp16,bf16 for these formats"),
    ("0.1 --fp8", "is a family of formats"),
    ("0.1 -f float", "name one of fp16 fp32 fp64 fp128"),
    ("0.1 -f int8", "toint VALUE --to int8 converts"),
    ("0.1 -f mxfp4", "floatlab block VALUE"),
    ("convert 0.1", "convert 0.1 fp16"),
    ("convert fp32 0.1 --through fp16", "write --through 'fp32'"),
    ("convert 0.1 fp16 --through fp32", "add 'fp16' there"),
    # options that would be ignored
    (
        "sum 1,2 --observed 3 --schedule pairwise",
        "--observed and --schedule exclude each other: --observed tries the usual candidates",
    ),
    ("dot 1,2 3,4 --observed 11 --fma", "--observed and --fma exclude each other"),
    # options by their other names
    ("0.1 --mode RTZ", "did you mean '--rounding'"),
    ("0.1 --round up", "did you mean '--rounding'"),
    ("sum 1,2 --order pairwise", "did you mean '--schedule'"),
    ("add 1 2 --explain", "did you mean '--why'"),
    ("convert 0.1 --from fp32", "did you mean '--through'"),
    ("toint 2.5 u8", "write --int u8"),
    ("toint 2.5 --u8", "write --int u8 for this type"),
    # numbers
    ("1,5", "use spaces to separate values, and a point in decimals: 1 5"),
]


@pytest.mark.parametrize(("words", "said"), SAID, ids=[words for words, _ in SAID])
def test_what_does_not_work_says_what_does(command, words, said):
    ended = command(*words.split())
    assert (ended.status, ended.out) == (2, "")
    assert said in ended.err
    assert ended.err.count("\n") == 1


def test_attribution_under_flushing_gives_the_bits_of_the_simulation():
    rng = np.random.default_rng(5)
    x = (rng.standard_normal(12) * 2.0**-13).astype(np.float16)
    for rules in (Context(flush_results=True), Context(flush_inputs=True), Context(rounding="RTZ")):
        observed = add_up(x, "pairwise", "fp16", context=rules).result
        found = attribute(x, None, observed, context=rules)
        assert parse_schedule("pairwise") in [each.schedule for each in found.fitting[0]]
        for each in found.explanations[0]:
            if each.schedule is not None and each.accumulator.name == "binary16":
                again = add_up(x, each.schedule, "fp16", context=rules).result
                assert (again == observed) == each.fits
