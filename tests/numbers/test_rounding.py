"""The kernel: its truth table, the same on Python integers and on arrays, and the random draw."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab.errors import FloatlabError
from floatlab.numbers.rounding import (
    IN_WORDS,
    Direction,
    draw,
    increments,
    increments_stochastic,
    parse_direction,
    split,
    tail,
)
from tests import oracle

# The tail in eighths of a unit, and whether anything lies below; every row of the table in the module's docstring.
EIGHTHS = [0, 1, 3, 4, 5, 7]

# direction: does it step for (tail, negative, odd)? The tails are exact, below half, half, above half.
TRUTH = {
    "RNE": lambda tail, negative, odd: tail == "above" or (tail == "half" and odd),
    "RNA": lambda tail, negative, odd: tail in ("half", "above"),
    "RTZ": lambda tail, negative, odd: False,
    "RTP": lambda tail, negative, odd: tail != "zero" and not negative,
    "RTN": lambda tail, negative, odd: tail != "zero" and negative,
    "RTO": lambda tail, negative, odd: tail != "zero" and not odd,
    "RAZ": lambda tail, negative, odd: tail != "zero",
}


def tail_word(eighths: int, sticky: bool) -> str:
    true = Fraction(eighths, 8) + Fraction(int(sticky), 1000)
    if not true:
        return "zero"
    return "half" if true == Fraction(1, 2) else "above" if true > Fraction(1, 2) else "below"


@pytest.mark.parametrize("direction", TRUTH)
@pytest.mark.parametrize(("negative", "odd"), [(n, o) for n in (False, True) for o in (False, True)])
@pytest.mark.parametrize(("eighths", "sticky"), [(e, s) for e in EIGHTHS for s in (False, True)])
def test_the_truth_table(direction, negative, odd, eighths, sticky):
    weighed = tail(2 * eighths, 8, sticky)
    want = TRUTH[direction](tail_word(eighths, sticky), negative, odd)
    assert bool(increments(Direction(direction), negative, odd, *weighed)) is want


@pytest.mark.parametrize("direction", TRUTH)
def test_integers_may_stand_for_the_booleans(direction):
    for negative, odd, sticky, eighths in product((0, 1), (0, 1), (0, 1), EIGHTHS):
        want = TRUTH[direction](tail_word(eighths, bool(sticky)), negative, odd)
        assert bool(increments(Direction(direction), negative, odd, *tail(2 * eighths, 8, sticky))) == bool(want)


@pytest.mark.parametrize("dtype", [np.uint16, np.int32, np.uint32, np.int64, np.uint64])
@pytest.mark.parametrize("direction", TRUTH)
def test_the_kernel_takes_arrays_and_gives_the_scalars_answer(direction, dtype):
    numbers = np.arange(512, dtype=dtype)
    for shift, sticky, negative in product(range(1, 6), (False, True), (False, True)):
        kept, rest2, unit = split(numbers, dtype(shift))
        odd = (kept & dtype(1)) != 0
        signs = np.full(numbers.shape, negative)
        steps = increments(Direction(direction), signs, odd, *tail(rest2, unit, np.full(numbers.shape, sticky)))
        assert steps.dtype == bool
        for n in (0, 1, 7, 8, 15, 16, 100, 255, 256, 511, *range(32, 96)):
            k, r, u = split(n, shift)
            assert (int(kept[n]), int(rest2[n]), int(unit)) == (k, r, u)
            assert bool(steps[n]) == bool(increments(Direction(direction), negative, bool(k & 1), *tail(r, u, sticky)))


@given(st.integers(0, 1 << 300), st.integers(0, 400))
def test_split_loses_nothing(c, shift):
    kept, rest2, unit = split(c, shift)
    assert unit == 1 << shift
    assert rest2 % 2 == 0
    assert 0 <= rest2 // 2 < unit
    assert kept * unit + rest2 // 2 == c


@given(st.integers(0, 1 << 40), st.integers(1, 40), st.booleans())
def test_tail_is_a_comparison_with_half_a_unit(c, shift, sticky):
    _, rest2, unit = split(c, shift)
    true = Fraction(rest2, 2 * unit) + (Fraction(1, 3 * unit) if sticky else 0)
    half = Fraction(1, 2)
    assert tuple(map(bool, tail(rest2, unit, sticky))) == (true > 0, true >= half, true == half)


def test_stochastic_rounding_is_no_case_of_the_kernel():
    with pytest.raises(FloatlabError, match="increments_stochastic"):
        increments(Direction.SR, False, False, True, True, False)


# SplitMix64's outputs as published: seed 0 with Vigna's reference code, seed 1234567 at rosettacode.org.
PUBLISHED = {
    0: [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F, 0xF88BB8A8724C81EC, 0x1B39896A51A8749B],
    1234567: [
        6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821,
    ],
}  # fmt: skip


@pytest.mark.parametrize("seed", PUBLISHED)
def test_the_draw_is_the_upper_half_of_splitmix64(seed):
    assert [draw(seed, index) for index in range(5)] == [output >> 32 for output in PUBLISHED[seed]]


def test_a_draw_has_32_bits_and_depends_on_seed_and_index_alone():
    drawn = [draw(seed, index) for seed in (0, 1, (1 << 64) - 1) for index in (0, 1, 10**6, 10**18)]
    assert all(0 <= d < 1 << 32 for d in drawn)
    assert len(set(drawn)) == len(drawn)
    assert drawn == [draw(seed, index) for seed in (0, 1, (1 << 64) - 1) for index in (0, 1, 10**6, 10**18)]


@given(st.integers(0, 1 << 200), st.integers(1, 128), st.integers(0, (1 << 32) - 1))
def test_the_stochastic_step_is_a_comparison_of_the_draw_with_the_rest_in_units_of_2_to_the_minus_32(c, shift, drawn):
    _, rest2, unit = split(c, shift)
    assert increments_stochastic(rest2, unit, drawn) == (drawn < (rest2 // 2 << 32) // unit)


def test_the_stochastic_step_never_moves_an_exact_number_and_is_fair_at_the_ends():
    full = (1 << 32) - 1
    assert not increments_stochastic(0, 8, 0)
    assert increments_stochastic(2 * 7, 8, 0)
    assert not increments_stochastic(2 * 7, 8, full)
    assert not increments_stochastic(2, 1 << 40, 0)  # less than 2^−32 of a unit never steps


def test_stochastic_rounding_is_right_on_average():
    # 20,000 draws at 9/16 of a unit: the mean's standard deviation is 0.0035.
    ups = sum(increments_stochastic(2 * 9, 16, draw(42, index)) for index in range(20_000))
    assert abs(ups / 20_000 - 9 / 16) < 5 * 0.0036


@pytest.mark.parametrize(
    ("word", "direction"),
    [
        ("near_even", "RNE"), ("near_maxMag", "RNA"), ("minMag", "RTZ"), ("max", "RTP"), ("min", "RTN"), ("odd", "RTO"),
        ("roundTiesToEven", "RNE"), ("roundTiesToAway", "RNA"), ("roundTowardZero", "RTZ"),
        ("roundTowardPositive", "RTP"), ("roundTowardNegative", "RTN"), ("near-even", "RNE"), ("rtz", "RTZ"),
        ("sr", "SR"), ("RAZ", "RAZ"),
    ],
)  # fmt: skip
def test_words_for_directions(word, direction):
    assert parse_direction(word) is Direction(direction)
    assert parse_direction(Direction(direction)) is Direction(direction)


@pytest.mark.parametrize("word", ["", "RNX", "nearest\neven", None, 3])
def test_other_words_are_refused_with_the_list_of_those_known(word):
    with pytest.raises(FloatlabError, match="known: RNE RNA RTZ RTP RTN RTO RAZ SR") as caught:
        parse_direction(word)
    assert "\n" not in str(caught.value)


def test_every_direction_has_words_and_the_oracle_knows_all_that_are_deterministic():
    assert set(IN_WORDS) == set(Direction)
    assert [d.value for d in Direction if not d.is_stochastic] == list(oracle.DIRECTIONS) == list(TRUTH)
