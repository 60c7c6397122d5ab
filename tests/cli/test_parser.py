"""The parser: minus signs, options anywhere, two dashes, and its use of argparse's internals."""

import argparse
import re
import shlex
import sys

import pytest

from floatlab import __version__
from floatlab.arrays.lanes import compiled
from floatlab.cli.parser import Parser
from floatlab.formats.catalog import SHORTHANDS, TABLE_SHORTHANDS
from floatlab.verbs import registry
from floatlab.verbs.option import WIDTHS
from floatlab.verbs.registry import asks, verb_named
from tests.auditing.making import write_examples

VERBS = [*filter(asks, registry.VERBS)]


def parser_of(verb):
    return Parser(verb_named(verb))


def parse(*words):
    return parser_of("show").parse(words)


def names(options):
    return [format.name for format in options.formats or ()]


MINUS = """
-1 -1.5 -.5 -0x1p3 -0X1P3 -0b1 -inf -INF -Infinity -nan -NaN -nan(0x1) -snan -snan(0x1) -qnan -1/3 -1_000
-2^-24 -3*2^-24 -1e-5 -0 -1.5@fp16 -inf@e5m2
"""


@pytest.mark.parametrize("value", MINUS.split())
def test_a_leading_minus_is_a_value_wherever_it_stands(command, value):
    for words in ([value], [value, "--fp16"], ["--fp16", value], ["1.5", "--fp16", value], ["--fp16", "--", value]):
        assert parse(*words).values[-1] == value
        ended = command("show", "--quiet", *words)
        assert (ended.status, ended.err) == (0, "")
    assert command(value, "--quiet").status == 0  # without a verb, too


def test_a_minus_after_an_option_that_wants_a_value_is_its_value():
    assert parse("1.5", "--seed", "-1").seed == "-1"
    assert parse("1.5", "--width", "-inf").width == "-inf"


def test_nan_the_option_and_nan_the_value():
    options = parse("-nan", "--nan", "x86", "nan")
    assert (options.values, options.nan) == (["-nan", "nan"], "x86")


def test_options_stand_before_between_and_after_values():
    options = parse("--fp16", "1.5", "-f", "e4m3", "-2.5", "--json", "3.5", "-rRTZ", "--bf16")
    assert options.values == ["1.5", "-2.5", "3.5"]
    assert names(options) == ["binary16", "e4m3fn", "bfloat16"]
    assert (options.json, options.rounding) == (True, "RTZ")


def test_everything_after_two_dashes_is_a_value():
    options = parse("1.5", "--fp16", "--", "-2.5", "--fp32", "--", "-x")
    assert options.values == ["1.5", "-2.5", "--fp32", "--", "-x"]
    assert names(options) == ["binary16"]


def test_two_dashes_are_not_an_options_value():
    with pytest.raises(Exception, match="--svg needs FILE"):
        parse("1.5", "--svg", "--", "picture.svg")


def test_two_dashes_before_a_verb_make_it_a_value(command):
    assert "the verb comes first" in command("--", "show").err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["-f", "fp16,bf16", "--e4m3"], ["binary16", "bfloat16", "e4m3fn"]),
        (["-ffp16"], ["binary16"]),
        (["-f=fp16"], ["binary16"]),
        (["--format=FP8-E4M3"], ["e4m3fn"]),
        (["-fe4m3"], ["e4m3fn"]),
        (["--fp16", "-f", "half", "--fp16"], ["binary16"]),
        ([], []),
    ],
)
def test_formats_are_collected_in_the_order_typed_once_each(words, expected):
    assert names(parse("1.5", *words)) == expected


@pytest.mark.parametrize("shorthand", [*SHORTHANDS, *TABLE_SHORTHANDS])
def test_a_shorthand_with_one_dash_too_few_is_noticed(command, shorthand):
    # -fp16 would be -f p16, and -e4m3 an unknown option.
    ended = command("show", "1.5", f"-{shorthand}")
    assert ended.status == 2
    assert f"did you mean --{shorthand}?" in ended.err


def test_options_are_never_abbreviated(command):
    options = parser_of("show")._option_string_actions
    for option in options:
        if option.startswith("--") and option[:-1] not in options:
            assert "unknown option" in command("show", "1.5", option[:-1], "1").err


@pytest.mark.parametrize(
    ("word", "quiet"), [("--quiet", "value"), ("--quiet=value", "value"), ("--quiet=code", "code"), ("--ascii", None)]
)
def test_quiet_takes_its_choice_with_an_equals_sign(word, quiet):
    # "--quiet 1.5" must leave 1.5 a value.
    options = parse(word, "1.5")
    assert (options.quiet, options.values) == (quiet, ["1.5"])


def test_the_last_of_options_that_hold_one_value_wins():
    options = parse("1.5", "--width", "40", "--width", "60", "-r", "RTZ", "-r", "RNE", "--quiet", "--quiet=code")
    assert (options.width, options.rounding, options.quiet) == ("60", "RNE", "code")


def test_colour_is_spelled_both_ways():
    assert parse("1", "--colour", "never").color == parse("1", "--color", "never").color == "never"


@pytest.mark.parametrize("verb", VERBS)
def test_options_without_their_value_say_what_they_want(command, verb):
    for option, action in parser_of(verb)._option_string_actions.items():
        if action.nargs is None:
            ended = command(verb, "1.5", option)
            assert ended.status == 2
            assert f"{option.split('/')[0]}" in ended.err
            assert f"needs {action.metavar}: " in ended.err


@pytest.mark.parametrize("verb", VERBS)
def test_no_short_option_can_be_taken_for_a_value(verb):
    # -i, -n, -s and digits begin -inf, -nan, -snan and numbers.
    shorts = [o for o in parser_of(verb)._option_string_actions if re.fullmatch(r"-[^-]", o)]
    assert not [o for o in shorts if o[1] in "insq0123456789."]


def test_what_is_taken_from_the_inside_of_argparse_is_still_there():
    """argparse does not document these names, so this test must pass with every supported version of Python."""
    plain = argparse.ArgumentParser()
    assert isinstance(plain._negative_number_matcher, re.Pattern)
    assert isinstance(plain._option_string_actions, dict)
    assert plain._has_negative_number_optionals == []
    positional = plain.add_argument("values", nargs="*")
    assert positional in plain._actions
    assert not positional.option_strings
    # argparse calls the matcher's `match` for a word before it treats the word as an option.
    plain._negative_number_matcher = re.compile("-xyz")
    assert plain.parse_intermixed_args(["-xyz"]).values == ["-xyz"]
    plain.add_argument("-f", "--format")
    assert plain._option_string_actions["--format"].nargs is None
    plain.add_argument("--json", action="store_true")
    assert plain._option_string_actions["--json"].nargs == 0
    # Errors are raised as exceptions that have the option's name as an attribute.
    quiet = argparse.ArgumentParser(exit_on_error=False)
    quiet.add_argument("-f", "--format")
    with pytest.raises(argparse.ArgumentError) as caught:
        quiet.parse_known_intermixed_args(["-f"])
    assert caught.value.argument_name == "-f/--format"


@pytest.mark.parametrize("verb", VERBS)
def test_no_option_looks_like_a_negative_number(verb):
    # Such an option would make argparse treat every negative value as an option.
    assert parser_of(verb)._has_negative_number_optionals == []


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_examples_that_run(command, verb, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_examples(tmp_path)  # files that examples name
    help = command(verb, "--help")
    assert (help.status, help.err) == (0, "")
    examples = [
        shlex.split(line)[1:]
        for line in help.out.replace("\\\n", "").splitlines()
        if line.startswith(f"  floatlab {verb}")
    ]
    assert len(examples) >= 2
    for example in examples:
        ended = command(*example)
        assert (ended.status, ended.err) == (0, "")
        assert ended.out


@pytest.mark.parametrize("verb", VERBS)
def test_help_fits_a_terminal_and_says_it_in_every_way(command, verb):
    out = command(verb, "--help").out
    assert out == command(verb, "-h").out == command("help", verb).out == command("--help", verb).out
    assert max(map(len, out.splitlines())) <= 80
    assert "usage: floatlab" in out


def test_the_overview_names_every_verb_and_its_examples_run(command):
    out = command("--help").out
    assert out == command().out == command("-h").out == command("help").out
    for verb in VERBS:
        assert re.search(rf"^  {verb} ", out, re.MULTILINE)
    examples = [shlex.split(line)[1:] for line in out.splitlines() if line.startswith("  floatlab ")]
    assert len(examples) >= 2
    assert all(command(*example).status == 0 for example in examples)


def test_the_version_is_one_line_that_begins_with_it_and_names_the_lane(command, monkeypatch):
    assert command("--version") == command("-V")
    said = re.compile(r"floatlab (\d+\.\d+\.\d+) \(compiled lane: (yes|no)\)\n")
    found = said.fullmatch(command("--version").out)
    assert found
    assert found[1] == __version__
    assert (found[2] == "yes") == compiled.is_built()
    monkeypatch.setitem(sys.modules, "floatlab._kernels", None)  # as on a machine without a compiler
    assert said.fullmatch(command("--version").out)[2] == "no"


def test_without_a_verb_show_is_meant(command):
    assert command("1.5", "--fp16") == command("--fp16", "1.5") == command("show", "1.5", "--fp16")
    assert command("--fp16", "--help").out == command("show", "--help").out


def test_widths_are_bounded(command):
    for width in (WIDTHS[0], WIDTHS[-1]):
        assert command("show", "1.5", "--width", str(width)).status == 0
    for width in (WIDTHS[0] - 1, WIDTHS[-1] + 1):
        assert command("show", "1.5", "--width", str(width)).status == 2


@pytest.mark.parametrize("verb", registry.VERBS)
def test_the_parser_has_every_option_of_the_table_and_no_other(verb):
    table = {flag for option in verb_named(verb).options for flag in option.spellings}
    shorthands = {f"--{name}" for name in (*SHORTHANDS, *TABLE_SHORTHANDS)} if "--format" in table else set()
    assert set(parser_of(verb)._option_string_actions) == {"-h", "--help"} | table | shorthands
