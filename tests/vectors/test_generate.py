"""Generated lines: the same for the same seed, correct in every format, and on hard cases of rounding."""

from collections import Counter
from fractions import Fraction
from itertools import islice

import pytest

from floatlab import Context, Datum, Derivation, FloatlabError, parse_format
from floatlab.arith import add, divide, fma, from_integer, multiply, sqrt, subtract
from floatlab.formats import Format
from floatlab.numbers.projection import Tail
from floatlab.numbers.random_integers import RandomIntegers
from floatlab.numbers.reading import convert
from floatlab.vectors import check_lines, generate_lines, parse_function
from floatlab.vectors.functions import FLAGS_OF_BITS, OPERATIONS
from floatlab.vectors.generate import landmarks, operand_codes

X86 = Context(nan="x86")
FORMATS = [
    *("f16", "f32", "f64", "f128", "bf16", "tf32", "x87", "e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz"),
    *("e4m3_ieee", "e3m4", "e8m0", "e2m3fn", "e3m2fn", "e2m1fn", "p3109_k8p4se", "p3109_k8p1ue", "p3109_k4p2uf"),
    *("p3109_k6p3sf", "p3109_k8p8ue", "e5m10fnuz", "e4m0", "e2m0fn", "e1m2fn", "e6m9f", "e19m236"),
]
CONVERSIONS = [
    "{}_to_f32",
    "{}_to_e4m3",
    "{}_to_e8m0",
    "{}_to_x87",
    "{}_to_i8",
    "{}_to_ui128",
    "i8_to_{}",
    "ui64_to_{}",
]
RULES = [
    Context(rounding, nan=nan, tininess=tininess, flush_inputs=flush, flush_results=flush)
    for rounding, nan, tininess, flush in (
        ("RNE", "x86", "after", False),
        ("RNA", "arm", "before", False),
        ("RTZ", "riscv", "after", False),
        ("RTP", "first", "before", True),
        ("RTN", "x86", "after", False),
        ("RTO", "arm", "after", False),
        ("RAZ", "riscv", "before", False),
        ("SR", "first", "after", True),
    )
]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("format", FORMATS)
def test_what_is_generated_agrees_when_checked_in_every_function_and_under_every_rule(format):
    names = [f"{format}_{operation}" for operation in OPERATIONS] + [each.format(format) for each in CONVERSIONS]
    for place, name in enumerate(names):
        function = parse_function(name)
        # Every rule is combined with every format, and every function with some of the rules.
        for context in (RULES[place % len(RULES)], RULES[(place + 3) % len(RULES)]):
            lines = list(generate_lines(function, context, 1, place, 40))
            assert len(lines) == 40
            assert list(check_lines(lines, function, context)) == [None] * 40, name


def test_the_seed_alone_decides():
    function = parse_function("f32_mulAdd")
    first = list(generate_lines(function, X86, 1, 7, 300))
    assert list(generate_lines(function, X86, 1, 7, 300)) == first
    assert list(generate_lines(function, X86, 1, 8, 300)) != first
    # A longer output begins with the same lines.
    assert list(generate_lines(function, X86, 1, 7, 400))[:300] == first


def test_operands_do_not_depend_on_the_rules():
    function = parse_function("f16_div")
    operands = [[line.split()[:2] for line in generate_lines(function, context, 1, 3, 2000)] for context in RULES[:3]]
    assert operands[0] == operands[1] == operands[2]


def test_draws_are_even_and_repeatable():
    draws = RandomIntegers(1)
    counts = Counter(draws.below(6) for _ in range(6000))
    assert set(counts) == set(range(6))
    assert max(counts.values()) < 1150
    assert [RandomIntegers(2).below(1 << 200) for _ in range(2)] == [RandomIntegers(2).below(1 << 200)] * 2
    assert {draws.between(3, 4) for _ in range(50)} == {3, 4}
    assert draws.between(5, 1) == 5
    assert all(draws.odd(7) & 1 and draws.odd(7).bit_length() == 7 for _ in range(50))


def test_levels():
    function = parse_function("e2m1_add")
    with pytest.raises(FloatlabError, match="level must be 1 or 2, not 3"):
        list(generate_lines(function, X86, 3))
    assert len(list(generate_lines(function, X86, 1))) == 10_000


@pytest.mark.parametrize("level", [1, 2])
def test_the_first_lines_cross_the_landmarks(level):
    marks = landmarks(parse_format("f16"))
    first = list(islice(operand_codes(parse_function("f16_add"), level, 0), len(marks) ** 2))
    assert set(first) == {(a, b) for a in marks for b in marks}


@pytest.mark.parametrize("format", FORMATS)
def test_landmarks_are_codes_and_have_the_ends_of_every_class(format):
    kind = parse_format(format)
    marks = landmarks(kind)
    assert marks == sorted(set(marks))
    assert all(0 <= mark < 1 << kind.width for mark in marks)
    data = [Datum(kind, mark) for mark in marks]
    values = {Fraction(*datum.as_integer_ratio()) for datum in data if datum.is_finite}
    for end in (kind.largest, kind.smallest, kind.smallest_normal):
        assert end in values
        assert -end in values or not kind.signed
    assert any(datum.is_nan for datum in data) == kind.has_nan
    assert any(datum.is_infinite for datum in data) == kind.infinities
    assert any(datum.is_signaling for datum in data) == kind.ieee_nans


def from_middle(done: Derivation, data: list[Datum]) -> Fraction:
    """Return how far the exact result is from the middle of two numbers, in units in the last place."""
    ulp = done.result.ulp.as_fraction()
    if done.error is not None:
        return abs(abs(done.error / ulp) - Fraction(1, 2))
    # For a root r: the difference of the squares is about 2r times the distance from the middle.
    root, square = (Fraction(*each.as_integer_ratio()) for each in (done.result, data[0]))
    return min(abs(square - (root + side * ulp / 2) ** 2) for side in (-1, 1)) / (2 * root * ulp)


def measured(name: str, lines: int = 4000) -> Counter:
    """Count the cases in the lines of a function: each flag, ties, near ties, NaNs, cancellations."""
    function = parse_function(name)
    compute = {"add": add, "sub": subtract, "mul": multiply, "div": divide, "sqrt": sqrt, "mulAdd": fma}
    counts: Counter = Counter(lines=lines)
    kinds, p = function.operands, function.result.precision
    for codes in islice(operand_codes(function, 1, 0), lines):
        if isinstance(kinds[0], Format):
            data = [Datum(kind, code) for kind, code in zip(kinds, codes, strict=True)]
            to = function.operation == "to"
            done = (
                convert(data[0], function.result, X86)
                if to
                else compute[function.operation](*data, function.result, X86)
            )
        else:
            data = []
            done = from_integer(kinds[0].value(codes[0]), function.result, X86)
        counts.update(done.flags.names)
        counts["nan"] += done.result.is_nan
        counts["exact"] += not done.flags
        if done.error_bounds is None or not done.result.is_finite:
            continue
        counts["subnormal"] += 0 < done.result.magnitude < done.result.format.smallest_normal_magnitude
        counts["tie"] += done.rounded is not None and done.rounded.tail is Tail.HALF
        counts["near tie"] += bool(done.flags) and 0 < from_middle(done, data) < Fraction(32, 1 << p)
        if data and done.result.magnitude and all(datum.is_finite for datum in data):
            largest = max(abs(Fraction(*datum.as_integer_ratio())) for datum in data)
            counts["cancelled"] += abs(Fraction(*done.result.as_integer_ratio())) * 8 < largest
    return counts


# The smallest count of each case among 4,000 lines.
SHARES = [
    ("f32_add", {"inexact": 1200, "exact": 400, "tie": 50, "near tie": 50, "overflow": 8, "invalid": 80, "nan": 300}),
    ("f32_sub", {"inexact": 1200, "exact": 400, "tie": 50, "near tie": 50, "cancelled": 80, "subnormal": 30}),
    ("f32_mul", {"inexact": 1500, "tie": 100, "near tie": 100, "overflow": 100, "underflow": 200, "invalid": 80}),
    (
        "f32_div",
        {"inexact": 1500, "tie": 50, "near tie": 120, "overflow": 100, "underflow": 200, "divide_by_zero": 40,
         "invalid": 80, "nan": 300},
    ),
    ("f64_div", {"inexact": 1500, "tie": 50, "near tie": 120, "overflow": 100, "underflow": 200}),
    ("f16_sqrt", {"inexact": 2000, "exact": 200, "near tie": 300, "invalid": 100, "nan": 150}),
    ("f64_sqrt", {"inexact": 2000, "exact": 200, "near tie": 300, "invalid": 100}),
    ("f128_sqrt", {"inexact": 2000, "near tie": 300}),
    ("f32_mulAdd", {"inexact": 1500, "tie": 15, "near tie": 10, "overflow": 80, "underflow": 80, "cancelled": 80}),
    ("e4m3_add", {"inexact": 1000, "tie": 100, "overflow": 30, "nan": 150}),
    ("e4m3_mul", {"inexact": 1000, "tie": 100, "overflow": 100, "underflow": 100}),
    ("f64_to_f16", {"inexact": 2000, "tie": 150, "near tie": 200, "overflow": 150, "underflow": 200, "subnormal": 50}),
    ("f128_to_e4m3", {"inexact": 2000, "tie": 150, "overflow": 150, "underflow": 200}),
    ("f64_to_e8m0", {"inexact": 1000, "tie": 100}),
    ("i64_to_f32", {"inexact": 1500, "exact": 400, "tie": 150, "near tie": 200}),
]  # fmt: skip


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("name", "least"), SHARES, ids=[name for name, _ in SHARES])
def test_lines_really_meet_what_goes_wrong(name, least):
    counts = measured(name)
    missed = {what: (counts[what], count) for what, count in least.items() if counts[what] < count}
    assert not missed, dict(counts)


@pytest.mark.parametrize(
    ("name", "flags"),
    [
        ("f32_div", {"invalid", "divide_by_zero", "overflow", "underflow", "inexact"}),
        ("bf16_div", {"invalid", "divide_by_zero", "overflow", "underflow", "inexact"}),
        ("e5m2_div", {"invalid", "divide_by_zero", "overflow", "underflow", "inexact"}),
        ("f16_mulAdd", {"invalid", "overflow", "underflow", "inexact"}),
        ("f64_to_i32", {"invalid", "inexact"}),
        ("f16_roundToInt", {"invalid", "inexact"}),
        ("f16_lt_quiet", {"invalid"}),
        ("i64_to_f16", {"overflow", "inexact"}),
        ("f64_rem", {"invalid"}),
    ],
)
def test_every_flag_that_a_function_can_raise_is_raised(name, flags):
    raised = set()
    for line in generate_lines(parse_function(name), X86, lines=1500):
        raised |= set(FLAGS_OF_BITS[int(line[-2:], 16)].names)
    assert raised == flags


def test_conversions_to_integers_meet_halves_and_both_ends():
    lines = [line.split() for line in generate_lines(parse_function("f32_to_i8"), X86, lines=3000)]
    values = {}
    for code, result, flags in lines:
        datum = Datum(parse_format("f32"), int(code, 16))
        if datum.is_finite:
            values[Fraction(*datum.as_integer_ratio())] = (int(result, 16), flags)
    half = Fraction(1, 2)
    assert sum(1 for value in values if value % 1 == half and abs(value) < 128) > 50
    # The last values that fit, and the first that do not: on both sides.
    assert values[127 + half] == (0x80, "10")
    assert values[-128 - half] == (0x80, "01")
    assert {Fraction(127), Fraction(128), Fraction(-128), Fraction(-129)} <= set(values)


def test_remainders_meet_ties_of_the_whole_quotient():
    kind, ties = parse_format("f32"), 0
    for codes in islice(operand_codes(parse_function("f32_rem"), 1, 0), 3000):
        a, b = (Datum(kind, code) for code in codes)
        if a.is_finite and b.is_finite and b.exact:
            ties += Fraction(*a.as_integer_ratio()) / Fraction(*b.as_integer_ratio()) % 1 == Fraction(1, 2)
    assert ties > 40
