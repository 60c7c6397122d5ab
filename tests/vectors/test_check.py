"""Checking lines: lines that agree, mismatches with their explanation, and invalid lines."""

import json

import pytest

from floatlab import Context, FloatlabError
from floatlab.cli.main import main
from floatlab.errors import FileFormatError
from floatlab.vectors import Mismatch, check_lines, generate_lines, parse_function
from floatlab.vectors.functions import COMPARISONS, OPERATIONS, digits

X86 = Context(nan="x86")
ADD = parse_function("f16_add")
GOOD = "3C00 3C00 4000 00"


def checked(lines, function=ADD, context=X86, **how):
    return list(check_lines(lines, function, context, **how))


def test_lines_that_agree_are_none_and_empty_ones_are_skipped():
    assert checked([GOOD, "", "   \n", GOOD + "\n"]) == [None, None]


@pytest.mark.parametrize("line", [GOOD.lower(), GOOD + "\r\n", f"  {GOOD}  ", GOOD.replace(" ", "\t")])
def test_lines_as_other_systems_write_them(line):
    assert checked([line]) == [None]


def test_a_mismatch_says_where_and_what():
    none, found = checked([GOOD, "3C00 0001 3C01 00"])
    assert none is None
    assert isinstance(found, Mismatch)
    assert (found.number, found.line, found.operands) == (2, "3C00 0001 3C01 00", (0x3C00, 1))
    assert found.written(found.expected, found.expected_flags) == "3C01 00"
    assert found.written(found.computed, found.computed_flags) == "3C00 01"


def test_numbers_count_empty_lines_too():
    (found,) = checked(["", "\n", "3C00 3C00 4001 00"])
    assert found.number == 3


@pytest.mark.parametrize("line", ["3C00 3C00 4000 01", "3C00 3C00 4001 00", "3C00 3C00 C000 00"])
def test_bits_and_flags_both_count(line):
    assert checked([line])[0] is not None


def test_any_nan_is_for_results_that_are_nans_and_not_for_flags():
    nan, other = "7E01 3C00 7E01 00", "7E01 3C00 FFFF 00"
    assert checked([nan]) == [None]
    assert checked([other])[0] is not None
    assert checked([other], any_nan=True) == [None]
    assert checked(["7E01 3C00 FFFF 10"], any_nan=True)[0] is not None
    assert checked(["3C00 3C00 7E00 00"], any_nan=True)[0] is not None


def test_a_truth_value_is_no_nan():
    eq = parse_function("f16_eq")
    assert checked(["3C00 3C00 1 00"], eq, any_nan=True) == [None]
    assert checked(["3C00 3C00 0 00"], eq, any_nan=True)[0] is not None


@pytest.mark.parametrize(
    ("line", "culprit"),
    [
        ("zz", "f16_add takes 4 words per line (operands, result, flags), and this one has 1: 'zz'"),
        ("3C00 3C00 4000", "this one has 3"),
        (GOOD + " 00", "this one has 5"),
        ("# a comment", "this one has 3"),
        ("0x3C00 3C00 4000 00", "'0x3C00' is not the first operand (binary16): 4 hexadecimal digits without 0x"),
        ("3C00 0x3C 4000 00", "'0x3C' is not the second operand"),
        ("3C0 3C00 4000 00", "'3C0' is not the first operand (binary16): 4 hexadecimal digits"),
        ("3C00 03C00 4000 00", "'03C00' is not the second operand"),
        ("3C00 3C00 4OOO 00", "'4OOO' is not the result (binary16)"),
        ("3C00 3C00 4000 0", "'0' is not the flags: 2 hexadecimal digits"),
        ("3C00 3C00 4000 000", "'000' is not the flags"),
        ("3C00 3C00 4000 20", "'20' is too large for the flags: at most 1F"),
        ("3C00 3C00 4000 xx", "'xx' is not the flags"),
        ("3C_0 3C00 4000 00", "'3C_0'"),
        ("+3C0 3C00 4000 00", "'+3C0'"),
        ("-3C0 3C00 4000 00", "'-3C0'"),
        ("٣C00 3C00 4000 00", "'٣C00'"),
        ("3C00\x003C00 4000 00 00", r"'3C00\x003C00'"),
        ("3C00\x0c3C00 4000 00", "only spaces separate the words"),
        ("\x1b[2J 3C00 4000 00", r"'\x1b[2J'"),
        ("3C00 " * 5000, "(24,999 characters)"),
        ("F" * 9000, "(9,000 characters)"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_a_line_that_cannot_be_read_is_named_with_its_number(line, culprit):
    lines = check_lines([GOOD, line, GOOD], ADD, X86)
    assert next(lines) is None
    with pytest.raises(FileFormatError) as raised:
        next(lines)
    assert str(raised.value).startswith("line 2: ")
    assert culprit in str(raised.value)
    assert len(str(raised.value)) < 250


@pytest.mark.parametrize(
    ("name", "line", "culprit"),
    [
        ("tf32_sqrt", "80000 00000 00", "'80000' is too large for the operand (tf32)"),
        ("tf32_sqrt", "80000 00000 00", "at most 7FFFF"),
        ("f16_eq", "3C00 3C00 2 00", "'2' is too large for the result (truth value): at most 1"),
        ("e2m3fn_add", "40 00 00 00", "at most 3F"),
    ],
)
def test_codes_wider_than_their_format(name, line, culprit):
    with pytest.raises(FileFormatError) as raised:
        checked([line], parse_function(name))
    assert culprit in str(raised.value)


def test_a_context_that_refuses_a_line_names_it():
    with pytest.raises(FloatlabError, match=r"line 1: '7F 7F FF 00': e8m0fnu has no zero"):
        checked(["7F 7F FF 00"], parse_function("e8m0_sub"), Context(absent="error"))


# The command that explains a mismatch.

CONTEXTS = [
    X86,
    Context("RTP", tininess="before", nan="arm", overflow="saturate"),
    Context("SR", seed=9, nan="riscv", flush_inputs=True, flush_results=True),
    Context("RTO", absent="nan", overflow="propagate"),
    Context("SRA", seed=9, random_bits=3, negative="zero"),
    Context("SRC", random_bits=4, draw=5, negative="drop"),
]
FORMATS = ["f16", "x87", "e4m3", "e8m0", "tf32", "p3109_k8p4se", "e5m10fnuz", "ue5m3"]
CONVERSIONS = ["{}_to_f32", "{}_to_e8m0", "{}_to_i8", "{}_to_ui64", "i8_to_{}", "ui128_to_{}"]


def falsified(function, context, lines, step):
    """Return mismatches: lines with their flags spoilt."""
    chosen = list(generate_lines(function, context, 1, 5, lines))[::step]
    spoilt = [line[:-2] + ("00" if line.endswith("1F") else "1F") for line in chosen]
    return list(check_lines(spoilt, function, context))


@pytest.mark.one_in(4)
@pytest.mark.parametrize("format", FORMATS)
def test_every_command_runs_and_shows_what_was_computed(format, capsys):
    names = [f"{format}_{operation}" for operation in OPERATIONS] + [each.format(format) for each in CONVERSIONS]
    for name in names:
        for place, context in enumerate(CONTEXTS):
            function = parse_function(name, exact=bool(place % 2))
            for found in falsified(function, context, 100 + 17 * place, 60):
                words = found.command(context).split()[1:]
                assert main([*words, "--quiet=code"]) == 0, words
                answer = capsys.readouterr().out.strip()
                assert main([*words, "--json"]) == 0, words
                flags = json.loads(capsys.readouterr().out)["flags"]
                if function.operation in COMPARISONS:
                    holds = [relation.value for relation in COMPARISONS[function.operation][0]]
                    assert int(answer in holds) == found.computed, words
                else:
                    assert answer == f"0x{found.computed:0{digits(function.result)}x}", words
                assert flags == found.computed_flags.names, words


@pytest.mark.parametrize(
    ("name", "line", "context", "command"),
    [
        ("f16_add", "3C00 3C00 0000 00", X86, "add bits:0x3c00 bits:0x3c00 -f binary16 -r RNE --nan x86"),
        (
            "f16_mulAdd",
            "3C00 3C00 3C00 0000 00",
            Context("RTZ"),
            "fma bits:0x3c00 bits:0x3c00 bits:0x3c00 -f binary16 -r RTZ",
        ),
        ("f16_roundToInt", "4100 0000 00", Context(), "rint bits:0x4100 -f binary16 -r RNE"),
        ("f16_lt", "3C00 3C00 1 00", X86, "cmp bits:0x3c00 bits:0x3c00 -f binary16 --signaling"),
        ("f16_lt_quiet", "3C00 3C00 1 00", X86, "cmp bits:0x3c00 bits:0x3c00 -f binary16"),
        (
            "f16_to_i8",
            "3C00 00 00",
            Context(nan="arm"),
            "toint bits:0x3c00 -f binary16 --int i8 -r RNE --nan arm",
        ),
        ("i8_to_f16", "FF 0000 00", Context("RAZ"), "show -1 -f binary16 -r RAZ"),
        (
            "f32_to_f16",
            "3F800000 0000 00",
            Context(tininess="before", flush_results=True),
            "convert bits:0x3f800000 --through binary32,binary16 -r RNE --tininess before --ftz",
        ),
        ("f16_sqrt", "3C00 0000 00", Context("SR", seed=7), "sqrt bits:0x3c00 -f binary16 -r SR --seed 7"),
        ("f16_sqrt", "3C00 0000 00", Context("RTZ", draw=7, random_bits=3), "sqrt bits:0x3c00 -f binary16 -r RTZ"),
        (
            "ue5m3_sub",
            "78 80 11 00",
            Context("SRC", random_bits=3, draw=5, negative="zero"),
            "sub bits:0x78 bits:0x80 -f ue5m3 -r SRC --seed 0 --random-bits 3 --draw 5 --negative zero",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_commands_say_everything_that_matters_and_nothing_else(name, line, context, command):
    (found,) = checked([line], parse_function(name), context)
    assert found.command(context) == f"floatlab {command}"
