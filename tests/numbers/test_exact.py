"""Exact numbers: arithmetic against Fraction, signs of zero, comparison, hashing, and powers left unexpanded."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floatlab import Exact, UnsupportedError

exacts = st.builds(Exact, st.booleans(), st.integers(0, 1 << 120), st.integers(-200, 200))


def value(x: Exact) -> Fraction:
    return (-1 if x.negative else 1) * x.c * Fraction(2) ** x.q


@given(exacts, exacts)
def test_addition_subtraction_and_multiplication_are_those_of_fractions(x, y):
    assert value(x + y) == value(x) + value(y)
    assert value(x - y) == value(x) - value(y)
    assert value(x * y) == value(x) * value(y)


@given(exacts)
def test_sign_and_size(x):
    assert value(-x) == -value(x)
    assert (-x).negative is not x.negative
    assert value(abs(x)) == abs(value(x))
    assert bool(x) == (value(x) != 0)


@given(exacts)
def test_normalized_is_the_same_number_with_an_odd_significand(x):
    n = x.normalized()
    assert value(n) == value(x)
    assert n.negative == x.negative
    assert n.c % 2 == 1 or (n.c, n.q) == (0, 0)


@given(exacts)
def test_the_exponent_is_the_leading_digits(x):
    if x.c:
        assert Fraction(2) ** x.exponent <= abs(value(x)) < Fraction(2) ** (x.exponent + 1)


@given(exacts, exacts)
def test_order_equality_and_hash_are_by_value(x, y):
    a, b = value(x), value(y)
    assert (x == y) == (a == b)
    assert (x != y) == (a != b)
    assert (x < y, x <= y, x > y, x >= y) == (a < b, a <= b, a > b, a >= b)
    if a == b:
        assert hash(x) == hash(y)


@given(exacts)
def test_an_exact_number_equals_and_hashes_as_pythons_numbers_of_that_value(x):
    assert x == value(x)
    assert hash(x) == hash(value(x))
    assert {value(x): 1}[x] == 1
    if value(x).denominator == 1:
        assert x == int(value(x))


@given(exacts, st.integers(0, 70))
def test_trailing_zeros_do_not_matter(x, shift):
    same = Exact(x.negative, x.c << shift, x.q - shift)
    assert same == x
    assert hash(same) == hash(x)


def test_signs_of_zero():
    plus, minus = Exact(False, 0, 0), Exact(True, 0, 5)
    assert plus == minus == 0
    assert hash(plus) == hash(minus) == hash(0)
    # 6.3: a sum of equal zeros keeps their sign; of opposite numbers, +0.
    assert (minus + minus).negative
    assert not (minus + plus).negative
    assert not (plus + minus).negative
    one = Exact(False, 1, 0)
    assert not (one - one).negative
    assert not (-one + one).negative
    assert (minus * one).negative
    assert (plus * -one).negative
    assert not (minus * minus).negative


def test_comparison_with_other_things():
    assert Exact(False, 3, -1) == 1.5
    assert Exact(False, 3, -1) != 1.25
    assert Exact(False, 1, 0) != float("nan")
    assert Exact(False, 1, 0) != float("inf")
    assert Exact(False, 1, 0) != "1"
    assert Exact(False, 1, 0) != None  # noqa: E711
    with pytest.raises(TypeError):
        _ = Exact(False, 1, 0) < 2
    with pytest.raises(TypeError):
        _ = Exact(False, 1, 0) + 2


def test_numbers_with_enormous_exponents_are_compared_and_hashed_without_writing_them_out():
    huge, larger, tiny = Exact(False, 1, 10**15), Exact(False, 3, 10**15), Exact(True, 1, -(10**15))
    assert tiny < huge < larger
    assert huge != larger
    assert huge * tiny == Exact(True, 1, 0)
    assert huge != 1
    assert len({huge, larger, tiny, Exact(False, 2, 10**15 - 1)}) == 3
    assert hash(Exact(False, 1, 61)) == hash(1 << 61)


def test_ratios_and_fractions():
    assert Exact(True, 6, -2).as_integer_ratio() == (-3, 2)
    assert Exact(False, 3, 4).as_integer_ratio() == (48, 1)
    assert Exact(True, 0, -9).as_integer_ratio() == (0, 1)
    assert Exact(False, 5, -3).as_fraction() == Fraction(5, 8)
    for q in (1 << 25, -(1 << 25), 10**18):
        with pytest.raises(UnsupportedError, match="too large to write out"):
            Exact(False, 1, q).as_fraction()


@given(exacts, st.integers(0, 100))
def test_scaled_gives_the_integer_over_a_common_power(x, below):
    assert Fraction(2) ** (x.q - below) * x.scaled(x.q - below) == value(x)


@given(st.integers(-(1 << 200), 1 << 200))
def test_integers(n):
    assert value(Exact.from_integer(n)) == n
    assert Exact.from_integer(n) == n


def test_a_negative_significand_is_refused():
    with pytest.raises(UnsupportedError, match="sign"):
        Exact(False, -1, 0)
