"""The interval of reals that rounds to a datum, against rounding itself, point by point."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floatlab import Context, Direction, Format, UnsupportedError, decode, encode, parse_format, read
from floatlab.numbers import Exact
from floatlab.numbers.intervals import preimage
from tests import oracle

SMALL = [
    *map(parse_format, ("e2m1", "e2m3", "e3m2", "e3m2fnuz", "e3m1", "e2m2fn", "e3m2f", "p3109_k5p1se", "p3109_k5p2ue")),
    Format("scale", 1, 3, infinities=False, nans=1, zero=False, signed=False),
    Format("flushing", 3, 3, subnormals=False),
    Format("flushing one digit", 1, 3, subnormals=False),
]
RULES = [
    Context(),
    *(Context(rounding=direction) for direction in ("RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ")),
    Context(overflow="saturate"),
    Context(overflow="propagate", rounding="RAZ"),
    Context(flush_results=True),
    Context(flush_results=True, tininess="before", rounding="RTP"),
    Context(absent="zero"),
    Context(absent="nan"),
    Context(absent="error"),
]


def inside(x: Fraction, interval) -> bool:
    if interval is None:
        return False
    if interval.mirrored:
        x = abs(x)
    low, high = interval.low, interval.high
    above = low is None or (x >= low.as_fraction() if interval.low_closed else x > low.as_fraction())
    below = high is None or (x <= high.as_fraction() if interval.high_closed else x < high.as_fraction())
    return above and below


def landing(x: Fraction, format: Format, context: Context) -> int | None:
    try:
        return read(x, format, context).result.code
    except UnsupportedError:  # a rejected number rounds to no datum
        return None


def probes(format) -> list[Fraction]:
    """Return all numbers of the format, points halfway and a quarter between them, and points far outside."""
    values = {Fraction(0), format.largest * 2, format.largest * 1000}
    for code in range(1 << format.width):
        datum = decode(code, format)
        if datum.is_finite:
            values.add(abs(datum.exact.as_fraction()))
    ordered = sorted(values)
    between = [(a * (4 - k) + b * k) / 4 for a, b in pairwise(ordered) for k in (1, 2, 3)]
    return [sign * x for x in [*ordered, *between] for sign in (1, -1)]


@pytest.mark.one_in(10)
@pytest.mark.parametrize("format", SMALL, ids=lambda f: f.name)
@pytest.mark.parametrize("context", RULES, ids=repr)
def test_a_real_lies_in_the_interval_of_the_datum_that_it_rounds_to_and_of_no_other(format, context):
    points = probes(format)
    landed = {x: landing(x, format, context) for x in points}
    for code in range(1 << format.width):
        datum = decode(code, format)
        interval = preimage(datum, context)
        for x in points:
            if x == 0 and datum.number_class.value in ("negativeZero", "positiveZero"):
                continue  # the result for zero depends on its sign, which a Fraction does not have
            if x == 0 and datum.is_nan:
                continue  # a format without zero may replace it by a NaN
            if not format.signed and x < 0:
                continue  # an unsigned format replaces negative numbers; these do not count
            assert inside(x, interval) == (landed[x] == code), (hex(code), x)


FLUSHING = [
    Context(flush_results=True, rounding=direction, tininess=tininess)
    for direction in oracle.DIRECTIONS
    for tininess in ("after", "before")
]


@pytest.mark.one_in(4)
@pytest.mark.parametrize("format", SMALL, ids=lambda f: f.name)
def test_where_tiny_results_are_flushed_the_smallest_normal_number_gets_what_is_not_tiny(format):
    # Rounded with p digits, a number below 2^emin has a unit that is half as fine as the subnormals', or finer.
    unit = Fraction(2) ** (format.emin - format.precision - 3)
    points = [sign * k * unit for k in range(1, 1 << (format.precision + 4)) for sign in (1, -1)[: 1 + format.signed]]
    last = format.smallest_normal_magnitude + 1
    codes = [code for code in range(1 << format.width) if format.magnitude(code) <= last]
    for context in FLUSHING:
        rules = oracle.Rules(context.rounding.value, tininess=context.tininess.value, flush_results=True)
        landed = {x: oracle.project(format, x, rules)[0] for x in points}
        for code in codes:
            interval = preimage(decode(code, format), context)
            for x in points:
                assert inside(x, interval) == (landed[x] == code), (context, hex(code), x)


def test_the_edge_of_flushing_lies_half_a_finer_unit_below_the_smallest_normal_number():
    interval = preimage(decode(0x0400, "fp16"), Context(flush_results=True))
    assert interval.low == Fraction(1, 1 << 14) - Fraction(1, 1 << 26)
    assert interval.low_closed
    assert preimage(decode(0, "fp16"), Context(flush_results=True)).high == interval.low


@given(code=st.integers(0, 0xFFFF), name=st.sampled_from(["fp16", "bf16"]), direction=st.sampled_from(list(Direction)))
@settings(max_examples=150, deadline=None)
def test_the_ends_say_truly_whether_they_belong(code, name, direction):
    context = Context(rounding=direction)
    datum = decode(code, name)
    interval = preimage(datum, context)
    if interval is None or direction.is_stochastic:
        return
    for end, closed in ((interval.low, interval.low_closed), (interval.high, interval.high_closed)):
        if end is not None and end:
            assert (read(end, name, context).result == datum) == closed


@pytest.mark.parametrize("overflow", ["native", "saturate", "propagate"])
def test_infinity_belongs_to_no_interval_where_it_is_refused(overflow):
    largest = decode(0x7, "e2m1")
    assert preimage(largest, Context(overflow=overflow)).high_closed
    refusing = preimage(largest, Context(overflow=overflow, absent="error"))
    assert (refusing.high, refusing.high_closed) == (None, overflow == "saturate")


def test_the_interval_of_one_in_binary16_reaches_half_as_far_down():
    interval = preimage(decode(0x3C00, "fp16"))
    assert interval.low == Fraction(4095, 4096)
    assert interval.high == Exact(False, 2049, -11)
    assert interval.low_closed
    assert interval.high_closed


def test_what_overflows_to_nan_is_an_interval_too():
    interval = preimage(decode(0x7F, "e4m3"))
    assert (interval.low, interval.low_closed, interval.high) == (464, False, None)
    assert interval.high_closed
    assert not preimage(decode(0x7F, "e4m3"), Context(absent="zero")).high_closed  # an infinity becomes 0


def test_no_real_rounds_to_a_nan_that_overflow_does_not_give():
    assert preimage(decode(0x7E00, "fp16")) is None


def test_intervals_of_formats_that_saturate_or_drop_signs():
    zero = preimage(encode("0", "Binary8p4ue"), Context(overflow="saturate"))
    assert (zero.low, zero.low_closed, zero.high_closed) == (None, True, True)
    assert preimage(encode("0", "Binary8p4ue"), Context()).low == 0
    three = preimage(encode("3", "ue5m3"), Context(negative="drop"))
    assert (three.low, three.high, three.mirrored) == (Exact(False, 23, -3), Exact(False, 25, -3), True)
    for direction in ("SR", "SRC"):
        last = encode("240", "Binary8p4sf")
        assert preimage(last, Context(direction, overflow="none")).high is None
        assert preimage(last, Context(direction, overflow="none-nan")).high == 256
