"""Rounding into a format against the oracle: small formats exhaustively, all formats by drawing."""

from fractions import Fraction
from itertools import pairwise, product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, Exact, Flags, UnsupportedError, parse_format, read
from floatlab.formats import CATALOG
from floatlab.numbers import Tail, round_exact
from floatlab.numbers.exact import Ratio
from floatlab.numbers.projection import infinity_code, nan_code
from floatlab.numbers.rounding import draw
from tests import oracle, strategies
from tests.numbers.small import SMALL

TINY = Fraction(1, 1 << 120)
STICKY = Fraction(1, 3 << 200)  # so small that it affects only the sticky bit


def context_of(rules: oracle.Rules, seed: int = 0) -> Context:
    return Context(
        rounding=rules.direction, overflow=rules.overflow, absent=rules.absent, tininess=rules.tininess,
        flush_results=rules.flush_results, seed=seed, negative=rules.negative, random_bits=rules.bits,
        draw=rules.drawn if rules.direction in oracle.STOCHASTIC else None,
    )  # fmt: skip


def with_draw(rules: oracle.Rules, seed: int) -> oracle.Rules:
    return rules._replace(drawn=draw(seed)) if rules.direction == "SR" else rules


def exact_of(x: Fraction) -> Exact:
    return Exact(x < 0, abs(x.numerator), 1 - x.denominator.bit_length())


def is_dyadic(x: Fraction) -> bool:
    return x.denominator & (x.denominator - 1) == 0


def verdict(fmt, x: Fraction, context: Context, negative: bool = False):
    """Return (code, flag names) of the scalar kernel, by the function that accepts this rational."""
    try:
        if is_dyadic(x) and x:
            rounded = round_exact(exact_of(x), fmt, context)
        else:
            exact, sticky = Ratio(negative or x < 0, abs(x.numerator), x.denominator).enclose(fmt)
            rounded = round_exact(exact, fmt, context, sticky)
    except UnsupportedError:
        return "refused"
    return rounded.code, frozenset(rounded.flags.names)


def expected(fmt, x: Fraction, rules: oracle.Rules, negative: bool = False):
    try:
        return oracle.project(fmt, x, rules, negative)
    except oracle.RefusedError:
        return "refused"


def dense_grid(fmt) -> list[Fraction]:
    """Every number, and in each gap: near both ends, thirds, quarters, the middle and its two sides."""
    points = {Fraction(1, 3) * Fraction(2) ** (oracle.least_exponent(fmt) - 9)}
    last = oracle.largest_magnitude(fmt)
    rungs = sorted({oracle.value_of(fmt, m) for m in range(last + 4)} | {Fraction(0)})
    for low, high in pairwise(rungs):
        gap = high - low
        places = (
            0, STICKY, TINY, Fraction(1, 4), Fraction(1, 3), Fraction(1, 2) - TINY, Fraction(1, 2) - STICKY,
            Fraction(1, 2), Fraction(1, 2) + STICKY, Fraction(1, 2) + TINY, Fraction(2, 3), Fraction(3, 4), 1 - TINY,
        )  # fmt: skip
        points.update(low + gap * place for place in places)
    points.update((rungs[-1] * 3, rungs[-1] * Fraction(2) ** 90 / 7, rungs[-1] * Fraction(2) ** 400))
    least = Fraction(2) ** oracle.least_exponent(fmt)
    t = fmt.precision - 1
    for k in range(1, 12):  # just below the smallest normal at p digits, where the two kinds of tininess differ
        points.add(least - least / (1 << (t + 1)) * Fraction(k, 4))
    return sorted(point for point in points if point > 0)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_every_direction_and_overflow_rule_over_a_dense_grid_of_rationals(fmt):
    grid = dense_grid(fmt)
    grid = [Fraction(0), *grid, *(-x for x in grid)]
    largest = oracle.value_of(fmt, oracle.largest_magnitude(fmt))
    least = Fraction(2) ** oracle.least_exponent(fmt)
    for direction, tininess, flush in product(oracle.DIRECTIONS, ("after", "before"), (False, True)):
        for overflow in oracle.OVERFLOWS:
            rules = oracle.Rules(direction, overflow, "largest", tininess, flush)
            context = context_of(rules)
            for x in grid:
                # If a rule has no effect, one of its settings is enough.
                if overflow != "native" and abs(x) <= largest:
                    continue
                if (flush or tininess == "before") and abs(x) >= least:
                    continue
                assert verdict(fmt, x, context) == expected(fmt, x, rules), (x, rules)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_stochastic_rounding_over_a_dense_grid_of_rationals(fmt):
    grid = [sign * x for x in dense_grid(fmt) for sign in (1, -1)]
    for seed, tininess in product((0, 1, 2, 3, 1234567), ("after", "before")):
        rules = with_draw(oracle.Rules("SR", tininess=tininess), seed)
        context = context_of(rules, seed)
        for x in grid:
            assert verdict(fmt, x, context) == expected(fmt, x, rules), (x, rules)


@pytest.mark.one_in(8)
@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_every_draw_of_few_random_bits_over_a_dense_grid_of_rationals(fmt):
    grid = [sign * x for x in dense_grid(fmt) for sign in (1, -1)]
    for direction, bits in product(oracle.STOCHASTIC, (0, 1, 2)):
        for drawn, overflow in zip(range(1 << bits), oracle.OVERFLOWS, strict=False):
            rules = oracle.Rules(direction, overflow, drawn=drawn, bits=bits)
            context = context_of(rules)
            for x in grid:
                assert verdict(fmt, x, context) == expected(fmt, x, rules), (x, rules)


def test_draws_are_the_first_bits_of_the_hash():
    for direction, bits, seed in product(oracle.STOCHASTIC, (0, 1, 7, 30), (0, 5)):
        rounded = read("1.03", "e4m3", Context(direction, random_bits=bits, seed=seed)).rounded
        assert rounded.drawn == draw(seed) >> (32 - bits)
        again = read("1.03", "e4m3", Context(direction, random_bits=bits, draw=rounded.drawn)).rounded
        assert again == rounded


@pytest.mark.parametrize("absent", ["largest", "zero", "nan", "error"])
@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
def test_operands_that_the_format_has_no_code_for(fmt, absent):
    numbers = (Fraction(0), Fraction(1, 1 << 40), Fraction(1), Fraction(10**9))
    negatives = ("native", "zero", "drop") if not fmt.signed else ("native",)
    for overflow, direction, kind in product(oracle.OVERFLOWS, ("RNE", "RTZ", "RTP"), negatives):
        rules = oracle.Rules(direction, overflow, absent, negative=kind)
        context = context_of(rules)
        for x, negative in product(numbers, (False, True)):
            x = -x if negative else x
            assert verdict(fmt, x, context, negative) == expected(fmt, x, rules, negative), (x, rules)
        for negative in (False, True):
            try:
                code, names = oracle.project_infinity(fmt, negative, rules)
            except oracle.RefusedError:
                with pytest.raises(UnsupportedError, match="refuses to replace it"):
                    infinity_code(fmt, context, negative)
                continue
            got, flags = infinity_code(fmt, context, negative)
            assert (got, frozenset(flags.names)) == (code, names), (negative, rules)


@given(st.data())
@settings(max_examples=150)
def test_any_format_any_rule_any_rational(data):
    fmt = data.draw(strategies.formats)
    x = data.draw(strategies.rationals(fmt))
    seed = data.draw(st.integers(0, (1 << 64) - 1))
    rules = with_draw(
        oracle.Rules(
            data.draw(st.sampled_from([*oracle.DIRECTIONS, "SR", *oracle.STOCHASTIC])),
            data.draw(st.sampled_from(oracle.OVERFLOWS)),
            data.draw(st.sampled_from(["largest", "zero", "nan", "error"])),
            data.draw(st.sampled_from(["after", "before"])), data.draw(st.booleans()),
            seed % (1 << 12), 12, data.draw(st.sampled_from(["native", "zero", "drop"])),
        ), seed,
    )  # fmt: skip
    assert verdict(fmt, x, context_of(rules, seed)) == expected(fmt, x, rules)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fmt", SMALL, ids=lambda f: f.name)
@pytest.mark.parametrize("direction", oracle.DIRECTIONS)
def test_rounding_is_monotone_over_the_grid(fmt, direction):
    context = Context(rounding=direction, overflow="saturate")
    grid = dense_grid(fmt)
    signed = [*(-x for x in reversed(grid)), *grid] if fmt.signed else grid
    values = [oracle.decode(fmt, verdict(fmt, x, context)[0]).value for x in signed]
    assert values == sorted(values)


@given(st.data())
@settings(max_examples=100)
def test_rounding_is_monotone_in_any_format(data):
    fmt = data.draw(strategies.formats)
    direction = data.draw(st.sampled_from(oracle.DIRECTIONS))
    x, y = sorted((data.draw(strategies.rationals(fmt)), data.draw(strategies.rationals(fmt))))
    if not fmt.signed:
        x, y = sorted((abs(x), abs(y)))
    context = Context(rounding=direction, overflow="saturate")
    low, high = (oracle.decode(fmt, verdict(fmt, z, context)[0]).value for z in (x, y))
    assert low <= high


@given(st.data())
@settings(max_examples=100)
def test_the_directed_roundings_enclose_and_the_nearest_is_one_of_them(data):
    fmt = data.draw(strategies.formats.filter(lambda f: f.signed and f.zero))
    x = data.draw(strategies.rationals(fmt))
    largest = oracle.value_of(fmt, oracle.largest_magnitude(fmt))
    x = max(min(x, largest), -largest)
    value = {d: oracle.decode(fmt, verdict(fmt, x, Context(rounding=d))[0]).value for d in (*oracle.DIRECTIONS, "SR")}
    assert value["RTN"] <= x <= value["RTP"]
    assert abs(value["RTZ"]) <= abs(x) <= abs(value["RAZ"])
    assert all(v in (value["RTN"], value["RTP"]) for v in value.values())
    assert abs(value["RNE"] - x) == abs(value["RNA"] - x) == min(value["RTP"] - x, x - value["RTN"])


@given(st.data())
@settings(max_examples=100)
def test_the_verdict_keeps_what_it_saw(data):
    fmt = data.draw(strategies.formats)
    x = data.draw(strategies.near_ties(fmt).filter(is_dyadic))
    rounded = round_exact(exact_of(x), fmt)
    kept, place = divmod(x / Fraction(2) ** rounded.quantum, 1)
    rest = Fraction(rounded.rest2, 2 * rounded.unit)
    assert rounded.kept == kept
    # From 64 places below the rounding position on, one digit represents all further digits.
    assert rest == place or 0 < max(place, rest) <= Fraction(1, 1 << 64)
    half = Fraction(1, 2)
    word = Tail.ZERO if not rest else Tail.HALF if rest == half else Tail.BELOW_HALF if rest < half else Tail.ABOVE_HALF
    assert rounded.tail is word
    assert rounded.guard == (rest >= half)
    assert rounded.round == (rest % half >= half / 2)
    assert rounded.sticky == (rest % (half / 2) != 0)
    assert rounded.significand == rounded.kept + rounded.increment
    assert rounded.carried == (rounded.significand >= 1 << fmt.precision)


def test_the_guard_round_and_sticky_bits_of_the_articles_addition():
    # 1.125 + 0.12457275390625 = 1.0011111111|1001 in binary16: guard 1, round 0, sticky 1.
    rounded = read("1.24957275390625", "binary16").rounded
    assert (rounded.guard, rounded.round, rounded.sticky, rounded.tail) == (True, False, True, Tail.ABOVE_HALF)
    assert (rounded.kept, rounded.increment, rounded.carried) == (0b10011111111, True, False)
    assert Fraction(rounded.rest2, 2 * rounded.unit) == Fraction(9, 16)


def test_a_carry_through_all_digits_is_told():
    rounded = read("2047.5", "binary16").rounded
    assert rounded.carried
    assert rounded.code == 0x6800


def test_tininess_before_and_after_part_just_below_the_smallest_normal():
    # 2^-14 less a quarter of binary16's subnormal unit: rounded to 11 digits it is 2^-14, so not tiny afterwards.
    x = Fraction(1, 1 << 14) - Fraction(1, 1 << 26) / 2
    half = parse_format("binary16")
    assert verdict(half, x, Context()) == (0x0400, {"inexact"})
    assert verdict(half, x, Context(tininess="before")) == (0x0400, {"underflow", "inexact"})


def test_an_exact_subnormal_raises_nothing_and_a_flushed_one_underflows():
    half = parse_format("binary16")
    x = Fraction(3, 1 << 24)
    assert verdict(half, x, Context()) == (3, frozenset())
    assert verdict(half, -x, Context(flush_results=True)) == (0x8000, {"underflow", "inexact"})


@pytest.mark.parametrize(
    ("direction", "positive", "negative"),
    [("RNE", "inf", "-inf"), ("RNA", "inf", "-inf"), ("RTZ", "max", "-max"), ("RTO", "max", "-max"),
     ("RTP", "inf", "-max"), ("RTN", "max", "-inf"), ("RAZ", "inf", "-inf"), ("SR", "inf", "-inf")],
)  # fmt: skip
def test_overflow_in_each_direction_as_clause_7_4_has_it(direction, positive, negative):
    code = {"inf": 0x7C00, "-inf": 0xFC00, "max": 0x7BFF, "-max": 0xFBFF}
    for text, word in (("1e9", positive), ("-1e9", negative)):
        derivation = read(text, "binary16", Context(rounding=direction))
        assert derivation.result.code == code[word]
        assert derivation.flags == Flags.OVERFLOW | Flags.INEXACT


def test_a_truncated_result_above_the_largest_has_not_overflowed():
    # 65519.9 is below the next number of the unbounded strip, so only inexact is raised (7.4).
    assert read("65519.9", "binary16", Context(rounding="RTZ")).flags == Flags.INEXACT
    assert read("65536", "binary16", Context(rounding="RTZ")).flags == Flags.OVERFLOW | Flags.INEXACT


@pytest.mark.parametrize("row", CATALOG, ids=lambda r: r.format.name)
def test_the_default_nan_keeps_its_sign_where_nans_have_one(row):
    fmt = row.format
    for negative in (False, True):
        code, flags = nan_code(fmt, Context(), negative)
        want = oracle.nan_code(fmt, negative)
        if want is None:
            assert (code, flags) == (oracle.code_of(fmt, negative, oracle.largest_magnitude(fmt)), Flags.INVALID)
        else:
            assert (code, flags) == (want, Flags.NONE)
            assert oracle.decode(fmt, code).kind == "nan"


@pytest.mark.parametrize("shift", [1, 2, 63, 64, 65, 66, 67, 200, 10**6, 10**12])
def test_the_clamp_far_below_the_cut_rounds_as_the_number_itself(shift):
    half = parse_format("binary16")
    x = Exact(False, 1, half.qmin - shift)
    for direction in ("RNE", "RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ"):
        code = 1 if direction in ("RTP", "RTO", "RAZ") or (direction == "RNA" and shift == 1) else 0
        rounded = round_exact(x, half, Context(rounding=direction))
        assert (rounded.code, rounded.flags) == (code, Flags.UNDERFLOW | Flags.INEXACT)


def test_a_sticky_bit_above_the_last_digit_is_refused():
    with pytest.raises(UnsupportedError, match="sticky"):
        round_exact(Exact(False, 1, 0), parse_format("binary16"), sticky=True)


@given(st.data())
@settings(max_examples=100)
def test_a_sticky_bit_stands_for_any_smaller_addend(data):
    fmt = data.draw(strategies.formats)
    x = data.draw(strategies.near_ties(fmt).filter(is_dyadic))
    scale = max(fmt.precision + 70 - x.numerator.bit_length(), 0) + 70
    exact = Exact(False, x.numerator << scale, 1 - x.denominator.bit_length() - scale)
    true = x + Fraction(1, 3) * Fraction(2) ** exact.q
    if not x:
        return
    for direction in oracle.DIRECTIONS:
        rules = oracle.Rules(direction)
        rounded = round_exact(exact, fmt, context_of(rules), sticky=True)
        assert (rounded.code, frozenset(rounded.flags.names)) == expected(fmt, true, rules)


@pytest.mark.parametrize(
    "name", [*(pytest.param(each, marks=pytest.mark.slow) for each in ("e19m236", "e19m2fn")), "e19m0f", "e15m236fnuz"]
)
def test_the_widest_formats_at_their_edges(name):
    fmt = parse_format(name)
    last, t = oracle.largest_magnitude(fmt), fmt.precision - 1
    for m in (0, (1 << t) - 1, last):
        low, high = oracle.value_of(fmt, m), oracle.value_of(fmt, m + 1)
        for place in (Fraction(1, 3), Fraction(1, 2) - TINY, Fraction(1, 2)):
            for direction in oracle.DIRECTIONS:
                rules = oracle.Rules(direction)
                x = low + (high - low) * place
                assert verdict(fmt, x, context_of(rules)) == expected(fmt, x, rules), (m, place, direction)
