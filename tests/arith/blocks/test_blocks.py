"""One block, exactly: scales by every rule against their definitions, elements against Fractions."""

from fractions import Fraction
from math import ceil, floor, log2

import pytest

from floatlab import Context, ContextError, Datum, Flags, LiteralError, UnsupportedError, encode, parse_format, read
from floatlab.arith.blocks import element_context, quantize_blocks
from floatlab.arith.blocks.records import element_value, zero_code
from floatlab.formats.blocks import BLOCK_CATALOG, parse_block_format
from floatlab.formats.format import Format
from floatlab.formats.recipes import parse_rule, rules_for
from floatlab.numbers import Direction

NAMED = {row.format.name: row.format for row in BLOCK_CATALOG}
FORMATS = {name: fmt for name, fmt in NAMED.items() if not fmt.minimum and not fmt.groups}
MX = [fmt for fmt in FORMATS.values() if fmt.scales_by_powers]
OWN = ["floor", "even", "ceil", "up", "nearest"]
E8M0, E4M3 = parse_format("e8m0"), parse_format("e4m3")


def one(values, format, *ways, **more):
    [block] = quantize_blocks(values, format, *ways, **more)
    return block


def become(block):
    return [None if each.decoded is None else each.decoded.as_fraction() for each in block.elements]


def defined(rule, amax, fmt):
    """Return the exponent of a scale by the definition of its rule; a float is enough, since amax has few digits."""
    top = fmt.magnitudes
    largest, p = float(top.largest), top.precision
    if rule == "floor":
        return floor(log2(amax)) - top.emax
    if rule == "ceil":
        return ceil(log2(amax)) - top.emax
    if rule == "even":
        rounded = encode(amax, f"e15m{p - 1}")
        return floor(log2(float(rounded))) - top.emax
    about = floor(log2(amax / largest))
    near = range(about - 2, about + 3)
    if rule == "up":
        return next(k for k in near if amax <= largest * 2.0**k)
    return min(near, key=lambda k: (abs(Fraction(amax) / Fraction(largest) - Fraction(2) ** k), -k))


@pytest.mark.one_in(8)
@pytest.mark.parametrize("fmt", MX, ids=lambda fmt: fmt.name)
@pytest.mark.parametrize("rule", OWN)
def test_scales_of_every_11_bit_amax_are_as_defined(fmt, rule):
    step = 3 if rule in ("up", "even") else 13
    for c in (*range(1024, 2049, step), *range(2000, 2048), 1792, 1793):
        for e in (0, -31):
            amax = c * 2.0 ** (e - 10)
            assert one([amax], fmt, rule).scale == Datum(E8M0, defined(rule, amax, fmt) + 127), amax


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fmt", MX, ids=lambda fmt: fmt.name)
def test_with_up_and_ceil_nothing_saturates_and_up_is_the_smallest_such_scale(fmt):
    for c in range(1024, 2048, 3):
        for rule in ("up", "ceil"):
            block = one([c], fmt, rule)
            assert Flags.OVERFLOW not in block.flags
        if c > 1024:
            up = one([c], fmt, "up").scale.exact.as_fraction()
            assert c > fmt.magnitudes.largest * up / 2


def test_957_becomes_896():
    block = one(["957"], "mxfp8_e4m3")
    [element] = block.elements
    assert (block.exponent, block.scale.exact.as_fraction()) == (9, 2)
    assert element.scaled.as_fraction() == Fraction(957, 2)
    assert (element.rounded.overflowed, element.code, element.error) == (True, 0x7E, -61)
    assert element.flags == Flags.OVERFLOW | Flags.INEXACT
    assert become(block) == [896]
    # The other rules double the scale: nothing saturates, but a digit of precision is lost.
    assert become(one(["957"], "mxfp8_e4m3", "up")) == [960]
    assert become(one(["957"], "mxfp8_e4m3", "ceil")) == [960]
    assert become(one(["957"], "mxfp8_e4m3", "even")) == [896]
    assert become(one(["993"], "mxfp8_e4m3", "even")) == [1024]
    assert become(one(["957"], "mxfp8_e4m3", "nearest")) == [896]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("direction", [each for each in Direction if not each.is_stochastic])
def test_elements_are_the_neighbours_that_a_direction_asks_for(name, direction):
    fmt = FORMATS[name]
    values = [Fraction(n * n * n, 37) * (-1) ** n for n in range(fmt.block)]
    block = one(values, fmt, None, Context(direction))
    multiplier = block.multiplier.as_fraction()
    codes = range(1 << fmt.element.width)
    numbers = [datum for code in codes if (datum := Datum(fmt.magnitudes, code)).is_finite]
    grid = sorted({datum.exact.as_fraction() * multiplier for datum in numbers})
    for value, got in zip(values, become(block), strict=True):
        below = max((x for x in grid if x <= value), default=grid[0])
        above = min((x for x in grid if x >= value), default=grid[-1])
        toward_zero, away = sorted((below, above), key=abs)
        nearest = [x for x in (below, above) if abs(x - value) == min(value - below, above - value, key=abs)]
        wanted = {
            Direction.RTZ: [toward_zero], Direction.RAZ: [away], Direction.RTP: [above], Direction.RTN: [below],
            Direction.RTO: [below, above],
        }.get(direction, nearest or [below, above])  # fmt: skip
        assert got in wanted


def test_two_values_that_are_ties_go_to_even():
    # The scale is 1: 2.5 and 3.5 lie between numbers of e2m1.
    assert become(one([4, "2.5", "3.5", "5", "-0.25", "0.75"], "mxfp4")) == [4, 2, 4, 4, 0, 1]
    assert become(one([4, "2.5", "3.5", "5", "-0.25", "0.75"], "mxfp4", None, Context("RNA"))) == [
        4, 3, 4, 6, Fraction(-1, 2), 1,
    ]  # fmt: skip


def test_scales_end_where_e8m0_ends():
    low = one(["1e-300", "0"], "mxfp4")
    assert (low.scale.code, become(low)) == (0, [0, 0])
    assert low.wanted.as_fraction() == Fraction(2) ** -999
    high = one(["1e300", "1e38"], "mxfp4")
    assert (high.scale.code, high.elements[0].code) == (254, 7)
    assert Flags.OVERFLOW in high.flags
    assert become(one([Fraction(2) ** -127], "mxfp4")) == [Fraction(2) ** -127]
    assert become(one([Fraction(2) ** -128 * 3], "mxfp4")) == [Fraction(2) ** -128 * 3]


@pytest.mark.parametrize("fmt", FORMATS.values(), ids=FORMATS)
@pytest.mark.parametrize("special", ["nan", "-inf", float("inf"), "snan"])
def test_a_block_with_a_special_value_is_nan(fmt, special):
    block = one(["1", special], fmt)
    assert block.scale.is_nan
    assert (block.amax, block.multiplier, block.exponent) == (None, None, None)
    assert [(each.code, each.decoded, each.error) for each in block.elements] == [(zero_code(fmt), None, None)] * 2


def test_zeros_keep_their_signs_where_elements_have_them():
    for fmt in FORMATS.values():
        block = one(["0", "-0"], fmt)
        assert block.scale.code == fmt.scale.smallest_magnitude
        assert [each.decoded.negative for each in block.elements] == [False, isinstance(fmt.element, Format)]
        assert block.flags is Flags.NONE


def test_nvfp4_has_two_scales():
    first, second = quantize_blocks(["3"] * 16 + ["1.3", "0.1"], "nvfp4")
    assert first.tensor == second.tensor
    assert first.tensor.amax.as_fraction() == 3
    t = first.tensor.datum
    assert t == encode(Fraction(3, 2688), "fp32")
    assert second.wanted.as_fraction() == Fraction("1.3") / 6 / t.exact.as_fraction()
    assert second.scale == encode(second.wanted, E4M3)
    # Dividing by both scales is one exact division.
    s = second.scale.exact.as_fraction() * t.exact.as_fraction()
    assert second.elements[1].scaled.as_fraction() == Fraction("0.1") / s
    assert second.elements[1].code == encode(Fraction("0.1") / s, "e2m1").code
    assert become(second)[0] == 6 * s


def test_the_scale_of_nvfp4_goes_down_to_the_smallest_subnormal_and_up_to_the_largest():
    assert one(["1e-9"], "nvfp4", None, Context(), 1).scale == Datum(E4M3, 1)
    assert one(["0"], "nvfp4", None, Context(), 1).scale == Datum(E4M3, 1)
    large = one(["1e9"], "nvfp4", None, Context(), 1)
    assert large.scale == Datum(E4M3, E4M3.largest_magnitude)
    assert become(large) == [2688]
    assert one(["100"], "nvfp4", "nearest", Context(), 1).scale.exact.as_fraction() == 16
    assert one(["100"], "nvfp4", "up", Context(), 1).scale.exact.as_fraction() == 18


@pytest.mark.parametrize(("amax", "t"), [("1e-300", "0x1p-149"), ("1e300", "0x1.fffffep127"), ("0", "1")])
def test_the_tensors_scale_is_never_zero_nor_infinite(amax, t):
    assert one([amax], "nvfp4").tensor.datum == encode(t, "fp32")


def test_integers_round_as_integers():
    block = one(["1.9999", "-1.9999", "-0.5", "0.0234375", "1/64", "1e-9"], "mxint8")
    assert [each.code for each in block.elements] == [0x7F, 0x81, 0xE0, 0x02, 0x01, 0x00]
    assert [each.flags for each in block.elements] == [
        Flags.OVERFLOW | Flags.INEXACT, Flags.OVERFLOW | Flags.INEXACT, Flags.NONE, Flags.INEXACT, Flags.NONE,
        Flags.INEXACT,
    ]  # fmt: skip
    fmt = parse_block_format("mxint8")
    assert [element_value(code, fmt).as_fraction() for code in (0x7F, 0x80, 0xFF)] == [
        Fraction(127, 64), -2, Fraction(-1, 64),
    ]  # fmt: skip


def test_integers_are_not_flushed():
    values = ["1.5", "0.5", "-1/64", "0.3"]
    flushed = one(values, "mxint8", None, Context(flush_results=True))
    assert [each.code for each in flushed.elements] == [0x60, 0x20, 0xFF, 0x13]
    assert [each.flags for each in flushed.elements] == [each.flags for each in one(values, "mxint8").elements]


def test_values_are_taken_exactly_and_readings_as_they_were_read():
    block = one(["1/3", read("1/3", "fp16"), 0.1, Fraction(1, 3), encode("1/3", "fp16")], "mxfp8_e4m3")
    third, half = Fraction(1, 3), encode("1/3", "fp16").exact.as_fraction()
    assert [each.value.as_fraction() for each in block.elements] == [third, half, Fraction(0.1), third, half]
    assert block.literals == ("1/3", "1/3@fp16", None, None, None)


def test_draws_go_on_from_block_to_block():
    context = Context("SR", seed=4)
    blocks = quantize_blocks(["4"] + ["2.5"] * 63, "mxfp4", None, context)
    drawn = [each.rounded.drawn for block in blocks for each in block.elements]
    assert len(set(drawn)) == 64
    assert {code for block in blocks for code in become(block)} == {4, 2, 3}


def test_rules_have_their_names():
    assert parse_rule("OCP", FORMATS["mxfp4"]).name == "floor"
    assert parse_rule("up", FORMATS["nvfp4"]).name == "up"
    assert [rule.name for rule in rules_for(FORMATS["mxint8"])] == OWN
    message = (
        "scale must be one of floor even ceil up nearest for mxfp4, or the rule of a library .*, not 'flor'; did you"
    )
    with pytest.raises(ContextError, match=message):
        parse_rule("flor", FORMATS["mxfp4"])
    with pytest.raises(ContextError, match=r"scale must be one of nearest up 4over6 for nvfp4, or .*, not 'even'"):
        parse_rule("even", FORMATS["nvfp4"])


def test_contexts_saturate_and_do_not_flush_inputs():
    assert one(["957"], "mxfp8_e4m3", None, Context(overflow="native")).elements[0].code == 0x7E
    assert one(["1e300"], "mxfp8_e5m2").elements[0].code == 0x7B
    with pytest.raises(ContextError, match="flush_inputs is not for blocks"):
        element_context(Context(flush_inputs=True), FORMATS["mxfp4"])
    flushed = one(["4", "0.5"], "mxfp4", None, Context(flush_results=True))
    assert become(flushed) == [4, 0]


@pytest.mark.parametrize(
    ("values", "format", "tensor_scale", "error", "words"),
    [
        (["abc"], "mxfp4", None, LiteralError, "'abc' is not a number"),
        (["bits:0x3c"], "mxfp4", None, LiteralError, "write VALUE@FORMAT"),
        (["1e999999"], "mxfp4", None, UnsupportedError, "too long for the exact"),
        (["1"], "mxfp4", "1", UnsupportedError, "mxfp4 has no scale for a whole tensor"),
        (["1"], "nvfp4", "0", UnsupportedError, "tensor_scale must be a positive number of binary32, not '0'"),
        (["1"], "nvfp4", "-1", UnsupportedError, "tensor_scale must be a positive"),
        (["1"], "nvfp4", "nan", UnsupportedError, "tensor_scale must be a positive"),
        (["1"], "nvfp4", "1e99", UnsupportedError, "tensor_scale must be a positive"),
        (["1"], "nvfp4", "x", LiteralError, "'x' is not a number"),
    ],
)
def test_bad_input_is_named(values, format, tensor_scale, error, words):
    with pytest.raises(error, match=words):
        quantize_blocks(values, format, tensor_scale=tensor_scale)
