"""Strategies for Hypothesis: formats of every shape, their codes, and rationals that are hard to round."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import assume
from hypothesis import strategies as st

from floatlab.errors import FormatError
from floatlab.formats import CATALOG, Format, parse_format
from tests import oracle

catalog_formats = st.sampled_from([row.format for row in CATALOG])


@st.composite
def p3109_formats(draw: st.DrawFn) -> Format:
    k = draw(st.integers(3, 16))
    signed = draw(st.booleans())
    p = draw(st.integers(1, k - 1 if signed else k))
    name = f"p3109_k{k}p{p}{'s' if signed else 'u'}{draw(st.sampled_from('ef'))}"
    try:
        return parse_format(name)
    except FormatError:  # specials leave no normal number
        assume(False)
        raise


@st.composite
def custom_formats(draw: st.DrawFn) -> Format:
    """Formats made by hand: any mixture of specials, no subnormals, no zero, unsigned, odd biases, p = 1."""
    w = draw(st.integers(1, 8))
    p = draw(st.sampled_from([1, 1, 2, 3, 4, 5, 8, 11, 24]))
    zero = p > 1 or draw(st.booleans())
    signed = draw(st.booleans()) if zero else False
    infinities = draw(st.booleans())
    nans = draw(st.sampled_from([None, 0, 1, 2]))
    try:
        return Format(
            "custom", p, w,
            bias=draw(st.one_of(st.none(), st.integers(-20, 40))),
            infinities=infinities,
            nans=nans,
            zero=zero,
            negative_zero=draw(st.booleans()),
            signed=signed,
            subnormals=draw(st.booleans()),
            ties_to_even_code=draw(st.booleans()),
        )  # fmt: skip
    except FormatError:
        assume(False)
        raise


pattern_formats = st.builds(
    lambda w, t, suffix: parse_format(f"e{w}m{t}{suffix}"),
    # Not up to W = 19: such numbers have 80,000 digits, and Hypothesis prints the numbers that it draws.
    st.integers(2, 13), st.integers(2, 236), st.sampled_from(["", "fn", "f", "fnuz", "_ieee"]),
)  # fmt: skip

formats = st.one_of(catalog_formats, p3109_formats(), custom_formats(), pattern_formats)
small_formats = st.one_of(catalog_formats, p3109_formats(), custom_formats())


def codes(fmt: Format) -> st.SearchStrategy[int]:
    """Codes of a format, with the ends of the strip and the binades' edges drawn more often."""
    t, last = oracle.trailing(fmt), (1 << fmt.width) - 1
    edges = [0, 1, 1 << t, (1 << t) - 1, oracle.largest_magnitude(fmt), last >> 1, last]
    near = st.builds(lambda edge, step: min(max(edge + step, 0), last), st.sampled_from(edges), st.integers(-2, 2))
    return st.one_of(near, st.integers(0, last))


def magnitudes(fmt: Format) -> st.SearchStrategy[int]:
    """Finite magnitudes, and a few beyond the largest; the boundaries drawn more often."""
    t, last = oracle.trailing(fmt), oracle.largest_magnitude(fmt)
    edges = [0, (1 << t) - 1, 1 << t, last - 1, last, last + 1]
    near = st.builds(lambda edge, step: max(edge + step, 0), st.sampled_from(edges), st.integers(-2, 3))
    return st.one_of(near, st.integers(0, last))


@st.composite
def near_ties(draw: st.DrawFn, fmt: Format) -> Fraction:
    """A number between two neighbours: on one, halfway, a quarter, and a little to either side of these."""
    m = draw(magnitudes(fmt))
    low, high = oracle.value_of(fmt, m), oracle.value_of(fmt, m + 1)
    place = draw(st.sampled_from([0, Fraction(1, 4), Fraction(1, 2), Fraction(3, 4), Fraction(1, 3)]))
    little = draw(st.sampled_from([0, 0, 1, -1])) * Fraction(1, 1 << draw(st.sampled_from([3, 31, 33, 70, 200])))
    return abs(low + (high - low) * (place + little))


@st.composite
def boundaries(draw: st.DrawFn, fmt: Format) -> Fraction:
    """Around the smallest number, the smallest normal, the largest and the overflow threshold, and far outside."""
    last = oracle.largest_magnitude(fmt)
    least = Fraction(2) ** oracle.least_exponent(fmt)
    smallest = least / (1 << oracle.trailing(fmt))
    largest, beyond = oracle.value_of(fmt, last), oracle.value_of(fmt, last + 1)
    edge = draw(st.sampled_from([smallest / 2, smallest, least, least - smallest / 2, largest, (largest + beyond) / 2,
                                 beyond, largest * (1 << 40), smallest / (1 << 40)]))  # fmt: skip
    return abs(edge * (1 + draw(st.sampled_from([0, 1, -1])) * Fraction(1, 1 << draw(st.integers(1, 90)))))


@st.composite
def wide_gaps(draw: st.DrawFn) -> Fraction:
    """A sum of two numbers whose exponents may lie far apart."""
    a, b = draw(st.integers(1, 1 << 60)), draw(st.integers(-(1 << 60), 1 << 60))
    return abs(a * Fraction(2) ** draw(st.integers(-80, 80)) + b * Fraction(2) ** draw(st.integers(-300, 80)))


ratios = st.builds(Fraction, st.integers(0, 1 << 80), st.integers(1, 1 << 80))


@st.composite
def rationals(draw: st.DrawFn, fmt: Format) -> Fraction:
    """Any of the above, with either sign."""
    x = draw(st.one_of(near_ties(fmt), boundaries(fmt), wide_gaps(), ratios))
    return -x if draw(st.booleans()) else x
