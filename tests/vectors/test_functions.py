"""Functions by TestFloat's names: their operands, their results, and invalid names."""

import pytest

from floatlab import Context, Flags, FloatlabError, decode, encode, parse_format
from floatlab.arith.integers import parse_integer
from floatlab.vectors import parse_function
from floatlab.vectors.functions import BITS_OF_FLAGS, FLAGS_OF_BITS, OPERATIONS, digits

# By hand: 1 + 1 = 2, 1 − 1 = 0, …, in codes of binary16.
RESULTS = [
    ("f16_add", (0x3C00, 0x3C00), 0x4000, []),
    ("f16_sub", (0x3C00, 0x3C00), 0x0000, []),
    ("f16_mul", (0x4000, 0x4200), 0x4600, []),
    ("f16_div", (0x3C00, 0x0000), 0x7C00, ["divide_by_zero"]),
    ("f16_rem", (0x4500, 0x4200), 0xBC00, []),
    ("f16_sqrt", (0x4400,), 0x4000, []),
    ("f16_mulAdd", (0x4000, 0x4200, 0x3C00), 0x4700, []),
    ("f16_roundToInt", (0x4100,), 0x4000, ["inexact"]),
    ("f16_eq", (0x0000, 0x8000), 1, []),
    ("f16_eq", (0x7E00, 0x7E00), 0, []),
    ("f16_eq_signaling", (0x7E00, 0x7E00), 0, ["invalid"]),
    ("f16_le", (0x7E00, 0x3C00), 0, ["invalid"]),
    ("f16_le", (0x3C00, 0x3C00), 1, []),
    ("f16_le_quiet", (0x7E00, 0x3C00), 0, []),
    ("f16_le_quiet", (0x7D00, 0x3C00), 0, ["invalid"]),
    ("f16_lt", (0x3C00, 0x3C00), 0, []),
    ("f16_lt", (0xBC00, 0x3C00), 1, []),
    ("f16_lt_quiet", (0x3C00, 0x7E00), 0, []),
    ("f32_to_f16", (0x3F8FC7AB,), 0x3C7E, ["inexact"]),
    ("f16_to_f32", (0x3C00,), 0x3F800000, []),
    ("f16_to_i8", (0xBC00,), 0xFF, []),
    ("f16_to_ui8", (0xBC00,), 0xFF, ["invalid"]),
    ("f16_to_i32", (0x4100,), 2, ["inexact"]),
    ("i8_to_f16", (0xFF,), 0xBC00, []),
    ("ui8_to_f16", (0xFF,), 0x5BF8, []),
    ("f32_to_e4m3", (0x43E00000,), 0x7E, []),
    ("p3109_k8p4se_add", (0x40, 0x40), 0x48, []),
    ("e5m10_add", (0x3C00, 0x3C00), 0x4000, []),
]


@pytest.mark.parametrize(("name", "operands", "result", "flags"), RESULTS)
def test_a_function_computes_what_its_name_says(name, operands, result, flags):
    code, raised = parse_function(name).run(operands, Context(nan="x86"))
    assert (code, raised.names) == (result, flags)


def test_case_and_aliases_do_not_matter():
    for name in ("F16_ADD", "fp16_add", "Half_Add", "binary16_add"):
        assert parse_function(name).run((0x3C00, 0x3C00), Context())[0] == 0x4000
    assert parse_function("F32_TO_I32").result == parse_integer("i32")
    assert parse_function("f16_MULADD").operation == "mulAdd"


def test_names_with_underscores_of_their_own():
    assert parse_function("fp8_e4m3_mulAdd").result is parse_format("e4m3")
    assert parse_function("p3109_k6p3sf_le_quiet").operands == (parse_format("p3109_k6p3sf"),) * 2
    assert parse_function("e4m3_ieee_to_p3109_k8p4se").result == parse_format("p3109_k8p4se")


def test_every_operation_has_operands_and_a_result():
    arity = {"mulAdd": 3, "sqrt": 1, "roundToInt": 1}
    for operation in OPERATIONS:
        function = parse_function(f"e2m1_{operation}")
        assert len(function.operands) == arity.get(operation, 2)
        assert (function.result is None) == (operation in OPERATIONS[7:-1])


def test_inexact_of_roundings_to_integers_is_raised_unless_told_otherwise():
    # TestFloat raises inexact only with -exact.
    for name in ("f16_roundToInt", "f16_to_i32"):
        assert parse_function(name).run((0x4100,), Context())[1] is Flags.INEXACT
        assert parse_function(name, exact=False).run((0x4100,), Context())[1] is Flags.NONE
        # A number that does not fit raises invalid in both cases.
    assert parse_function("f16_to_i8", exact=False).run((0x7BFF,), Context())[1] is Flags.INVALID


def test_the_context_reaches_every_operation():
    least = 0x0001
    daz, down = Context(flush_inputs=True), Context(rounding="RTN")
    # With subnormal operands read as zero, the least number is equal to zero: in comparisons too.
    assert parse_function("f16_eq").run((least, 0), Context())[0] == 0
    assert parse_function("f16_eq").run((least, 0), daz)[0] == 1
    assert parse_function("f16_add").run((least, least), daz) == (0, Flags.NONE)
    assert parse_function("f16_roundToInt").run((0x4100,), Context(rounding="RTP"))[0] == 0x4200
    assert parse_function("f16_to_i8").run((0xC100,), down)[0] == 0xFD
    assert parse_function("ui16_to_e4m3").run((449,), down)[0] == 0x7E


def test_flags_are_five_bits_in_testfloats_order():
    names = ["inexact", "underflow", "overflow", "divide_by_zero", "invalid"]
    assert [FLAGS_OF_BITS[1 << place].names for place in range(5)] == [[name] for name in names]
    assert [BITS_OF_FLAGS[flags] for flags in FLAGS_OF_BITS] == list(range(32))


@pytest.mark.parametrize(("name", "width", "signed"), [("i8", 8, True), ("ui128", 128, False), (" I64 ", 64, True)])
def test_integer_types(name, width, signed):
    kind = parse_integer(name)
    assert (kind.width, kind.signed, kind.name) == (width, signed, name.strip().lower())


def test_digits_are_those_of_the_full_width():
    widths = {"f16": 4, "tf32": 5, "x87": 20, "e2m1": 1, "e2m3fn": 2, "f128": 32}
    assert {name: digits(parse_format(name)) for name in widths} == widths
    assert (digits(None), digits(parse_integer("i32"))) == (1, 8)


@pytest.mark.parametrize(
    ("name", "culprit"),
    [
        ("", "unknown function ''"),
        ("f16", "unknown function 'f16'"),
        ("add", "did you mean 'f32_add'"),
        ("muladd", "did you mean 'f32_mulAdd'"),
        ("f16add", "did you mean 'f16_add'"),
        ("f16_ad", "did you mean 'f16_add'"),
        ("f16_fma", "did you mean 'f16_mulAdd'"),
        ("f16_mulAd", "did you mean 'f16_mulAdd'"),
        ("p3109_k8p4se_sqr", "did you mean 'p3109_k8p4se_sqrt'"),
        ("f17_add", "unknown format 'f17'"),
        ("_add", "unknown format ''"),
        ("f16__add", "unknown format 'f16_'"),
        ("f32_to_", "names its source and its target"),
        ("_to_f32", "names its source and its target"),
        ("f32_to_f17", "unknown format 'f17'"),
        ("i32_to_i64", "nothing to round"),
        ("i33_to_f32", "not 'i33'"),
        ("f32_to_u32", "not 'u32'"),
        ("f32_to_i0", "not 'i0'"),
        ("f32_to_f16_to_f32", "unknown format 'f16_to_f32'"),
        ("x" * 100_000, "(100,000 characters)"),
        ("f16_add\0", r"\x00"),
    ],
    ids=lambda text: ascii(text)[:30],
)
def test_names_that_mean_no_function(name, culprit):
    with pytest.raises(FloatlabError) as raised:
        parse_function(name)
    assert culprit in str(raised.value)
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize(
    ("name", "usual"),
    [("int32", "i32"), ("uint8", "ui8"), ("s16", "i16"), ("int64_t", "i64"), ("u128", "ui128"), (" UI32 ", "ui32")],
)
def test_integer_types_are_also_known_by_the_names_that_languages_give_them(name, usual):
    assert parse_integer(name) == parse_integer(usual)
    assert parse_integer(usual).name == usual


@pytest.mark.parametrize("name", ["32", "i33", "u", "int", "fp16", "i32i", "u i32", "us32"])
def test_other_words_are_no_integer_types(name):
    with pytest.raises(FloatlabError, match="an integer type must be i or ui followed by 8"):
        parse_integer(name)


def test_conversions_are_rounded_once():
    # Just above the middle of two binary16 numbers: through binary32 it would become a tie.
    above = encode("0x1.00200001p0", "f64")
    assert parse_function("f64_to_f16").run((above.code,), Context())[0] == 0x3C01
    assert float(decode(0x3C01, "f16")) == 1.0009765625
