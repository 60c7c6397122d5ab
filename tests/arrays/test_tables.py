"""Arrays in formats given by a table: both lanes against the scalar one, and arithmetic against exact rationals."""

from fractions import Fraction

import numpy as np
import pytest

import floatlab as fl
from floatlab import Context, arrays, decode, encode, parse_format
from floatlab.arrays.lanes import compiled
from floatlab.arrays.lanes.parameters import SINGLE, rounding_rule_for
from floatlab.arrays.lanes.table_lookups import BinadeLookup, NarrowLookup, WideLookup
from floatlab.arrays.lanes.table_registers import ByteLookup, FewLookup
from floatlab.arrays.lanes.table_segments import search, segments
from floatlab.formats.table_catalog import TABLES
from tests import table_oracle

DIRECTIONS = ("RNE", "RNA", "RTZ", "RTP", "RTN", "RTO", "RAZ")
FORMATS = [row.format for row in TABLES if row.format.width <= 16]
LANES = ["numpy", *(["compiled"] if compiled.is_built() else [])]
EIGHT = [fmt.name for fmt in FORMATS if fmt.width <= 8 and not fmt.is_irrational]


def ids(fmt):
    return fmt.name


def numbers(fmt, count):
    """Return float32 numbers: of any bits, around 1, special ones, and boundaries with their neighbours."""
    draw = np.random.default_rng(fmt.width + len(fmt.name))
    found = [draw.integers(0, 1 << 32, count, dtype=np.uint32).view(np.float32), draw.standard_normal(count)]
    found.append([0.0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 40960, 40959.996, -40960, 1e-45, -1e-45, 3e38])
    ranks = draw.choice(np.arange(fmt.most(negative=True)), min(count // 4, fmt.most(negative=True)), replace=False)
    for rank in ranks.tolist():
        for negative in (False, True):
            c, q = fmt.boundary(rank, negative)
            with np.errstate(over="ignore"):
                x = np.float32(c * 2.0**q)
            found.append(
                np.copysign([x, np.nextafter(x, np.float32(np.inf)), np.nextafter(x, np.float32(0))], -negative)
            )
    with np.errstate(invalid="ignore"):
        return np.concatenate(found).astype(np.float32)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("overflow", ["native", "saturate"])
@pytest.mark.parametrize("fmt", FORMATS, ids=ids)
def test_lanes_agree_with_the_scalar_codec_in_every_direction(fmt, overflow):
    x = numbers(fmt, 64)
    for direction in DIRECTIONS:
        codes, flags = arrays.encode(x, fmt, direction, overflow, lane="scalar", return_flags=True)
        for lane in LANES:
            made, raised = arrays.encode(x, fmt, direction, overflow, lane=lane, return_flags=True)
            assert np.array_equal(made, codes), (direction, lane)
            assert np.array_equal(raised, flags), (direction, lane)


@pytest.mark.one_in(4)
@pytest.mark.parametrize("fmt", FORMATS, ids=ids)
def test_other_dtypes_and_formats_are_rounded_once(fmt):
    x = numbers(fmt, 16).astype(np.float64)
    wide = np.concatenate([x, x * (1 + 2**-52), x * (1 - 2**-53), [1e-300, -1e300, 5e-324]])
    for direction in ("RNE", "RTP"):
        scalar = arrays.encode(wide, fmt, direction, lane="scalar")
        for lane in LANES:
            assert np.array_equal(arrays.encode(wide, fmt, direction, lane=lane), scalar)
    with np.errstate(over="ignore"):
        half = x.astype(np.float16)
    assert np.array_equal(arrays.encode(half, fmt), arrays.encode(half, fmt, lane="scalar"))


@pytest.mark.parametrize("fmt", FORMATS, ids=ids)
def test_codes_decode_to_their_values_and_come_back(fmt):
    codes = np.arange(1 << fmt.width, dtype=arrays.encode(1.0, fmt).dtype)
    for lane in LANES:
        values = arrays.decode(codes, fmt, lane=lane)
        for code in range(0, len(codes), 1 if fmt.width <= 8 else 97):
            assert values[code] == float(decode(code, fmt)) or np.isnan(values[code])
        if not fmt.is_irrational:
            assert np.array_equal(arrays.encode(values, fmt, lane=lane), codes)
    if fmt.is_irrational:  # the nearest doubles round back
        assert np.array_equal(arrays.encode(arrays.decode(codes, fmt), fmt), codes)


@pytest.mark.one_in(6)
@pytest.mark.parametrize("name", EIGHT)
@pytest.mark.parametrize("operation", ["add", "multiply"])
def test_arithmetic_on_every_pair_is_the_exact_result_rounded_once(name, operation):
    fmt, table = parse_format(name), table_oracle.table(name)
    codes = np.array(table.codes, np.uint8)
    a, b = np.meshgrid(codes, codes)
    held = [fl.FloatArray.from_codes(each, fmt) for each in (a, b)]
    found = {lane: arrays.operate(operation, held, fmt, lane=lane, as_codes=True) for lane in LANES}
    known: dict[Fraction, int] = {}
    for row, y in enumerate(table.values):
        for column, x in enumerate(table.values):
            exact = x + y if operation == "add" else x * y
            if not exact:
                continue  # the sign of zero is not tested here
            if exact not in known:
                known[exact] = table_oracle.nearest(table, exact)
            for lane in LANES:
                assert found[lane][row, column] == known[exact], (x, y, lane)


@pytest.mark.parametrize("name", [*EIGHT, "posit16", "takum_linear16"])
def test_operations_agree_with_the_scalar_ones(name):
    fmt = parse_format(name)
    draw = np.random.default_rng(7)
    size = 40
    x, y, z = (
        fl.FloatArray.from_codes(
            draw.integers(0, 1 << fmt.width, size).astype(np.uint16 if fmt.width > 8 else np.uint8), fmt
        )
        for _ in range(3)
    )
    for operation, operands in {
        "add": (x, y),
        "subtract": (x, y),
        "multiply": (x, y),
        "divide": (x, y),
        "sqrt": (x,),
        "fma": (x, y, z),
    }.items():
        for direction in ("RNE", "RTN"):
            scalar, flags = arrays.operate(
                operation, operands, fmt, direction, lane="scalar", as_codes=True, return_flags=True
            )
            for lane in LANES:
                made, raised = arrays.operate(
                    operation, operands, fmt, direction, lane=lane, as_codes=True, return_flags=True
                )
                assert np.array_equal(made, scalar), (operation, direction, lane)
                assert np.array_equal(raised, flags), (operation, direction, lane)


def test_a_stochastic_rounding_takes_the_scalar_lane_and_is_unbiased():
    x = np.full(2000, 0.3, np.float32)
    codes = arrays.quantize(x, "posit8", Context("SR", seed=5))
    assert abs(codes.mean() - 0.3) < 0.002
    assert set(np.unique(codes)) == {0.28125, 0.3125}


def test_float_arrays_of_table_formats():
    x = fl.FloatArray(np.float32([0.1, -3, 1e9]), "posit8")
    assert (-x).codes.tolist() == [0xDB, 0x4C, 0x81]
    assert abs(x).tolist() == [0.1015625, 3.0, 16777216.0]
    assert (x + x).tolist() == [0.203125, -6.0, 16777216.0]
    assert arrays.ordinal(x).tolist() == [0x25, -0x4C, 0x7F]
    assert arrays.next_after(x, "up").tolist() == [0.109375, -2.75, 16777216.0]
    assert arrays.next_after(fl.FloatArray([0.0, -1.0], "nf4"), "down").tolist()[1] == -1.0
    assert arrays.spacing(fl.FloatArray([1.0, 64.0], "posit8")).tolist() == [0.125, 16.0]
    with pytest.raises(fl.FormatError, match="float64 does not hold"):
        fl.FloatArray([1.0], "takum_log8")


def test_logarithmic_takums_in_arrays():
    values = arrays.quantize(np.float32([1, 0.1, -2]), "takum_log16")
    assert values.dtype == np.float64
    assert values.tolist() == [float(encode(text, "takum_log16")) for text in ("1", "0.1", "-2")]


def test_posit32_takes_the_scalar_lane():
    codes = arrays.encode(np.float64([1, -0.1, 1e30]), "posit32")
    assert codes.tolist() == [encode(x, "posit32").code for x in (1.0, -0.1, 1e30)]
    assert arrays.decode(codes, "posit32").tolist() == [float(decode(int(code), "posit32")) for code in codes]


@pytest.mark.parametrize("name", ["posit8", "hif8", "posit16"])
def test_training_and_sums_round_each_step_into_the_table(name):
    fmt = parse_format(name)
    update, weight, total = encode("0.1", fmt), encode("1", fmt), encode("0", fmt)
    terms = [0.1 * i for i in range(1, 30)]
    for x in terms:
        weight = fl.add(weight, update).result
        total = fl.add(total, encode(x, fmt)).result
    for lane in (None, "numpy"):
        found = fl.train("1", update="0.1", steps=len(terms), weights=fmt, remedies="plain", lane=lane)
        assert float(found.lines[0].final) == float(weight)
    summed = fl.sum(terms, schedule="serial", format=fmt)
    assert summed.result == total
    assert (summed.bound, summed.running_bound) == (None, None)  # no unit roundoff holds for all numbers


def lookups(rule):
    """Return every way to look up codes by a rule that applies to it: its name, and a function."""
    kernels, found = compiled.extension(), []
    classes = (FewLookup, ByteLookup, NarrowLookup) if rule.format.width <= 8 else (BinadeLookup, WideLookup)
    for kind in classes:
        made = kind(rule)
        if not len(
            next(getattr(made, name) for name in ("starts", "entries", "tables", "table") if hasattr(made, name))
        ):
            continue
        if kernels and (kind not in (FewLookup, ByteLookup) or kernels.has_registers()):
            found.append((f"{kind.__name__}, compiled", made.compiled(kernels)))
        if hasattr(made, "plain"):
            found.append((f"{kind.__name__}, NumPy", made.plain()))
    return found


@pytest.mark.one_in(8)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("fmt", FORMATS, ids=ids)
def test_every_lookup_finds_the_segments_of_words(fmt, direction):
    rule = rounding_rule_for(fmt, Context(direction), SINGLE)
    starts = np.concatenate([segments(rule, sign).starts.astype(np.int64) for sign in (False, True)])
    near = np.concatenate([starts - 1, starts, starts + 1])
    upper = np.arange(1 << 16) << 16  # every bfloat16, and its neighbours
    drawn = np.random.default_rng(3).integers(0, 1 << 31, 10_000)
    words = np.concatenate([near, upper, upper + 1, upper - 1, drawn]) & 0x7FFFFFFF
    words = np.concatenate([words, words | 1 << 31]).astype(np.uint32)
    codes = search(rule, words)[0]
    made = lookups(rule)
    assert made or direction == "RTO"
    for name, look_up in made:
        for part in (slice(None), slice(1, 64), slice(7, 72), slice(0, 0)):
            found = np.full(len(codes[part]), 0x5A, codes.dtype)
            look_up(words[part].copy(), found)
            assert np.array_equal(found, codes[part]), name


@pytest.mark.one_in(5)
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("fmt", FORMATS, ids=ids)
def test_starts_of_segments_are_where_the_scalar_codec_changes_the_code(fmt, direction):
    rule = rounding_rule_for(fmt, Context(direction), SINGLE)
    for negative in (False, True):
        starts = segments(rule, negative).starts.astype(np.int64)
        step = max(len(starts) // 300, 1)
        near = np.concatenate([starts[::step] - 1, starts[::step], starts[::step] + 1, starts[-4:], starts[-4:] - 1])
        words = (np.clip(near, 0, (1 << 31) - 1) | negative << 31).astype(np.uint32)
        scalar = arrays.encode(words.view(np.float32), fmt, direction, lane="scalar")
        assert np.array_equal(search(rule, words)[0], scalar)


@pytest.mark.one_in(320)
@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("source", ["fp16", "bf16"])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("fmt", FORMATS, ids=ids)
def test_every_half_rounds_as_the_scalar_codec_says(fmt, direction, source, part):
    if fmt.width > 8 and direction not in ("RNE", "RTP"):
        pytest.skip("16 bits take minutes; every start is tested above")
    x = fl.FloatArray.from_codes(np.arange(part, 1 << 16, 4, dtype=np.uint16), source)
    scalar = arrays.encode(x, fmt, direction, lane="scalar")
    for lane in LANES:
        assert np.array_equal(arrays.encode(x, fmt, direction, lane=lane), scalar), lane
