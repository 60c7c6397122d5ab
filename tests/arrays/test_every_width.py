"""All widths of exponent and significand that fit into a word, in every lane: codes, values, flags near boundaries."""

import itertools
import zlib

import numpy as np
import pytest

from floatlab import Context, Direction, parse_format
from floatlab.arith.operands import holds
from floatlab.arrays.container.array import FloatArray
from floatlab.arrays.conversion import decode, encode, quantize
from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.parameters import can_round, container, word_of
from floatlab.errors import FormatError
from floatlab.formats import Format
from floatlab.numbers import Datum, Exact, round_exact

SOURCES = {name: parse_format(name) for name in ("fp16", "bf16", "fp32", "fp64")}
LANES = ["numpy", "compiled"] if compiled.is_built() else ["numpy"]
SHARES = 24
CONTEXTS = [
    Context(direction, seed=7, overflow=overflow, tininess=tininess)
    for direction, (overflow, tininess) in zip(
        Direction, itertools.cycle((("native", "after"), ("saturate", "before"), ("propagate", "after")))
    )
] + [Context("RNE", tininess="before"), Context("SR", seed=1, tininess="before"), Context("RTP", flush_results=True)]


def widths(word):
    """Return all formats that the integer lane of a word size can round to, with IEEE specials and with others."""
    found = []
    for w, t in itertools.product(range(1, word.exponent_bits + 1), range(word.trailing_bits + 1)):
        for suffix in ("", "fn", "f") if w == 1 else ("", "fn"):
            try:
                format = parse_format(f"e{w}m{t}{suffix}")
            except FormatError:  # no normal number is left
                continue
            if can_round(word, format):
                found.append(format)
    return found


EVERY = sorted({format.name: format for name in ("fp32", "fp64") for format in widths(SOURCES[name])}.items())
# Ranges far from that of the word: all numbers of the word are tiny, or infinity is the word of the smallest normal
# number.
MOVED = [Format(f"moved_{bias}", 4, 4, bias=bias) for bias in (-120, -127, -128, -129, -200, -1025, -1100)]
ODD = [parse_format(name) for name in ("p3109_k31p24se", "p3109_k30p24sf", "e7m23fnuz", "e8m23fnuz", "e5m23fn")]


def words_around(format, source):
    """Return codes of a source on both sides of all boundaries: codes of the format, ties, ends of the range."""
    top, normal = format.largest_magnitude, format.smallest_normal_magnitude
    codes = {0, 1, 2, 3, normal - 2, normal - 1, normal, normal + 1, top // 2, top // 2 + 1, top - 2, top - 1, top}
    exact = [Datum(format, code).exact for code in sorted(codes) if 0 <= code <= top]
    beyond = Exact(False, 1, format.emax + 1)
    exact += [beyond, Exact(False, (2 << format.precision) - 1, format.emax - format.precision)]
    exact += [Exact(False, 1, format.qmin - 1), Exact(False, 1, format.qmin - 40)]
    exact.append(Exact(False, (2 << format.precision) - 1, format.emin - format.precision - 1))  # nearly 2^emin
    exact += [Exact(False, a.c * 2 + b, a.q - 1) for a in exact for b in (-1, 1) if a.c]  # ties and their neighbours
    words = set()
    for x in exact:
        word = round_exact(x, source, Context("RTZ")).code
        words |= {min(max(word + step, 0), source.largest_magnitude) for step in (-2, -1, 0, 1, 2)}
    infinity, smallest = source.infinity_magnitude, source.smallest_normal_magnitude
    words |= {0, 1, smallest - 1, smallest, infinity - 1, infinity, infinity + 1, infinity | source.quiet_bit}
    words.add((1 << source.magnitude_bits) - 1)
    both = [word | sign for word in sorted(words) for sign in (0, 1 << source.magnitude_bits)]
    return np.array(both, container(source))


def assert_lanes_agree(format, source, contexts=CONTEXTS, room=40):
    x = FloatArray.from_codes(words_around(format, source), source)
    for context in contexts:
        codes, raised = encode(x, format, context=context, return_flags=True, lane="scalar")
        for lane in LANES:
            said = f"{lane}, {source.name} into {format.name}, {context}"
            found, flags = encode(x, format, context=context, return_flags=True, lane=lane)
            wrong = np.flatnonzero((found != codes) | (flags != raised))
            if len(wrong):
                i = wrong[0]
                pytest.fail(f"{said}: {x.codes[i]:#x} gives {found[i]:#x} {flags[i]}, scalar {codes[i]:#x} {raised[i]}")
            assert np.array_equal(encode(x, format, context=context, lane=lane), codes), said
            if not context.rounding.is_stochastic:
                # Without overflows, faster paths are used.
                finite = (codes & codes.dtype.type((1 << format.magnitude_bits) - 1)) <= format.largest_magnitude
                short = finite & ((raised & 4) == 0)
                few = FloatArray.from_codes(x.codes[short], source)
                found, flags = encode(few, format, context=context, return_flags=True, lane=lane)
                assert np.array_equal(found, codes[short]), said
                assert np.array_equal(flags, raised[short]), said
                assert np.array_equal(encode(few, format, context=context, lane=lane), codes[short]), said
                if not holds(SOURCES["fp64"], format):
                    continue
                values = quantize(few, format, context=context, lane=lane)
                expected = decode(codes[short], format, values.dtype, lane="scalar")
                assert np.array_equal(values.view(f"u{values.itemsize}"), expected.view(f"u{values.itemsize}")), said


def pairs():
    """Yield every format with every source format from which an integer lane rounds to it."""
    for (name, format), (which, source) in itertools.product(EVERY, SOURCES.items()):
        word = SOURCES["fp64"] if which == "fp64" else SOURCES["fp32"]
        if can_round(word, format) or can_round(SOURCES["fp64"], format):
            yield f"{which} {name}", format, source


def test_a_format_with_all_digits_of_the_word_and_a_narrower_range():
    for lane in ("scalar", *LANES):
        assert encode(np.float32([1.5]), "e7m23", lane=lane).tolist() == [0x1FC00000]
        assert encode(np.float64([1.5]), "e10m52", lane=lane).tolist() == [0x1FF8 << 48]


@pytest.mark.parametrize("format", MOVED + ODD, ids=lambda each: each.name)
def test_what_lies_at_the_edge_of_a_word(format):
    for source in SOURCES.values():
        assert_lanes_agree(format, source, CONTEXTS[::3])


def test_every_width_in_every_lane_a_share():
    share = [each for each in pairs() if zlib.crc32(each[0].encode()) % 128 == 0]
    assert len(share) > 20
    for i, (_, format, source) in enumerate(share):
        assert_lanes_agree(format, source, CONTEXTS[i % 3 :: 3])


@pytest.mark.parametrize("name", ["e1m23f", "e2m23", "e5m23", "e7m23", "e8m23", "e10m52"])
def test_every_digit_of_a_word_is_kept(name):
    format = parse_format(name)
    for source in SOURCES.values():
        assert_lanes_agree(format, source, [Context("RNE"), Context("RTO")])


@pytest.mark.slow
@pytest.mark.parametrize("share", range(SHARES))
def test_every_width_in_every_lane(share):
    for name, format, source in pairs():
        if zlib.crc32(name.encode()) % SHARES == share:
            assert_lanes_agree(format, source)


def test_the_words_are_around_every_edge():
    format, source = parse_format("e4m3"), SOURCES["fp32"]
    words = set(words_around(format, source).tolist())
    for exact in (Exact(False, 1, format.qmin - 1), Exact(False, 29, 4), Exact(False, 31, -11)):
        word = round_exact(exact, source).code
        assert {word - 1, word, word + 1} <= words
    assert {word_of(Datum(format, code), source) for code in (1, 8, 126)} <= words
