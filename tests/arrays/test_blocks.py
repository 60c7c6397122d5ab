"""Block formats on arrays: compared with the scalar derivation bit for bit, and elements with other libraries."""

from fractions import Fraction

import numpy as np
import pytest

from floatlab import Context, arrays, decode, encode, parse_format
from floatlab.arith import blocks as scalar
from floatlab.arrays.blocks import decode_blocks, encode_blocks, quantize_blocks
from floatlab.arrays.quotients import divide_to_odd, narrow_to_odd
from floatlab.arrays.scales import Blocks
from floatlab.errors import ContextError, FloatlabError, FormatError, RecipeError, UnsupportedError
from floatlab.formats import Format
from floatlab.formats.blocks import BLOCK_CATALOG, BlockFormat, parse_block_format
from floatlab.formats.recipes import rules_for
from floatlab.numbers import Direction
from floatlab.numbers.rounding import draw

FORMATS = [row.format for row in BLOCK_CATALOG if not row.format.flat and not row.format.groups]
NAMES = [fmt.name for fmt in FORMATS]
WAYS = [(fmt, rule.name) for fmt in FORMATS for rule in rules_for(fmt) if rule.is_exact and rule.choice is None]
DTYPES = (np.float32, np.float64, np.float16)


def hostile(fmt, dtype, kinds, rng):
    """Return a block of each kind: ordinary numbers, a wide range, ties, extremes, zeros, special values."""
    size, digits = fmt.block, fmt.magnitudes.precision
    info = np.finfo(dtype)
    least, most = int(np.log2(float(info.smallest_subnormal))), info.maxexp - 1
    blocks = []
    with np.errstate(all="ignore"):
        for kind in kinds:
            e = int(rng.integers(least, most)) if kind % 3 else 0
            block = rng.standard_normal(size) * 2.0 ** max(min(e, 1000), -1000)
            if kind % 12 == 1:  # every binade below the largest
                block = np.ldexp(1 + rng.random(size), e - np.arange(size))
            elif kind % 12 == 2:  # scaled by a power of two, these are element numbers or ties
                block = rng.integers(-(4 << digits), 4 << digits, size) * 2.0 ** max(e - digits, -1074)
            elif kind % 12 == 3:
                block = np.full(size, [info.max, info.smallest_subnormal, info.tiny, -info.max][kind % 4])
            elif kind % 12 == 4:
                block = np.where(rng.random(size) < 0.5, 0.0, -0.0)
            elif kind % 12 == 5:
                block[int(rng.integers(size))] = [np.nan, np.inf, -np.inf][kind % 3]
            elif kind % 12 == 6:  # the largest element at, below and above the thresholds of the rules
                turn = [1.0, 1.5, 2.0, float(fmt.magnitudes.largest), 2 - 2.0**-digits, 1.75][kind % 6]
                block /= np.abs(block).max() or 1
                near = np.asarray(np.ldexp(turn, e // 2), dtype)
                block = block * float(near) * 0.9
                block[0] = [near, np.nextafter(near, dtype(0)), np.nextafter(near, dtype(np.inf))][kind % 3]
            elif kind % 12 == 7:  # one large, the rest tiny
                block *= 2.0**-60
                block[-1] = 2.0 ** (e // 2)
            elif kind % 12 == 8:  # only the first few
                block[int(rng.integers(1, size)) :] = 0
            elif kind % 12 == 9:  # all binades between smallest and largest
                block = np.copysign(info.smallest_subnormal * rng.integers(1, 9, size), rng.standard_normal(size))
                block[0] = info.max
            blocks.append(block.astype(dtype))
    return np.stack(blocks)


def derived(x, fmt, rule, context, tensor_scale=None):
    """Return scales, codes and exact values by the scalar derivation."""
    flat = [float(each) for each in x.reshape(-1)]
    found = scalar.quantize_blocks(flat, fmt, rule, context, tensor_scale)
    scales = [block.scale.code for block in found]
    codes = [element.code for block in found for element in block.elements]
    values = [element.decoded for block in found for element in block.elements]
    return scales, codes, values, found[0].tensor


def check(x, fmt, rule, context, tensor_scale=None):
    scales, codes, values, tensor = derived(x, fmt, rule, context, tensor_scale)
    ways = {"scale": rule, "context": context, "tensor_scale": tensor_scale}
    got = encode_blocks(x, fmt, **ways)
    assert got.scales.reshape(-1).tolist() == scales
    assert got.codes.reshape(-1).tolist() == codes
    assert got.tensor_scale == (None if tensor is None else np.float32(float(tensor.datum)))
    exact = decode_blocks(got, fmt, dtype=np.float64).reshape(-1)
    for mine, truth in zip(exact.tolist(), values, strict=True):
        if truth is None:
            assert np.isnan(mine)
        else:
            assert Fraction(mine) == truth.as_fraction()
            assert (np.copysign(1, mine) < 0) == truth.negative
    with np.errstate(over="ignore"):
        rounded = exact.astype(np.float64 if x.dtype == np.float64 else np.float32)
    for values in (quantize_blocks(x, fmt, **ways), decode_blocks(got, fmt, dtype=rounded.dtype)):
        assert values.dtype == rounded.dtype
        assert values.tobytes() == rounded.reshape(x.shape).tobytes() or np.array_equal(
            values, rounded.reshape(x.shape), equal_nan=True
        )


@pytest.mark.one_in(8)
@pytest.mark.parametrize(("fmt", "rule"), WAYS, ids=lambda each: getattr(each, "name", "").lower())
def test_arrays_have_the_bits_of_the_scalar_derivation(fmt, rule):
    rng = np.random.default_rng(list(f"{fmt.name}{rule}".encode()))
    for turn, direction in enumerate(Direction):
        x = hostile(fmt, DTYPES[turn % 3], [*range(3 * turn, 3 * turn + 3), 9], rng)
        check(x, fmt, rule, Context(direction, seed=turn, flush_results=turn == 5))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("fmt", "rule"), WAYS, ids=lambda each: getattr(each, "name", "").lower())
def test_arrays_have_the_bits_of_many_scalar_derivations(fmt, rule, dtype):
    rng = np.random.default_rng(list(f"{fmt.name}{rule}{dtype}".encode()))
    for direction in Direction:
        x = hostile(fmt, dtype, range(60), rng)
        check(x, fmt, rule, Context(direction, seed=3))


def tie_blocks(points, t):
    """Return blocks of nvfp4 with quotients at these points and next to them, for a tensor scale t."""
    at = np.array([float(Fraction(point) * 448 * Fraction(float(t))) for point in points])
    for x in (at, np.nextafter(at, 0), np.nextafter(at, 9e9)):
        yield np.concatenate([[2688 * float(t)], -x, np.zeros(15 - len(x))])


def test_quotients_next_to_ties_fall_on_their_side():
    rng = np.random.default_rng(5)
    for _ in range(16):
        t = np.float32(rng.uniform(1, 2))
        for block in tie_blocks([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0], t):
            check(block, parse_block_format("nvfp4"), "nearest", Context(), t)


def test_quotients_next_to_a_draw_fall_on_their_side():
    # A draw of 32 digits is compared with the tail: a quotient must not be rounded across it.
    rng = np.random.default_rng(7)
    fmt = parse_block_format("nvfp4")
    for seed in range(12):
        t = np.float32(rng.uniform(1, 2))
        turns = [4 + 2 * Fraction(draw(seed, index) + 1, 1 << 32) for index in range(1, 16)]
        for block in tie_blocks(turns, t):
            check(block, fmt, "nearest", Context("SR", seed=seed), t)


@pytest.mark.parametrize("extreme", [0, 880, -1040])
def test_quotients_are_rounded_to_odd(extreme):
    rng = np.random.default_rng(6)
    d = np.ldexp(rng.integers(1 << 27, 1 << 28, 2000).astype(float), -27)
    short = rng.integers(1, 64, 2000) * d  # exactly short quotients, and their neighbours
    x = np.concatenate([short, np.nextafter(short, 0), np.nextafter(short, 9e9), rng.standard_normal(2000)])
    x, d = np.ldexp(x, extreme), np.tile(d, 4)
    for value, over, q in zip(x.tolist(), d.tolist(), divide_to_odd(x, d).tolist(), strict=True):
        truth = Fraction(value) / Fraction(over)
        if abs(truth) < Fraction(2) ** -190:
            assert Fraction(2) ** -202 < abs(Fraction(q)) < Fraction(2) ** -198
            continue
        error = truth - Fraction(q)
        assert abs(error) < Fraction(float(np.spacing(abs(q))))
        assert not error or int(np.float64(q).view(np.int64)) & 1
        assert np.sign(q) == np.sign(value)


def test_narrowing_to_odd_keeps_every_side():
    rng = np.random.default_rng(7)
    short = np.ldexp(rng.integers(1, 1 << 23, 3000).astype(float), rng.integers(-100, 90, 3000))
    x = np.concatenate([short, np.nextafter(short, 0), np.nextafter(short, 9e99), rng.standard_normal(3000)])
    x = np.concatenate([x, -x])
    narrow = narrow_to_odd(x.copy())
    exact = x.astype(np.float32).astype(float) == x
    assert np.array_equal(narrow[exact], x[exact])
    assert (narrow[~exact].view(np.uint32) & 1).all()
    assert (np.abs(narrow - x) < np.spacing(np.abs(narrow))).all()


def test_draws_are_numbered_through_the_whole_array():
    x = np.random.default_rng(1).standard_normal((3, 1 << 12, 32)).astype(np.float32)
    context = Context("SR", seed=9)
    codes = encode_blocks(x, "mxfp8_e4m3", context=context).codes
    picked = scalar.quantize_blocks([float(v) for v in x[2, -1]], "mxfp8_e4m3")  # the code of the scale, to decode it
    scaled = x[2, -1] / float(picked[0].scale)
    alone = arrays.encode(np.concatenate([np.zeros(x.size - 32, np.float32), scaled]), "e4m3", context=context)
    assert codes[2, -1].tolist() == alone[-32:].tolist()


@pytest.mark.parametrize("fmt", FORMATS, ids=NAMES)
@pytest.mark.parametrize("axis", [0, 1, -2, -1])
def test_blocks_lie_along_any_axis(fmt, axis):
    x = np.random.default_rng(2).standard_normal((64, 32, 96)).astype(np.float32)
    there = np.moveaxis(x, axis, -1)
    straight = encode_blocks(np.ascontiguousarray(there), fmt)
    turned = encode_blocks(x, fmt, axis)
    assert turned.codes.shape == x.shape
    assert np.array_equal(np.moveaxis(turned.codes, axis, -1), straight.codes)
    assert np.array_equal(np.moveaxis(turned.scales, axis, -1), straight.scales)
    assert encode_blocks(there, fmt) == straight  # not contiguous
    values = quantize_blocks(x, fmt, axis)
    assert np.array_equal(values, decode_blocks(turned, fmt, axis, dtype=np.float32))
    assert np.array_equal(np.moveaxis(values, axis, -1), quantize_blocks(there, fmt))


@pytest.mark.parametrize("fmt", FORMATS, ids=NAMES)
def test_many_slabs_are_one_array(fmt):
    x = np.random.default_rng(3).standard_normal((1 << 18) + 32).astype(np.float32)
    whole = encode_blocks(x, fmt)
    some = encode_blocks(x[-96:], fmt, tensor_scale=whole.tensor_scale)
    assert np.array_equal(whole.codes[-96:], some.codes)
    assert np.array_equal(quantize_blocks(x, fmt), decode_blocks(whole, fmt, dtype=np.float32))
    for direction in ("RTP", "SR"):
        chosen = encode_blocks(x, fmt, rounding=direction)
        assert chosen == encode_blocks(x, fmt, rounding=direction, lane="numpy")
        assert np.array_equal(quantize_blocks(x, fmt, rounding=direction), decode_blocks(chosen, fmt, dtype=np.float32))


@pytest.mark.parametrize("fmt", FORMATS, ids=NAMES)
def test_any_input_counts_as_what_it_is(fmt):
    values = [0.5, -3.0, 7.0, 0.0] * 8
    single = quantize_blocks(np.array(values, np.float32), fmt)
    assert single.dtype == np.float32
    ml_dtypes = pytest.importorskip("ml_dtypes")
    for kind in (np.float16, ml_dtypes.bfloat16, np.float64):
        found = quantize_blocks(np.array(values, kind), fmt)
        assert found.dtype == (np.float64 if kind is np.float64 else np.float32)
        assert np.array_equal(found.astype(np.float32), single)
    whole = quantize_blocks([int(2 * value) for value in values], fmt)
    assert whole.dtype == np.float32
    assert np.allclose(whole, 2 * single, rtol=1e-6)
    read_only = np.array(values, np.float32)
    read_only.flags.writeable = False
    assert np.array_equal(quantize_blocks(read_only, fmt), single)
    for shape in [(0,), (2, 0), (0, 32)]:
        empty = encode_blocks(np.zeros(shape, np.float32), fmt)
        assert empty.codes.shape == shape
        assert quantize_blocks(np.zeros(shape), fmt).shape == shape


def test_a_block_with_a_nan_or_an_infinity_is_nan_and_leaves_the_others():
    for fmt in FORMATS:
        x = np.ones((3, fmt.block), np.float32)
        x[1, 3], x[2, 0] = np.nan, -np.inf
        scales, codes = encode_blocks(x, fmt)
        assert scales.ravel()[1:].tolist() == [fmt.scale.nan_code] * 2
        assert not codes[1:].any()
        values = quantize_blocks(x, fmt)
        assert np.isfinite(values[0]).all()
        assert np.isnan(values[1:]).all()


def test_a_block_of_zeros_is_zeros():
    for fmt in FORMATS:
        blocks = encode_blocks(np.zeros(2 * fmt.block), fmt)
        assert blocks.scales.tolist() == [fmt.scale.smallest_magnitude] * 2
        assert not decode_blocks(blocks, fmt).any()
        assert blocks.tensor_scale in (None, 1)


def test_the_floor_of_nvfp4s_scales_is_the_smallest_subnormal():
    x = np.zeros((2, 16), np.float32)
    x[0, 0], x[1, 0] = 2688.0, 6 * 2.0**-9  # the tensor's scale is 1
    blocks = encode_blocks(x, "nvfp4")
    assert blocks.tensor_scale == 1
    assert blocks.scales.ravel().tolist() == [0x7E, 0x01]
    assert quantize_blocks(x, "nvfp4")[1, 0] == x[1, 0]
    x[1, 0] /= 5  # below it, the block has the numbers of e2m1
    assert encode_blocks(x, "nvfp4").scales.ravel().tolist() == [0x7E, 0x01]
    assert quantize_blocks(x, "nvfp4")[1, 0] == np.float32(2.0**-9)


ELEMENTS = {
    "mxfp8_e4m3": "float8_e4m3fn", "mxfp8_e5m2": "float8_e5m2", "mxfp6_e2m3": "float6_e2m3fn",
    "mxfp6_e3m2": "float6_e3m2fn", "mxfp4": "float4_e2m1fn",
}  # fmt: skip


@pytest.mark.parametrize("name", ELEMENTS)
def test_elements_are_those_of_ml_dtypes(name):
    ml_dtypes = pytest.importorskip("ml_dtypes")
    fmt = parse_block_format(name)
    # Every upper half of a float32, 0 to 2: the block's largest is 1, so the scale is 2^-emax.
    x = (np.arange(0x3F80, dtype=np.uint32) << 16).view(np.float32)
    x = np.concatenate([x, -x, np.nextafter(x, np.float32(1))]).reshape(-1, 32)
    x[:, 0] = 1
    scales, codes = encode_blocks(x, fmt)
    assert set(scales.ravel().tolist()) == {127 - fmt.element.emax}
    scaled = x * np.float32(2.0**fmt.element.emax)
    with np.errstate(all="ignore"):
        theirs = scaled.astype(getattr(ml_dtypes, ELEMENTS[name])).view(np.uint8)
    assert np.array_equal(codes, theirs)


@pytest.mark.parametrize("name", [*ELEMENTS, "mxint8"])
def test_quantized_blocks_are_those_of_gfloat(name):
    gfloat = pytest.importorskip("gfloat")
    block = pytest.importorskip("gfloat.block")
    formats = pytest.importorskip("gfloat.formats")
    theirs = next(f for f in formats.all_block_formats if f.name.removesuffix("_e2m1") == name)
    rng = np.random.default_rng(8)
    x = np.ldexp(rng.standard_normal((40, 32)), rng.integers(-100, 100, (40, 1))).astype(np.float32)
    x[0] = 0
    x[1, 0] = 1.9999  # rounds to 2, which int8 has on the negative side only
    for row, ours in zip(x.astype(np.float64), quantize_blocks(x, name), strict=True):
        found = block.quantize_block(theirs, row, block.compute_scale_amax, gfloat.RoundMode.TiesToEven)
        assert np.array_equal(found, ours.astype(np.float64))


@pytest.mark.parametrize("lane", [None, "numpy", "scalar"])
def test_integers_are_not_flushed(lane):
    x = np.resize(np.float32([1.5, 0.5, -1 / 64, 0.3]), 32)
    codes = encode_blocks(x, "mxint8", context=Context(flush_results=True), lane=lane).codes
    assert codes[:4].tolist() == [0x60, 0x20, 0xFF, 0x13]


def test_minus_two_is_the_one_number_of_int8_that_gfloat_gives_and_we_do_not():
    block = pytest.importorskip("gfloat.block")
    formats = pytest.importorskip("gfloat.formats")
    x = np.zeros(32)
    x[0] = -1.9999
    assert block.quantize_block(formats.format_info_mxint8, x, block.compute_scale_amax)[0] == -2
    blocks = encode_blocks(x, "mxint8")
    assert blocks.codes[0] == 0x81
    assert decode_blocks(blocks, "mxint8")[0] == -127 / 64
    assert decode_blocks((blocks.scales, blocks.codes - 1), "mxint8")[0] == -2


def test_scales_of_ones_own():
    # DeepSeek-V3's: fp8 in blocks of 128 with float32 scales.
    fmt = BlockFormat("fp8_128", parse_format("e4m3"), parse_format("fp32"), 128)
    rng = np.random.default_rng(4)
    x = (rng.standard_normal((4, 128)) * 1e-3).astype(np.float32)
    for direction in ("RNE", "SR", "RTP"):
        check(x, fmt, "nearest", Context(direction))
    for kind in (np.float32, np.float64):
        check(x.astype(kind) * 3, fmt.replace(tensor=parse_format("fp32")), "up", Context())
    # Scales of 51 digits: the product of a scale and a tie is not exact, and a quotient next to it must be rounded to
    # odd.
    wide = fmt.replace(scale=parse_format("e11m50"), block=32)
    for _ in range(20):
        amax = rng.random()
        scale = float(encode(Fraction(amax) / 448, "e11m50"))
        block = np.concatenate([[amax], (rng.integers(8, 16, 31) * 2 + 1) * scale])
        assert encode_blocks(block, wide).codes.tolist() == derived(block, wide, None, Context())[1]
    with pytest.raises(UnsupportedError, match="scales of 53 digits; arrays take at most 51"):
        encode_blocks(x, fmt.replace(scale=parse_format("fp64")))
    check(x[:, :6].reshape(-1), parse_block_format("mxfp4").replace(block=6), "even", Context())


@pytest.mark.one_in(4)
@pytest.mark.parametrize("dtype", DTYPES[:2])
@pytest.mark.parametrize("element", ["bf16", "e8m2", "e10m9"])
def test_elements_with_a_wide_range_are_rounded_once(element, dtype):
    rng = np.random.default_rng(11)
    for scale in ("e8m0", "fp32"):
        fmt = BlockFormat("wide", parse_format(element), parse_format(scale), 8)
        for direction in Direction:
            check(hostile(fmt, dtype, (1, 3, 7, 9), rng), fmt, rules_for(fmt)[0].name, Context(direction, seed=3))


def test_a_tensor_scale_beyond_binary64s_range_is_worked_out_exactly():
    # The largest number of such blocks is not a float, so the tensor's scale is not a quotient of floats.
    fmt = BlockFormat("own", parse_format("e2m1f"), parse_format("e11m3"), 16, parse_format("fp32"))
    assert fmt.element.largest * fmt.scale.largest > Fraction(float(np.finfo(np.float64).max))
    x = np.float64([2.0**1000] * 16)
    expected = scalar.quantize_blocks(x.tolist(), fmt)[0]
    found = encode_blocks(x, fmt)
    assert found.tensor_scale == np.float32(float(expected.tensor.datum))
    assert found.scales.tolist() == [expected.scale.code]


def test_blocks_unpack_compare_and_say_what_they_are():
    x = np.arange(32, dtype=np.float32)
    blocks = encode_blocks(x, "nvfp4")
    scales, codes = blocks
    assert scales is blocks.scales
    assert codes is blocks.codes
    assert blocks == encode_blocks(x, "nvfp4")
    assert blocks != encode_blocks(x + 1, "nvfp4")
    assert blocks != (scales, codes)
    assert isinstance(blocks, Blocks)
    assert np.array_equal(
        decode_blocks((scales, codes), "nvfp4", tensor_scale=blocks.tensor_scale), decode_blocks(blocks, "nvfp4")
    )


@pytest.mark.parametrize("fmt", [fmt for fmt in FORMATS if fmt.tensor is None], ids=lambda fmt: fmt.name)
def test_every_scale_times_every_element_is_decoded_exactly(fmt):
    # The largest values are beyond float32, so values are float64 unless a dtype is given.
    element, scale = fmt.element, fmt.scale
    codes = np.arange(1 << element.width, dtype=np.uint8)
    if isinstance(element, Format):
        numbers = [decode(int(code), element) for code in codes]
        elements = [each.exact.as_fraction() if each.is_finite else None for each in numbers]
    else:
        elements = [Fraction(element.integer(int(code))) * Fraction(2) ** element.quantum for code in codes]
    scales = [decode(code, scale) for code in range(1 << scale.width)]
    whole = np.tile(codes, (len(scales), 1))
    found = decode_blocks((np.arange(len(scales))[:, None], whole), fmt, block=len(codes))
    assert found.dtype == np.float64
    narrow = decode_blocks((np.arange(len(scales))[:, None], whole), fmt, block=len(codes), dtype="float32")
    with np.errstate(over="ignore"):
        assert np.array_equal(narrow, found.astype(np.float32), equal_nan=True)
    assert np.isinf(narrow).sum() > np.isinf(found).sum()
    some = range(len(scales)) if len(codes) <= 16 else [0, 1, 2, 100, 126, 127, 128, 250, 251, 252, 253, 254]
    for row in some:
        if not scales[row].is_finite:
            assert np.isnan(found[row]).all()
            continue
        by = scales[row].exact.as_fraction()
        for value, truth in zip(found[row].tolist(), elements, strict=True):
            assert Fraction(value) == truth * by if truth is not None else not np.isfinite(value)


def test_what_decoded_blocks_are_depends_on_their_format_only():
    own = BlockFormat("own", parse_format("e2m1"), parse_format("e4m3"), 16)
    for fmt, dtype in ((own, np.float32), *((fmt, np.float64) for fmt in FORMATS)):
        for x in (np.ones(fmt.block, np.float32), np.ones(fmt.block), np.zeros(0, np.float16)):
            assert decode_blocks(encode_blocks(x, fmt), fmt).dtype == dtype
            assert arrays.decode(encode_blocks(x, fmt), fmt, dtype="float32").dtype == np.float32


@pytest.mark.one_in(4)
@pytest.mark.parametrize(("fmt", "rule"), WAYS, ids=lambda each: getattr(each, "name", "").lower())
def test_every_exponent_of_a_block_gets_the_scale_of_the_scalar_derivation(fmt, rule):
    # With mantissas at the thresholds of the rules: the table by exponent field must have all of them, and both ends.
    p = fmt.magnitudes.precision
    turns = [1.0, 1 + 2.0**-23, 1.5, 2 - 2.0**-p - 2.0**-23, 2 - 2.0**-p, 2 - 2.0**-23]
    exponents = [*range(-149, -120), -30, -1, 0, 1, 30, 125, 126, 127]
    with np.errstate(over="ignore"):
        amax = np.float32(np.unique([np.float32(np.ldexp(turn, e)) for e in exponents for turn in turns]))
    amax = amax[np.isfinite(amax) & (amax > 0)]
    tensor = None if fmt.tensor is None else np.float32(1)
    expected = [
        scalar.quantize_blocks([float(each)], fmt, rule, Context(), tensor)[0].scale.code for each in amax.tolist()
    ]
    for dtype in (np.float32, np.float64):
        alone = [encode_blocks(np.array([each], dtype), fmt, scale=rule, block=1, tensor_scale=tensor) for each in amax]
        assert [int(each.scales[0]) for each in alone] == expected
        together = encode_blocks(amax.astype(dtype), fmt, scale=rule, block=1, tensor_scale=tensor)
        assert together.scales.tolist() == expected


ONES = np.ones(64, np.float32)


@pytest.mark.parametrize(
    ("ask", "error", "words"),
    [
        (lambda: encode_blocks(ONES[:48], "mxfp4"), UnsupportedError, "axis 0 of x has 48 elements, which blocks"),
        (lambda: encode_blocks(ONES, "mxfp4", axis=1), UnsupportedError, "axis '1' is not an axis of x"),
        (lambda: encode_blocks(ONES, "mxfp4", axis="a"), UnsupportedError, "axis 'a' is not an axis of x"),
        (lambda: encode_blocks(np.float32(1), "mxfp4"), UnsupportedError, "axis '-1' is not an axis of x"),
        (lambda: encode_blocks(ONES * 1j, "mxfp4"), UnsupportedError, "floats or integers, not of complex"),
        (lambda: encode_blocks(["a"] * 32, "mxfp4"), UnsupportedError, "floats or integers, not of strings"),
        (lambda: encode_blocks(ONES, "mxfp5"), FormatError, "did you mean 'mxfp4'"),
        (lambda: encode_blocks(ONES, "fp8"), FormatError, "family of formats"),
        (lambda: encode_blocks(ONES, "mxfp4", scale="down"), ContextError, "scale must be one of floor even ceil"),
        (lambda: encode_blocks(ONES, "nvfp4", scale="floor"), ContextError, "scale must be one of nearest up 4over6"),
        (lambda: encode_blocks(ONES, "mxfp4", scale=["floor"]), ContextError, "scale must be one of floor even ceil"),
        (lambda: encode_blocks(ONES, "mxfp4", rounding="RNX"), ContextError, "unknown rounding direction"),
        (lambda: encode_blocks(ONES, "mxfp4", context=Context(flush_inputs=True)), ContextError, "flush_inputs"),
        (lambda: encode_blocks(ONES, "mxfp4", tensor_scale=2), UnsupportedError, "no scale for a whole tensor"),
        (lambda: encode_blocks(ONES, "nvfp4", tensor_scale=-2), UnsupportedError, "tensor_scale must be a positive"),
        (lambda: encode_blocks(ONES, "mxfp4", block=0), FormatError, "block must be a number of elements"),
        (lambda: encode_blocks(ONES, "mxfp4", block=2.5), FormatError, "block must be a number of elements"),
        (lambda: encode_blocks(ONES, "mxfp4", lane="fast"), UnsupportedError, "lane must be one of"),
        (lambda: decode_blocks(encode_blocks(ONES, "mxfp4").codes, "mxfp4"), UnsupportedError, "blocks must be a pair"),
        (lambda: decode_blocks(tuple(encode_blocks(ONES, "nvfp4")), "nvfp4"), UnsupportedError, "tensor_scale: nvfp4"),
        (lambda: decode_blocks(([127], [[1] * 64]), "mxfp4"), UnsupportedError, "scales must have shape"),
        (lambda: decode_blocks(([1.5], [1] * 32), "mxfp4"), UnsupportedError, "scales must be an array of integers"),
        (lambda: decode_blocks(([127], [99] * 32), "mxfp4"), UnsupportedError, "codes must be codes of 4 bits"),
        (lambda: decode_blocks(([127], [-1] * 32), "mxint8"), UnsupportedError, "must be codes of 8 bits"),
        (lambda: decode_blocks(encode_blocks(ONES, "mxfp4"), "mxfp4", dtype=np.float16), UnsupportedError, "float16"),
    ],
)  # fmt: skip
def test_bad_input_is_named(ask, error, words):
    with pytest.raises(error, match=words) as caught:
        ask()
    assert isinstance(caught.value, FloatlabError)
    assert len(str(caught.value).splitlines()) == (3 if isinstance(caught.value, RecipeError) else 1)  # with a caret
