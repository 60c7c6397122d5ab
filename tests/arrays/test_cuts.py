"""The fast path of the NumPy lane, compared with the path that has all rules, and with NumPy's own casts."""

from functools import partial

import numpy as np
import pytest

from floatlab import Context, Direction, parse_format
from floatlab.arrays.conversion import encode
from floatlab.arrays.lanes.numpy_rounding import compared_draws, draws, encode_block
from floatlab.arrays.lanes.numpy_shortcuts import FastRounder, has_fast_path
from floatlab.arrays.lanes.parameters import DOUBLE, SINGLE, can_round, container, rounding_rule_for
from tests.arrays.values import telling

SOURCES = {SINGLE: np.float32, DOUBLE: np.float64}
SIZES = [(w, t) for w in (1, 2, 5, 8, 11) for t in (0, 1, 2, 10, 22, 23, 51, 52)]
KINDS = [parse_format(name) for name in ("e8m0", "e4m3", "e5m2fnuz", "p3109_k8p1ue", "p3109_k8p4se", "e3m2f")]


def words_for(format, dtype, count, seed):
    """Return words near every boundary of a format, and words of random bits."""
    edges = telling(format, dtype, count, seed).view(f"u{dtype().itemsize}")
    bits = np.random.default_rng(seed).integers(0, 1 << 8 * dtype().itemsize, count, f"u{dtype().itemsize}")
    return np.concatenate([edges, bits])


def sized(w, t):
    """Return a format with these widths of exponent and significand; with one exponent bit, all codes are numbers."""
    return parse_format(f"e{w}m{t}{'f' if w == 1 else ''}")


def slowly(rule, words, drawn):
    return encode_block(words, rule, drawn)


def assert_quick_is_slow(format, source, count, seed=0):
    """Assert that the fast path gives the results of the slow one, in every direction; return how often it was used."""
    words, tried = words_for(format, SOURCES[source], count, seed), 0
    for i, direction in enumerate(Direction):
        context = Context(
            direction, seed=i, overflow=("native", "saturate")[i % 2], tininess=("after", "before")[i % 3 > 1]
        )
        rule = rounding_rule_for(format, context, source)
        if not has_fast_path(rule):
            continue
        drawn = draws(i, 0, len(words)) if direction.is_stochastic else None
        expected, raised = encode_block(words, rule, drawn)
        quick = FastRounder(rule, partial(draws, i), partial(slowly, rule))
        codes, flags = np.empty(len(words), container(format)), np.empty(len(words), np.uint8)
        quick(words, 0, codes, flags)
        assert np.array_equal(codes, expected), (format.name, direction)
        assert np.array_equal(flags, raised), (format.name, direction)
        quick(words, 0, codes, None)
        assert np.array_equal(codes, expected), (format.name, direction)
        tried += 1
    return tried


@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
def test_every_kind_of_format_is_rounded_the_quick_way_as_the_slow_one(source):
    tried = sum(
        assert_quick_is_slow(format, source, 100)
        for format in [sized(w, t) for w, t in SIZES if 1 < w + t < source.width] + KINDS
        if can_round(source, format)
    )
    assert tried > 120


@pytest.mark.slow
@pytest.mark.parametrize("source", SOURCES, ids=lambda each: each.name)
@pytest.mark.parametrize("w", range(1, 12))
def test_every_size_of_format_is_rounded_the_quick_way_as_the_slow_one(source, w):
    for t in range(53):
        if 1 < w + t < source.width and can_round(source, format := sized(w, t)):
            assert_quick_is_slow(format, source, 1000, t)


def test_the_formats_that_matter_go_the_quick_way():
    for name in ("fp16", "bf16", "tf32", "e4m3", "e5m2", "e2m1", "e8m0"):
        for source in SOURCES:
            if can_round(source, parse_format(name)):
                assert has_fast_path(rounding_rule_for(parse_format(name), Context("RTN"), source)), name


@pytest.mark.parametrize(
    ("dtype", "to"), [(np.float32, np.float16), (np.float64, np.float16), (np.float64, np.float32)]
)
def test_to_nearest_even_numpy_casts_alike(dtype, to):
    format = parse_format(np.dtype(to).name)
    x = words_for(format, dtype, 100_000, 3).view(dtype)
    x = x[~np.isnan(x)]
    with np.errstate(all="ignore"):
        expected = x.astype(to)
    assert np.array_equal(encode(x, format, lane="numpy"), expected.view(f"u{expected.itemsize}"))


@pytest.mark.parametrize("direction", Direction)
def test_pieces_are_one_array(direction):
    # More than two pieces, with deferred elements in all of them.
    words = np.resize(words_for(parse_format("fp16"), np.float32, 20_000, 4), 70_000)
    context = Context(direction, seed=11)
    codes, flags = encode(words.view(np.float32), "fp16", context=context, lane="numpy", return_flags=True)
    rule = rounding_rule_for(parse_format("fp16"), context, SINGLE)
    drawn = compared_draws(context, 0, len(words)) if direction.is_stochastic else None
    expected, raised = encode_block(words, rule, drawn)
    assert np.array_equal(codes, expected)
    assert np.array_equal(flags, raised)


def test_codes_may_go_where_words_were():
    x = words_for(parse_format("tf32"), np.float32, 70_000, 5).view(np.float32)
    for direction in ("RNE", "RTO", "SR"):
        expected = encode(x, "e8m23", direction), encode(x, "e7m20", direction)
        for format, wanted in zip(("e8m23", "e7m20"), expected, strict=True):
            here = x.copy()
            into = here.view(np.uint32)
            assert encode(here, format, direction, out=into, lane="numpy") is into
            assert np.array_equal(into, wanted), (format, direction)
