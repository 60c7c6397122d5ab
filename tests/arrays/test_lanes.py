"""The NumPy lane and the compiled lane against the scalar kernel: every format, direction and rule, codes and flags."""

import itertools

import numpy as np
import pytest

from floatlab import Context, Direction, Flags, parse_format
from floatlab.arrays.conversion import decode, encode
from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.numpy_rounding import draws
from floatlab.arrays.lanes.parameters import WORDS, can_round
from floatlab.errors import MissingPartError, UnsupportedError
from floatlab.formats import CATALOG, Format
from floatlab.numbers.rounding import draw
from tests.arrays.values import telling

HANDMADE = [
    Format("no_subnormals", 4, 4, subnormals=False),
    Format("one_digit", 1, 4),
    Format("even_codes", 1, 4, ties_to_even_code=True),
    *(
        parse_format(name)
        for name in ("e6m9", "e3m2fnuz", "p3109_k8p1ue", "p3109_k6p3uf", "p3109_k8p3se", "e9m22", "e2m1f")
    ),
]
FORMATS = [row.format for row in CATALOG if row.format.width <= 64] + HANDMADE
RULES = [
    dict(zip(("overflow", "absent", "tininess", "flush_inputs", "flush_results", "nan"), rules, strict=True))
    for rules in itertools.product(
        ("native", "saturate", "propagate"), ("largest", "zero", "nan"), ("after", "before"),
        (False, True), (False, True), ("first", "riscv"),
    )
]  # fmt: skip


LANES = ["numpy", "compiled"] if compiled.is_built() else ["numpy"]


def assert_lanes_agree(format, context, x):
    """Assert that all lanes agree with the scalar lane, with and without flags, which use different loops."""
    expected, raised = encode(x, format, context=context, return_flags=True, lane="scalar")
    # Without overflows, the compiled lane uses a faster path.
    small = np.abs(x) <= float(min(format.largest, int(np.finfo(np.float32).max)))
    for lane in LANES:
        codes, flags = encode(x, format, context=context, return_flags=True, lane=lane)
        wrong = np.flatnonzero((codes != expected) | (flags != raised))
        if len(wrong):
            i = wrong[0]
            said = f"{codes[i]:#x} {flags[i]}, and {expected[i]:#x} {raised[i]} scalar"
            pytest.fail(f"{lane} {context}: {x[i]!r} gives {said}")
        assert np.array_equal(encode(x, format, context=context, lane=lane), expected)
        if not context.rounding.is_stochastic:
            assert np.array_equal(encode(x[small], format, context=context, lane=lane), expected[small])


def test_the_compiled_lane_is_there_or_says_so():
    if compiled.is_built():
        assert encode([1.0], "fp16", lane="compiled").tolist() == [0x3C00]
    else:
        with pytest.raises(MissingPartError, match="lane compiled was not built"):
            encode([1.0], "fp16", lane="compiled")


@pytest.mark.one_in(6)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_the_lanes_are_the_scalar_kernel(format, dtype):
    x = telling(format, dtype, 40)
    for i, direction in enumerate(Direction):
        for rules in RULES[i :: 8 * 6]:
            assert_lanes_agree(format, Context(direction, seed=i, **rules), x)


@pytest.mark.one_in(20)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", [*FORMATS, parse_format("Binary8p4sf")], ids=lambda each: each.name)
def test_saturation_signs_and_few_random_bits_in_the_lanes(format, dtype):
    x = telling(format, dtype, 20)
    negatives = ("native",) if format.signed else ("native", "zero", "drop")
    kinds = itertools.product(Direction, ("native", "saturate", "propagate", "none", "none-nan"), negatives)
    for i, (direction, overflow, negative) in enumerate(kinds):
        bits = (0, 1, 3, 16, 30)[i % 5]
        drawn = i * 7919 % (1 << bits) if i % 2 and direction.has_few_bits else None
        context = Context(direction, i, overflow, random_bits=bits, draw=drawn, negative=negative)
        assert_lanes_agree(format, context, x)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("format", [f for f in FORMATS if f.width <= 8], ids=lambda each: each.name)
def test_the_table_is_the_same_rounding(format, monkeypatch):
    from floatlab.arrays.lanes import numpy_rounding

    monkeypatch.setattr(numpy_rounding, "_WORTH_A_TABLE", 50)
    x = telling(format, np.float32, 200)
    for i, direction in enumerate(Direction):
        for rules in RULES[i :: 8 * 12]:
            assert_lanes_agree(format, Context(direction, **rules), x)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_the_lanes_are_the_scalar_kernel_on_100_000_values(format, dtype):
    third = len(RULES) // 3  # the rules for one kind of overflow
    for i, direction in enumerate(Direction):
        x = telling(format, dtype, 25_000, seed=i)
        assert len(x) > 100_000
        for way in range(3):
            rules = RULES[way * third + (i * 37 + way * 11) % third]
            assert_lanes_agree(format, Context(direction, seed=i, **rules), x)


@pytest.mark.parametrize("format", ["fp16", "bf16", "e4m3", "e8m0", "fp32"])
def test_the_numpy_lane_serves_what_it_says(format):
    x = np.array([1.0, 2.5, -3.0])
    assert np.array_equal(encode(x, format, lane="numpy"), encode(x, format, lane="scalar"))


def test_what_no_lane_of_integers_can_do_is_done_one_by_one():
    x = np.array([1.0, 5e-324, -1e308])
    wide = parse_format("e15m48")
    assert np.array_equal(encode(x, wide), encode(x, wide, lane="scalar"))
    with pytest.raises(UnsupportedError, match="lane numpy cannot round binary64 into e15m48"):
        encode(x, wide, lane="numpy")


def test_draws_are_the_documented_hash():
    for seed in (0, 7, 2**64 - 1):
        assert draws(seed, 5, 20).tolist() == [draw(seed, index) for index in range(5, 25)]


def test_stochastic_rounding_does_not_depend_on_blocks(monkeypatch):
    from floatlab.arrays.lanes import dispatch

    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    whole = encode(x, "e4m3", context=Context("SR", seed=3))
    monkeypatch.setattr(dispatch, "BLOCK", 7)
    assert np.array_equal(whole, encode(x, "e4m3", context=Context("SR", seed=3)))
    assert not np.array_equal(whole, encode(x, "e4m3", context=Context("SR", seed=4)))


def random_words(dtype, count, seed):
    """Return words of random bits: all exponents are equally frequent, and NaNs and infinities occur."""
    bits = np.random.default_rng(seed).integers(0, 1 << 8 * np.dtype(dtype).itemsize, count, f"u{dtype().itemsize}")
    return bits.view(dtype)


def assert_compiled_is_numpy(format, x, rules_each):
    for i, direction in enumerate(Direction):
        for rules in RULES[i::rules_each]:
            context = Context(direction, seed=i, **rules)
            codes, flags = encode(x, format, context=context, return_flags=True, lane="compiled")
            expected, raised = encode(x, format, context=context, return_flags=True, lane="numpy")
            assert np.array_equal(codes, expected)
            assert np.array_equal(flags, raised)
            assert np.array_equal(encode(x, format, context=context, lane="compiled"), expected)


needs_extension = pytest.mark.skipif(not compiled.is_built(), reason="the extension was not built")


@pytest.mark.one_in(3)
@needs_extension
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", [f for f in FORMATS if f.name != "x87"], ids=lambda each: each.name)
def test_the_compiled_lane_is_the_numpy_lane(format, dtype):
    if not any(can_round(word, format) for word in WORDS):
        pytest.skip("no lane of integers has this format")
    assert_compiled_is_numpy(format, random_words(dtype, 10_000, 1), 49)


@needs_extension
@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", ["fp16", "bf16", "tf32", "e4m3", "e5m2", "e8m0", "e4m3fnuz", "e3m2", "e2m1"])
def test_the_compiled_lane_is_the_numpy_lane_on_ten_million_values(format, dtype):
    assert_compiled_is_numpy(parse_format(format), random_words(dtype, 10**7, 2), 192)


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("format", [f for f in FORMATS if f.width <= 16], ids=lambda each: each.name)
def test_every_small_code_is_read_as_the_scalar_lane_reads_it(format, lane):
    codes = np.arange(1 << format.width, dtype=np.uint16)[:: max(1, (1 << format.width) // 8192)]
    for dtype in (np.float32, np.float64):
        try:
            expected = decode(codes, format, dtype, lane="scalar")
        except UnsupportedError:
            continue
        found = decode(codes, format, dtype, lane=lane)
        bits = f"u{found.itemsize}"
        assert np.array_equal(found.view(bits), expected.view(bits))


@pytest.mark.parametrize("lane", LANES)
@pytest.mark.parametrize("format", ["fp32", "fp64", "tf32", "e6m9", "e7m20", "e9m22"])
def test_wide_codes_are_read_as_the_scalar_lane_reads_them(format, lane):
    fmt = parse_format(format)
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 1 << fmt.width, 2000, np.uint64)
    codes = np.concatenate([codes, codes & np.uint64((1 << fmt.trailing_bits) - 1)])  # zeros and subnormal numbers
    found, expected = decode(codes, fmt, lane=lane), decode(codes, fmt, lane="scalar")
    assert np.array_equal(found.view(f"u{found.itemsize}"), expected.view(f"u{found.itemsize}"))


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(threads, monkeypatch):
    from floatlab.arrays.lanes import dispatch

    monkeypatch.setattr(dispatch, "BLOCK", 100)
    x = np.random.default_rng(1).standard_normal((37, 41)).astype(np.float32)
    context = Context("SR", seed=3)
    for lane in LANES:
        found, flags = encode(x.T, "e4m3", context=context, lane=lane, threads=threads, return_flags=True)
        expected, raised = encode(x.T, "e4m3", context=context, lane="scalar", return_flags=True)
        assert np.array_equal(found, expected)
        assert np.array_equal(flags, raised)


@pytest.mark.parametrize("shape", [(1 << 17, 1), (7, 1 << 15), (1 << 16, 2)])
def test_threads_write_their_own_shares_only(shape):
    x = np.full(shape, 1.5, np.float32)
    for lane in LANES:
        for given in (x, x[::-1], x.T):
            assert (encode(given, "e4m3", threads=3, lane=lane) == 0x3C).all()


@pytest.mark.parametrize("count", [0, 1, 5, 1000, 70_001])
def test_counts_are_those_of_the_flags_of_each_element(count):
    x = (np.random.default_rng(count).standard_normal(count) * 300).astype(np.float32)
    flags = encode(x, "e4m3", return_flags=True)[1]
    counts = encode(x, "e4m3", return_flags="counts")[1]
    assert counts == {flag: int(((flags & flag.value) != 0).sum()) for flag in Flags}
