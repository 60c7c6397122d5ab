"""The NumPy lane against the scalar kernel: every format, direction and rule, codes and flags."""

import itertools

import numpy as np
import pytest

from floatlab import Context, Direction, parse_format
from floatlab.arrays import encode
from floatlab.arrays.integers import draws
from floatlab.errors import UnsupportedError
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


def assert_lanes_agree(format, context, x):
    codes, flags = encode(x, format, context=context, return_flags=True)
    expected, raised = encode(x, format, context=context, return_flags=True, lane="scalar")
    wrong = np.flatnonzero((codes != expected) | (flags != raised))
    if len(wrong):
        i = wrong[0]
        pytest.fail(f"{context}: {x[i]!r} gives {codes[i]:#x} {flags[i]}, and {expected[i]:#x} {raised[i]} scalar")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_the_numpy_lane_is_the_scalar_kernel(format, dtype):
    x = telling(format, dtype, 40)
    for i, direction in enumerate(Direction):
        for rules in RULES[i :: 8 * 6]:
            assert_lanes_agree(format, Context(direction, seed=i, **rules), x)


@pytest.mark.parametrize("format", [f for f in FORMATS if f.width <= 8], ids=lambda each: each.name)
def test_the_table_is_the_same_rounding(format, monkeypatch):
    import floatlab.arrays.conversion as conversion

    monkeypatch.setattr(conversion, "BLOCK", 50)  # a table is made for what is longer than a block
    x = telling(format, np.float32, 200)
    for i, direction in enumerate(Direction):
        for rules in RULES[i :: 8 * 12]:
            assert_lanes_agree(format, Context(direction, **rules), x)


@pytest.mark.slow
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_the_numpy_lane_is_the_scalar_kernel_on_many_values(format, dtype):
    for i, direction in enumerate(Direction):
        x = telling(format, dtype, 3000, seed=i)
        for rules in RULES[i::48]:
            assert_lanes_agree(format, Context(direction, seed=i, **rules), x)


@pytest.mark.parametrize("format", ["fp16", "bf16", "e4m3", "e8m0", "fp32"])
def test_the_numpy_lane_serves_what_it_says(format):
    x = np.array([1.0, 2.5, -3.0])
    assert np.array_equal(encode(x, format, lane="numpy"), encode(x, format, lane="scalar"))


def test_what_no_lane_of_integers_can_do_is_done_one_by_one():
    x = np.array([1.0, 5e-324, -1e308])
    wide = parse_format("e15m48")
    assert np.array_equal(encode(x, wide), encode(x, wide, lane="scalar"))
    with pytest.raises(UnsupportedError, match="lane numpy cannot round into e15m48"):
        encode(x, wide, lane="numpy")


def test_draws_are_the_documented_hash():
    for seed in (0, 7, 2**64 - 1):
        assert draws(seed, 5, 20).tolist() == [draw(seed, index) for index in range(5, 25)]


def test_stochastic_rounding_does_not_depend_on_blocks(monkeypatch):
    import floatlab.arrays.conversion as conversion

    x = np.random.default_rng(1).standard_normal(1000).astype(np.float32)
    whole = encode(x, "e4m3", context=Context("SR", seed=3))
    monkeypatch.setattr(conversion, "BLOCK", 7)
    assert np.array_equal(whole, encode(x, "e4m3", context=Context("SR", seed=3)))
    assert not np.array_equal(whole, encode(x, "e4m3", context=Context("SR", seed=4)))
