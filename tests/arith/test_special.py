"""NaNs, infinities, zeros and flags, by the clauses of IEEE 754-2019; mixed formats; contrast; integers."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, Format, FormatError, UnsupportedError, convert, decode, encode, parse_format
from floatlab.arith import (
    add,
    common_format,
    compare,
    contrast,
    divide,
    equal,
    fma,
    from_integer,
    holds,
    less,
    less_equal,
    multiply,
    multiply_then_add,
    remainder,
    round_to_integral,
    sqrt,
    subtract,
    to_integer,
)
from floatlab.numbers.derivation import Align, Combine, Divide, Encode, Promote, Root, Round, Rule, Special
from tests.arith import truth
from tests.oracle import Rules


def rule_of(derivation) -> Rule:
    return next(step.rule for step in derivation.steps if isinstance(step, Special))


# --- the worked examples ----------------------------------------------------------------------------------


def test_the_aligned_addition_of_the_article():
    d = add("1.125", "0.12457275390625", "fp16")
    align = next(step for step in d.steps if isinstance(step, Align))
    assert (d.result.code, d.error_ulps, align.shift, align.moved) == (0x3D00, Fraction(7, 16), 4, 1)
    rounded = d.rounded
    assert (rounded.guard, rounded.round, rounded.sticky) == (True, False, True)
    assert add("1.125", "0.12457275390625", "fp32").result.exact == Fraction("1.24957275390625")


def test_fused_and_separate_part_at_the_products_rounding():
    x, y = "1.0009765625", "-1.001953125"
    both = contrast(fma(x, x, y, "fp16"), multiply_then_add(x, x, y, "fp16"))
    assert both.fused.result.exact == Fraction(1, 2**20)
    assert both.separate.result == decode(0, "fp16")
    assert not both.same
    assert both.product == decode(0x3C02, "fp16")
    assert both.product_rounding.tail.value == "below half"


def test_the_papers_fma_keeps_the_residual():
    a, b = decode(0x3F800001, "fp32"), encode("-1.0000002384185791015625", "fp32")
    assert fma(a, a, b).result.code == 0x28800000
    assert multiply_then_add(a, a, b).result.code == 0


FORUM = (
    ("1.907607", "-.7862027", "1.147311", ".9604002"),
    ("-.9355000", "-.6915108", "1.724470", "-.7097529"),
)


def test_the_four_term_dot_product_in_each_order():
    a, b = ([encode(text, "fp32") for text in side] for side in FORUM)
    zero = encode("0", "fp32")
    products = [multiply(x, y).result for x, y in zip(a, b, strict=True)]
    serial, chain = products[0], fma(a[0], b[0], zero).result
    for i in range(1, 4):
        serial = add(serial, products[i]).result
        chain = fma(a[i], b[i], chain).result
    pairs = add(add(products[0], products[1]).result, add(products[2], products[3]).result).result
    leaves = add(fma(a[1], b[1], products[0]).result, fma(a[3], b[3], products[2]).result).result
    back = chain_back = None
    for i in (3, 2, 1, 0):
        back = products[i] if back is None else add(back, products[i]).result
        chain_back = fma(a[i], b[i], zero if chain_back is None else chain_back).result
    codes = [serial, chain, pairs, leaves, back, chain_back]
    assert [hex(d.code) for d in codes] == [
        "0x3d6533f0", "0x3d6533f6", "0x3d6533e0", "0x3d653400", "0x3d6533e0", "0x3d65340c",
    ]  # fmt: skip


# --- special values ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "operands", "rule", "flags", "result"),
    [
        (add, ("inf", "-inf"), Rule.INFINITY_MINUS_INFINITY, ["invalid"], "nan"),
        (subtract, ("inf", "inf"), Rule.INFINITY_MINUS_INFINITY, ["invalid"], "nan"),
        (add, ("inf", "1"), Rule.INFINITE_RESULT, [], "inf"),
        (subtract, ("1", "inf"), Rule.INFINITE_RESULT, [], "-inf"),
        (multiply, ("0", "-inf"), Rule.ZERO_TIMES_INFINITY, ["invalid"], "nan"),
        (multiply, ("-2", "inf"), Rule.INFINITE_RESULT, [], "-inf"),
        (divide, ("0", "-0"), Rule.ZERO_OVER_ZERO, ["invalid"], "nan"),
        (divide, ("inf", "inf"), Rule.INFINITY_OVER_INFINITY, ["invalid"], "nan"),
        (divide, ("-1", "0"), Rule.DIVISION_BY_ZERO, ["divide_by_zero"], "-inf"),
        (divide, ("1", "-inf"), Rule.OVER_INFINITY, [], "-0"),
        (remainder, ("inf", "1"), Rule.REMAINDER_INVALID, ["invalid"], "nan"),
        (remainder, ("1", "0"), Rule.REMAINDER_INVALID, ["invalid"], "nan"),
        (remainder, ("1.5", "inf"), Rule.REMAINDER_BY_INFINITY, [], "1.5"),
        (sqrt, ("-1",), Rule.NEGATIVE_ROOT, ["invalid"], "nan"),
        (sqrt, ("-inf",), Rule.NEGATIVE_ROOT, ["invalid"], "nan"),
        (sqrt, ("-0",), Rule.ZERO_ROOT, [], "-0"),
        (sqrt, ("inf",), Rule.INFINITE_RESULT, [], "inf"),
        (fma, ("0", "inf", "1"), Rule.ZERO_TIMES_INFINITY, ["invalid"], "nan"),
        (fma, ("inf", "1", "-inf"), Rule.INFINITY_MINUS_INFINITY, ["invalid"], "nan"),
        (fma, ("1", "1", "-inf"), Rule.INFINITE_RESULT, [], "-inf"),
        (add, ("nan", "snan"), Rule.SIGNALING_OPERAND, ["invalid"], "nan"),
        (add, ("nan(0x3)", "nan(0x5)"), Rule.NAN_OPERAND, [], "nan(0x3)"),
        (add, ("1", "-1"), Rule.ZERO_SUM, [], "0"),
    ],
)
def test_special_operands_follow_their_clause(compute, operands, rule, flags, result):
    d = compute(*operands, "fp16")
    assert (rule_of(d), d.flags.names, d.result) == (rule, flags, encode(result, "fp16"))


def test_an_exact_zero_sum_is_negative_toward_minus_infinity_only():
    for direction in ("RNE", "RNA", "RTZ", "RTP", "RTO", "RAZ", "SR"):
        assert add("1", "-1", "fp16", Context(rounding=direction)).result.code == 0
    assert add("1", "-1", "fp16", Context(rounding="RTN")).result.code == 0x8000
    assert add("-0", "-0", "fp16").result.code == 0x8000
    assert fma("-1", "0", "-0", "fp16").result.code == 0x8000
    assert fma("-1", "0", "0", "fp16").result.code == 0


def test_nan_rules_choose_the_nan():
    quiet, loud = encode("nan(0x3)", "fp16"), encode("-snan(0x5)", "fp16")
    results = {rule: add(quiet, loud, context=Context(nan=rule)).result for rule in ("first", "x86", "arm", "riscv")}
    assert results["first"] == results["x86"] == quiet
    assert results["arm"] == encode("-nan(0x5)", "fp16")
    assert results["riscv"] == encode("nan", "fp16")
    assert multiply("0", "inf", "fp16", Context(nan="x86")).result == encode("-nan", "fp16")


# Intel SDM volume 1, table 4-7, as hardware and TestFloat's extF80 lines have it: operand, operand, result.
X87_CHOICES = [
    ("-snan(0x1)", "nan(0x3ffffffffffffffe)", "nan(0x3ffffffffffffffe)"),
    ("snan(0x3fffffffffffffff)", "-nan(0x1)", "-nan(0x1)"),  # the quiet one, even if it is smaller
    ("-snan(0x1)", "nan(0x1)", "nan(0x1)"),
    ("nan(0x3)", "-nan(0x5)", "-nan(0x5)"),
    ("-snan(0x3)", "snan(0x5)", "nan(0x5)"),
    ("-nan(0x3)", "nan(0x3)", "nan(0x3)"),  # equal significands: the positive one
    ("-snan(0x3)", "snan(0x3)", "nan(0x3)"),
    ("-nan", "1", "-nan"),
]


@pytest.mark.parametrize(("a", "b", "result"), X87_CHOICES)
@pytest.mark.parametrize("compute", [add, subtract, multiply, divide, remainder])
def test_x87_keeps_the_larger_significand(compute, a, b, result):
    context = Context(nan="x86")
    for operands in ((a, b), (b, a)):
        assert compute(*operands, "x87", context).result == encode(result, "x87")
    narrow = compute(encode(a, "x87"), encode(b, "x87"), "fp64", context).result
    assert narrow.sign_bit == encode(result, "x87").sign_bit


def test_x87_chooses_among_three_pair_by_pair_and_among_formats_by_the_leading_digits():
    context = Context(nan="x86")
    assert fma("-nan(0x3)", "snan(0x9)", "nan(0x5)", "x87", context).result == encode("nan(0x5)", "x87")
    assert fma("snan(0x3)", "-snan(0x9)", "nan(0x5)", "x87", context).result == encode("-nan(0x9)", "x87")
    assert fma("inf", "0", "nan(0x5)", "x87", context).result == encode("nan(0x5)", "x87")
    wide, narrow = encode("nan(0x1)", "x87"), encode("-nan(0x1)", "fp32")  # 2^-62 and 2^-22 times the leading digit
    assert add(wide, narrow, "x87", context).result == encode("-nan(0x10000000000)", "x87")
    assert fma(encode("inf", "x87"), "0", encode("nan", "x87"), "e2m1", context).flags.names == ["invalid"]


def test_an_unsupported_x87_code_converts_to_the_default_nan_of_the_rule():
    unnormal = decode(0x3FFF4000000000000000, "x87")
    assert convert(unnormal, "fp32", Context(nan="x86")).result.code == 0xFFC00000
    assert convert(unnormal, "fp32").result.code == 0x7FC00000
    assert convert(unnormal, "e4m3", Context(nan="x86")).result.code == 0x7F


def test_fma_of_infinity_zero_and_a_quiet_nan_is_the_contexts_choice():
    operands = ("inf", "0", "nan(0x3)", "fp16")
    assert fma(*operands).flags.names == ["invalid"]
    assert fma(*operands).result == encode("nan(0x3)", "fp16")
    silent = fma(*operands, Context(fma_invalid=False))
    assert (silent.flags.names, silent.result) == ([], encode("nan(0x3)", "fp16"))
    assert fma(*operands, Context(nan="x86")).result == encode("-nan", "fp16")


OPERATIONS = (
    (add, 2), (subtract, 2), (multiply, 2), (divide, 2), (remainder, 2), (sqrt, 1), (round_to_integral, 1), (fma, 3),
)  # fmt: skip
TELLING = ("1", "0", "inf", "-inf", "nan(0x3)", "-nan", "snan(0x5)")


@pytest.mark.parametrize("rule", ["first", "x86", "arm", "riscv"])
@pytest.mark.parametrize(("compute", "arity"), OPERATIONS, ids=lambda each: getattr(each, "__name__", ""))
def test_every_nan_rule_names_what_the_operands_are(compute, arity, rule):
    data = [*(encode(text, "x87") for text in TELLING), decode(0x3FFF4000000000000000, "x87")]
    for operands in product(data, repeat=arity):
        for fma_invalid in (True, False):
            done = compute(*operands, context=Context(nan=rule, fma_invalid=fma_invalid))
            special = [step for step in done.steps if isinstance(step, Special)]
            named = {step.rule for step in special}
            nan, loud = any(each.is_nan for each in operands), any(each.is_signaling for each in operands)
            unsupported = any(each.number_class.value == "unsupported" for each in operands)
            assert (Rule.UNSUPPORTED_OPERAND in named) == unsupported
            assert (Rule.SIGNALING_OPERAND in named) == (loud and not unsupported)
            assert (Rule.NAN_OPERAND in named) == (nan and not loud and not unsupported)
            assert ("invalid" in done.flags.names) == any("invalid" in step.flags.names for step in special)
            assert all("invalid" in step.flags.names for step in special if step.rule is Rule.SIGNALING_OPERAND)
            assert not any(step.flags for step in special if step.rule is Rule.NAN_OPERAND)


@pytest.mark.parametrize("rule", ["first", "x86", "arm", "riscv"])
def test_a_nan_that_the_format_has_no_code_for_is_invalid_by_every_rule(rule):
    done = add(encode("nan", "fp16"), encode("1", "fp16"), "e2m1", Context(nan=rule))
    assert (done.result, done.flags.names) == (encode("6", "e2m1"), ["invalid"])


def test_formats_without_infinity_divide_by_zero_to_their_nan_or_largest():
    assert divide("1", "0", "e4m3").result.is_nan
    assert divide("-1", "0", "e2m1").result == encode("-6", "e2m1")
    assert divide("0", "0", "e2m1").flags.names == ["invalid"]


def test_an_unsupported_x87_code_is_invalid():
    unnormal = decode(0x3FFF4000000000000000, "x87")
    d = add(unnormal, encode("1", "x87"))
    assert (rule_of(d), d.flags.names, d.result.is_nan) == (Rule.UNSUPPORTED_OPERAND, ["invalid"], True)


def test_subnormal_operands_are_read_as_zero_where_inputs_are_flushed():
    d = add("6e-8", "1e-7", "fp16", Context(flush_inputs=True))
    assert d.result.code == 0
    assert rule_of(d) is Rule.FLUSHED_INPUT


# --- mixed formats ----------------------------------------------------------------------------------------


def test_operands_of_two_formats_meet_in_the_first_that_holds_both():
    d = add(encode("1.125", "fp32"), encode("0.1246", "fp16"))
    promoted = [step for step in d.steps if isinstance(step, Promote)]
    assert d.result.format.name == "binary32"
    assert [step.promoted.format.name for step in promoted] == ["binary32"]
    assert promoted[0].promoted.exact == promoted[0].datum.exact


@pytest.mark.parametrize(
    ("names", "common"),
    [
        (("fp16", "bf16"), "binary32"),
        (("e4m3", "e5m2"), "binary16"),
        (("e4m3", "bf16"), "bfloat16"),
        (("fp32", "fp64"), "binary64"),
        (("x87", "fp64"), "binary128"),
        (("e8m0", "fp16"), "binary32"),
    ],
)
def test_promotion_finds_the_narrowest_of_the_list(names, common):
    assert common_format([parse_format(name) for name in names]).name == common


def test_no_promotion_format_is_one_line_of_error():
    with pytest.raises(FormatError, match="no promotion format holds e19m236, binary16"):
        common_format([parse_format("e19m236"), parse_format("fp16")])


def test_a_narrower_result_is_rounded_once_from_the_wide_operands():
    # 1 + 2^-11 + 2^-30 is just above a tie of binary16: rounded to binary32 first, it would become the tie
    tiny = encode("2^-30", "fp32")
    assert add(encode("0x1.002p0", "fp32"), tiny, "fp16").result.code == 0x3C01


def test_holds_is_about_every_value():
    assert holds(parse_format("fp32"), parse_format("tf32"))
    assert not holds(parse_format("fp16"), parse_format("e6m2"))
    assert not holds(parse_format("e4m3fnuz"), parse_format("e2m1"))  # no −0


HANDMADE = [
    Format("", p, 3, bias=bias, subnormals=subnormals, infinities=infinities, signed=signed)
    for p in (1, 2, 3)
    for bias in (2, 3, 4, 6)
    for subnormals in (True, False)
    for infinities, signed in ((True, True), (False, True), (True, False))
] + [Format("", 1, 3, bias=bias, zero=False, signed=False) for bias in (2, 3, 6)]


def test_holds_is_about_every_value_of_handmade_formats_too():
    for narrow in HANDMADE:
        data = [datum for datum in (decode(code, narrow) for code in range(1 << narrow.width)) if datum.is_canonical]
        for wide in HANDMADE:
            there = [convert(datum, wide) for datum in data]
            kept = all(
                each.result.exact == datum.exact and each.result.sign_bit == datum.sign_bit
                if datum.is_finite and each.result.is_finite
                else each.result.number_class == datum.number_class
                for datum, each in zip(data, there, strict=True)
                if not datum.is_signaling
            )
            assert holds(wide, narrow) == kept, (narrow, wide)


# --- comparisons ------------------------------------------------------------------------------------------


def test_a_nan_compares_with_nothing():
    for predicate in (equal, less, less_equal):
        assert not predicate("nan", "1", format="fp16")
        assert predicate("nan", "1", format="fp16").flags.names == []
        assert predicate("nan", "1", signaling=True, format="fp16").flags.names == ["invalid"]
        assert predicate("snan", "1", format="fp16").flags.names == ["invalid"]


@given(st.integers(0, 0xFFFF), st.integers(0, 0xFFFF))
def test_comparisons_agree_with_the_values(a, b):
    x, y = decode(a, "fp16"), decode(b, "fp16")
    if x.is_nan or y.is_nan:
        assert compare(x, y).relation.value == "unordered"
    else:
        assert less(x, y).holds == (float(x) < float(y))
        assert equal(x, y).holds == (float(x) == float(y))
        assert less_equal(x, y).holds == (float(x) <= float(y))


def test_values_of_two_formats_compare_exactly():
    assert compare(encode("0.1", "fp16"), encode("0.1", "fp32")).relation.value == "less"


# --- integers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "rule", "signed", "want"),
    [
        ("1e10", "x86", True, -(2**31)), ("-1e10", "x86", True, -(2**31)), ("nan", "x86", True, -(2**31)),
        ("1e10", "x86", False, 2**32 - 1), ("-1", "x86", False, 2**32 - 1),
        ("1e10", "arm", True, 2**31 - 1), ("-1e10", "arm", True, -(2**31)), ("nan", "arm", True, 0),
        ("nan", "riscv", True, 2**31 - 1), ("-inf", "riscv", False, 0), ("nan", "riscv", False, 2**32 - 1),
    ],
)  # fmt: skip
def test_what_does_not_fit_an_integer_follows_the_machine(value, rule, signed, want):
    found = to_integer(value, 32, signed, "fp32", Context(nan=rule))
    assert (found.value, found.flags.names) == (want, ["invalid"])


@given(st.integers(0, 0xFFFF), st.sampled_from(["RNE", "RNA", "RTZ", "RTP", "RTN", "RAZ"]))
def test_integers_round_as_the_direction_says(code, direction):
    x = decode(code, "fp16")
    if not x.is_finite:
        return
    value = x.exact.as_fraction()
    floor = value.numerator // value.denominator
    rest = value - floor
    up = {
        "RNE": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and floor % 2),
        "RNA": rest > Fraction(1, 2) or (rest == Fraction(1, 2) and value > 0),
        "RTZ": bool(rest) and value < 0,
        "RTP": bool(rest),
        "RTN": False,
        "RAZ": bool(rest) and value > 0,
    }[direction]
    want = floor + bool(up)
    context = Context(rounding=direction)
    assert to_integer(x, context=context).value == want
    integral = round_to_integral(x, context=context)
    assert integral.result.exact == want
    assert ("inexact" in integral.flags.names) == bool(rest)
    assert round_to_integral(x, context=context, exact=False).flags.names == []
    assert from_integer(want, "fp64").result.exact == want


def test_an_integer_has_a_sensible_width():
    with pytest.raises(FormatError, match="1 to 4096 bits, not 0"):
        to_integer("1", 0, format="fp16")


# --- every derivation -------------------------------------------------------------------------------------


@given(
    st.sampled_from(["add", "sub", "mul", "div", "rem"]),
    st.integers(0, 0xFFFF),
    st.integers(0, 0xFFFF),
    st.sampled_from(["fp16", "bf16"]),
    st.sampled_from(["RNE", "RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ"]),
    st.sampled_from(["native", "saturate"]),
    st.sampled_from(["after", "before"]),
    st.booleans(),
)
@settings(max_examples=200, deadline=None)
def test_operations_agree_with_the_oracle(operation, a, b, name, direction, overflow, tininess, flush):
    fmt = parse_format(name)
    context = Context(rounding=direction, overflow=overflow, tininess=tininess, flush_results=flush)
    compute = {"add": add, "sub": subtract, "mul": multiply, "div": divide, "rem": remainder}[operation]
    done = compute(decode(a, fmt), decode(b, fmt), fmt, context)
    rules = Rules(direction, overflow, tininess=tininess, flush_results=flush)
    code, flags = truth.expected(operation, fmt, (a, b), rules)
    assert frozenset(done.flags.names) == flags
    assert done.result.is_nan if code is None else done.result.code == code


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_the_error_is_the_result_less_the_truth(a, b, c):
    x, y, z = (decode(code, "fp32") for code in (a, b, c))
    done = fma(x, y, z)
    if done.truth is not None and done.result.is_finite:
        exact = x.exact.as_fraction() * y.exact.as_fraction() + z.exact.as_fraction()
        assert done.error == done.result.exact.as_fraction() - exact
    root = sqrt(x)
    if root.truth is not None:
        low, high = root.error_bounds
        value = root.result.exact.as_fraction()
        assert (value - high) ** 2 <= x.exact.as_fraction() <= (value - low) ** 2
        assert high - low <= root.result.ulp.as_fraction() / 2**32


def test_steps_come_in_the_order_in_which_things_happen():
    kinds = {
        "add": [type(step) for step in add("1", "3", "fp16").steps][2:],
        "fma": [type(step) for step in fma("1.5", "3", "1", "fp16").steps][3:],
        "div": [type(step) for step in divide("1", "3", "fp16").steps][2:],
        "sqrt": [type(step) for step in sqrt("2", "fp16").steps][1:],
    }
    assert kinds["add"] == [Align, Combine, Round, Encode]
    assert kinds["fma"] == [Combine, Align, Combine, Round, Encode]
    assert kinds["div"] == [Divide, Round, Encode]
    assert kinds["sqrt"] == [Root, Round, Encode]


@pytest.mark.parametrize("text", ["0", "1", "2", "nan"])
@pytest.mark.parametrize("format", [None, "takum_log8", "posit8", "fp32"])
def test_operations_refuse_irrational_formats_whatever_the_format_of_the_result(text, format):
    x = encode(text, "takum_log8")
    with pytest.raises(UnsupportedError, match=r"^add: the numbers of takum_log8 are powers of √e"):
        add(x, "1", format)
