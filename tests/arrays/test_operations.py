"""Arithmetic on arrays, compared with the scalar operations, the processor, MPFR and ml_dtypes; and rejected calls."""

import itertools

import numpy as np
import pytest

import floatlab as fl
from floatlab import Context, Datum, Direction, parse_format
from floatlab.arrays.container.array import FloatArray
from floatlab.arrays.conversion import decode, encode, quantize
from floatlab.arrays.lanes.numpy_operations import OPERATIONS
from floatlab.arrays.operations import operate
from floatlab.arrays.sources import format_of, source_of
from floatlab.errors import FloatlabError
from floatlab.formats import CATALOG
from floatlab.numbers.rounding import draw
from tests.arrays.hostile import every_pair, operands, products_and_a_bit
from tests.arrays.test_lanes import HANDMADE

ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")

# Special values, and digits and exponents at the limits of the results of a pair of floats.
AT_LIMITS = [parse_format(name) for name in ("e8m20", "e8m21", "e9m3", "e11m20", "e11m49", "e11m50", "e10m51")]
FORMATS = [row.format for row in CATALOG if row.format.width <= 64] + HANDMADE + AT_LIMITS
RULES = [
    dict(zip(("overflow", "absent", "tininess", "flush_inputs", "flush_results", "nan"), rules, strict=True))
    for rules in itertools.product(
        ("native", "saturate", "propagate"), ("largest", "zero", "nan"), ("after", "before"),
        (False, True), (False, True), ("first", "x86", "arm", "riscv"),
    )
]  # fmt: skip


def assert_as_scalar(operation, given, format, context, lane=None):
    codes, flags = operate(operation, given, format, context=context, return_flags=True, as_codes=True, lane=lane)
    expected, raised = operate(
        operation, given, format, context=context, return_flags=True, as_codes=True, lane="scalar"
    )
    wrong = np.flatnonzero((codes != expected) | (flags != raised))
    if len(wrong):
        i = wrong[0]
        told = ", ".join(float(each[i]).hex() for each in given)
        pytest.fail(
            f"{operation}({told}) into {format.name}, {context}: {codes[i]:#x} {flags[i]},"
            f" and {expected[i]:#x} {raised[i]} scalar"
        )


def hostile_cases(step):
    """Yield all operations and directions, with varying rules."""
    for i, (operation, direction) in enumerate(itertools.product(OPERATIONS, Direction)):
        yield operation, Context(direction, seed=i, fma_invalid=bool(i % 3), **RULES[(i * 29 + step * 7) % len(RULES)])


@pytest.mark.one_in(3)
@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_every_operation_is_the_scalar_one(format):
    lane = "numpy" if format.width % 2 and format.precision < 50 else None
    for i, (operation, context) in enumerate(hostile_cases(format.width)):
        dtype = (np.float32, np.float64)[(i + i // 8) % 2]
        given = operands(operation, format, dtype, 4, seed=i)
        pick = np.random.default_rng(i).permutation(len(given[0]))[:14]
        assert_as_scalar(operation, [each[pick] for each in given], format, context, lane)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("format", FORMATS, ids=lambda each: each.name)
def test_every_operation_is_the_scalar_one_on_many_operands(format, seed):
    for i, (operation, context) in enumerate(hostile_cases(format.width + 11 * seed)):
        dtype = (np.float32, np.float64)[(i + i // 8 + seed) % 2]
        assert_as_scalar(operation, operands(operation, format, dtype, 60, seed=100 * seed + i), format, context)


@pytest.mark.parametrize("dtypes", [(np.float16, np.float64, np.float32), ("bfloat16", np.float32, "float8_e5m2")])
def test_operands_of_several_dtypes_are_taken_as_they_are(dtypes):
    kinds = [getattr(ml_dtypes, each) if isinstance(each, str) else each for each in dtypes]
    for operation in OPERATIONS:
        given = operands(operation, parse_format("fp16"), np.float32, 20)
        with np.errstate(all="ignore"):
            given = [each.astype(kind) for each, kind in zip(given, kinds, strict=False)]
        assert_as_scalar(operation, given, parse_format("bf16"), Context("RNE", flush_inputs=True))
        assert_as_scalar(operation, given, parse_format("fp16"), Context("RTO", nan="arm"))


def test_the_scalar_lane_is_the_scalar_operation():
    for operation, name in itertools.product(OPERATIONS, ("fp16", "e4m3", "fp64")):
        given = [each[:15] for each in operands(operation, parse_format(name), np.float32, 10)]
        for context in (Context(), Context("RTN", overflow="saturate", nan="x86")):
            codes, flags = operate(
                operation, given, name, context=context, return_flags=True, as_codes=True, lane="scalar"
            )
            for i, row in enumerate(zip(*(source_of(each).codes.tolist() for each in given), strict=True)):
                data = [Datum(parse_format("fp32"), code) for code in row]
                found = getattr(fl, operation)(*data, format=name, context=context)
                assert (codes[i], flags[i]) == (found.result.code, found.flags.value)


@pytest.mark.parametrize("name", ["e2m3", "e3m2"])
def test_all_pairs_of_six_bit_formats(name):
    format = parse_format(name)
    x, y = every_pair(format)
    for i, operation in enumerate(("add", "subtract", "multiply", "divide")):
        assert_as_scalar(operation, (x, y), format, Context(list(Direction)[(i + format.trailing_bits) % 8]))
    assert_as_scalar("sqrt", (x[::64],), format, Context())
    z = np.random.default_rng(1).permutation(x)
    assert_as_scalar("fma", (x, y, z), format, Context())


@pytest.mark.slow
@pytest.mark.parametrize("direction", Direction)
@pytest.mark.parametrize("name", ["e4m3", "e5m2"])
def test_all_pairs_of_eight_bit_formats(name, direction):
    format = parse_format(name)
    x, y = every_pair(format)
    for operation in ("add", "subtract", "multiply", "divide"):
        assert_as_scalar(operation, (x, y), format, Context(direction))
    assert_as_scalar("sqrt", (x[::256],), format, Context(direction))
    for seed in range(3):
        assert_as_scalar("fma", (x, y, np.random.default_rng(seed).permutation(x)), format, Context(direction))


@pytest.mark.parametrize("name", ["fp16", "fp32", "fp64"])
def test_the_processor_has_the_same_results(name):
    format = parse_format(name)
    dtype = {"fp16": np.float16, "fp32": np.float32, "fp64": np.float64}[name]
    for operation in ("add", "subtract", "multiply", "divide", "sqrt"):
        given = operands(operation, format, np.float64 if name == "fp64" else np.float32, 20_000)
        with np.errstate(all="ignore"):
            given = [each.astype(dtype) for each in given]
            theirs = getattr(np, operation)(*given)
        ours, _ = operate(operation, given, name, return_flags=True)  # with flags, the slower path is used
        assert ours.dtype == dtype
        numbers = ~np.isnan(theirs)
        assert np.array_equal(np.isnan(ours), ~numbers)
        word = f"u{theirs.itemsize}"
        assert np.array_equal(ours[numbers].view(word), theirs[numbers].view(word))


@pytest.mark.parametrize("name", ["fp32", "fp64"])
def test_results_of_the_processor_are_the_scalar_ones(name):
    for operation in OPERATIONS:
        given = operands(operation, parse_format(name), np.float32, 40)
        for context in (Context(), Context(nan="arm"), Context(flush_inputs=True), Context(overflow="saturate")):
            ours = operate(operation, given, name, context=context, as_codes=True)
            assert np.array_equal(ours, operate(operation, given, name, context=context, as_codes=True, lane="scalar"))


@pytest.mark.parametrize(
    "name", ["bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e4m3b11fnuz",
             "float8_e3m4", "float8_e4m3"],
)  # fmt: skip
def test_ml_dtypes_agrees_since_rounding_twice_is_innocuous_for_two_operands(name):
    # ml_dtypes rounds to binary32 first: this is innocuous, since 24 ≥ 2p + 2 for these formats.
    dtype = np.dtype(getattr(ml_dtypes, name))
    every = np.arange(1 << (8 * dtype.itemsize), dtype=f"u{dtype.itemsize}").view(dtype)
    if dtype.itemsize == 1:
        x, y = np.repeat(every, len(every)), np.tile(every, len(every))
    else:
        rng = np.random.default_rng(2)
        x, y = rng.choice(every, 60_000), rng.choice(every, 60_000)
        with np.errstate(all="ignore"):
            y[:20_000] = (x[:20_000].astype(np.float32) * rng.choice([-1, 0.0078125, 1.5], 20_000)).astype(dtype)
            tiny = np.exp2(rng.uniform(-138, -124, 20_000)) / x[20_000:40_000].astype(np.float64)
            y[20_000:40_000] = tiny.astype(np.float32).astype(dtype)  # products at the end of the range
    for operation in ("add", "subtract", "multiply", "divide", "sqrt"):
        given = (x,) if operation == "sqrt" else (x, y)
        with np.errstate(all="ignore"):
            theirs = getattr(np, operation)(*given)
        ours = operate(operation, given, format_of(dtype))
        numbers = ~np.isnan(theirs.astype(np.float32))
        assert ours.dtype == dtype
        assert np.array_equal(np.isnan(ours.astype(np.float32)), ~numbers)
        word = f"u{theirs.itemsize}"
        assert np.array_equal(ours[numbers].view(word), theirs[numbers].view(word))


def mpfr(function, given, precision):
    """Return MPFR's result, rounded to nearest to `precision` digits, with unlimited exponents."""
    gmpy2 = pytest.importorskip("gmpy2", reason="gmpy2 is not installed")
    with gmpy2.context(precision=precision, emin=-5000, emax=5000):
        return [float(getattr(gmpy2, function)(*(gmpy2.mpfr(v, 60) for v in row))) for row in zip(*given, strict=True)]


@pytest.mark.parametrize("name", ["bf16", "fp32", "e11m30", "fp64"])
def test_mpfr_has_the_same_results(name):
    format = parse_format(name)
    rng = np.random.default_rng(3)
    dtype = np.float32 if format.precision <= 24 else np.float64
    x, y = ((rng.random(4000) + 1) * rng.choice([-1, 1], 4000) * np.exp2(rng.integers(-8, 8, 4000)) for _ in range(2))
    x, y = x.astype(dtype), y.astype(dtype)
    z = np.where(rng.random(4000) < 0.5, -(x * y), y * np.exp2(rng.integers(-60, 60, 4000))).astype(dtype)
    for operation, function, given in (
        ("add", "add", (x, z)), ("multiply", "mul", (x, y)), ("divide", "div", (x, y)), ("sqrt", "sqrt", (np.abs(x),)),
        ("fma", "fma", (x, y, z)),
    ):  # fmt: skip
        expected = mpfr(function, [each.astype(float).tolist() for each in given], format.precision)
        assert operate(operation, given, name).astype(float).tolist() == expected


@pytest.mark.parametrize("name", ["fp32", "bf16", "e8m20"])
def test_an_fma_by_way_of_a_binary64_sum_is_wrong_and_ours_is_not(name):
    format = parse_format(name)
    given = products_and_a_bit(format, np.float32, 3000)
    wide = [each.astype(np.float64) for each in given]
    naive = encode(wide[0] * wide[1] + wide[2], name)
    ours = operate("fma", given, name, as_codes=True)
    assert np.count_nonzero(naive != ours) > 200  # check that the test can fail
    assert_as_scalar("fma", [each[:1500] for each in given], format, Context())


@pytest.mark.parametrize(
    ("name", "dtype", "digits", "exponent"),
    [("e8m12", np.float32, 13, -62), ("e8m12", np.float64, 13, -62), ("e11m36", np.float64, 37, -500),
     ("e11m20", np.float64, 21, -500), ("bf16", np.float32, 8, -63)],
)  # fmt: skip
def test_what_is_missing_of_a_product_may_be_below_every_float(name, dtype, digits, exponent):
    # (1 + 2^-d)² is 1 + 2^(1-d) + 2^-2d. For small numbers, the last term underflows, but must not be ignored.
    x = ((1 + 2.0**-digits) * 2.0 ** np.arange(exponent - 3, exponent + 4)).astype(dtype)
    for direction in Direction:
        context = Context(direction, seed=5)
        assert_as_scalar("multiply", (x, x), parse_format(name), context)
        assert_as_scalar("multiply", (-x, x), parse_format(name), context)
        for z in (np.zeros_like(x), x * x, -x * x):
            assert_as_scalar("fma", (x, x, z), parse_format(name), context)
        assert_as_scalar("divide", (x * x, x), parse_format(name), context)
        assert_as_scalar("sqrt", (x * x,), parse_format(name), context)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", ["bf16", "e4m3", "fp32", "e8m12"])
def test_infinities_overflows_and_zeros_among_numbers(name, dtype):
    huge = np.finfo(dtype).max
    some = np.array(
        [np.inf, -np.inf, huge, -huge, 0.0, -0.0, 1.0, -1.0, np.nan, np.finfo(dtype).smallest_subnormal], dtype
    )
    x, y, z = (each.reshape(-1) for each in np.meshgrid(some, some, some))
    for i, (operation, asked) in enumerate(OPERATIONS.items()):
        given = [each[: 100 if len(asked.operands) < 3 else None] for each in (y, x, z)[-len(asked.operands) :]]
        for direction in list(Direction)[i % 2 :: 2]:
            assert_as_scalar(operation, given, parse_format(name), Context(direction))


def test_fma_in_binary64_is_correctly_rounded():
    x = np.float64([1 + 2**-30, 0.1, 1e300, 3, 2**-600, 1e200])
    y = np.float64([1 + 2**-30, 10, 1e10, 5, 2**-500, 1e200])
    z = np.float64([-(1 + 2**-29), -1, -1e305, -15, 1, -np.inf])
    found, flags = fl.arrays.fma(x, y, z, "fp64", return_flags=True)
    assert found.tolist() == [2**-60, 2**-54, np.inf, 0, 1, -np.inf]
    assert flags.tolist() == [0, 0, 20, 0, 16, 0]
    assert fl.arrays.fma(x, y, z, "fp64", "RTZ").tolist()[2:5] == [np.finfo(float).max, 0, 1]
    # 321 · 28059810762433 is 2^53 + 1, a tie, and z may break it from far below.
    z = np.float64([2.0**-100, 0, -(2.0**-100), 2.0**-30])
    assert fl.arrays.fma(np.float64(321), np.float64(28059810762433), z, "fp64").tolist() == [
        2**53 + 2, 2**53, 2**53, 2**53 + 2,
    ]  # fmt: skip
    assert_as_scalar("fma", (np.full(4, 321.0), np.full(4, 28059810762433.0), z), parse_format("fp64"), Context("RNA"))
    rng = np.random.default_rng(5)
    for exponents in (10, 400, 1020):
        for direction in (each for each in Direction if not each.is_stochastic):
            x, y = (np.ldexp(rng.random(40) + 1, rng.integers(-exponents, exponents, 40)) for _ in range(2))
            with np.errstate(all="ignore"):
                z = -x * y * rng.choice([1, 1 + 2**-52, 2**-53, 2**-54, 2**60], 40)
            assert_as_scalar("fma", (x, y, z), parse_format("fp64"), Context(direction))


@pytest.mark.parametrize("name", ["e4m3", "fp16", "e8m19", "e8m20", "fp32", "fp64"])
def test_stochastic_thresholds_are_those_of_the_exact_result(name):
    # e8m19 is the widest for which a pair has all 32 digits; for wider formats, inexact results are computed one by
    # one.
    rng = np.random.default_rng(7)
    x, y, z = ((rng.random(250) * 3).astype(np.float32) for _ in range(3))
    z = z * np.float32(2.0) ** -rng.integers(0, 60, 250).astype(np.float32)
    for operation, given in (("add", (x, z)), ("divide", (x, y)), ("fma", (x, y, z)), ("sqrt", (x,))):
        assert_as_scalar(operation, given, parse_format(name), Context("SR", seed=11))


@pytest.mark.parametrize("name", ["e8m19", "e8m20", "fp32"])
def test_a_draw_beside_its_threshold_sees_every_digit(name):
    format = parse_format(name)
    unit = 2.0 ** (-format.trailing_bits - 32)
    for seed in range(40):
        drawn = draw(seed)
        for rest, steps in ((drawn * unit, False), ((drawn + 1) * unit, True)):  # it is below d + 1, not below d
            given = np.float64([1]), np.float64([rest])
            assert_as_scalar("add", given, format, Context("SR", seed=seed))
            assert (operate("add", given, format, context=Context("SR", seed=seed)) > 1) == steps
        if unit >= 2.0**-52:  # a little more than d is not d + 1
            given = np.float64([1 + drawn * unit]), np.float64([2.0**-90])
            assert_as_scalar("add", given, format, Context("SR", seed=seed))


def test_draws_are_numbered_in_c_order_whatever_the_blocks_and_lanes(monkeypatch):
    import floatlab.arrays.lanes.dispatch as lanes

    x = np.random.default_rng(1).standard_normal((30, 70)).astype(np.float32)
    context = Context("SR", seed=3)
    whole = fl.arrays.multiply(x, x[:1], "e4m3", context=context)
    monkeypatch.setattr(lanes, "BLOCK", 64)
    assert np.array_equal(whole, fl.arrays.multiply(x, x[:1], "e4m3", context=context))
    assert np.array_equal(whole[1], fl.arrays.multiply(x, x[:1], "e4m3", context=context, lane="scalar")[1])
    product = x.astype(np.float64) * x[:1]
    assert np.array_equal(whole, quantize(product, "e4m3", context=context))


def test_shapes_dtypes_and_numbers():
    x, y = np.float32([[1], [2]]), np.float16([1, 2, 3])
    assert fl.arrays.add(x, y, "fp16").tolist() == [[2, 3, 4], [3, 4, 5]]
    assert fl.arrays.add(x, y, "fp16").dtype == np.float32
    assert fl.arrays.add(y, y, "bf16").dtype == np.float32
    assert fl.arrays.add(y, y, "e4m3").dtype == np.float16
    assert fl.arrays.add(y, y, "fp32").dtype == np.float32
    assert fl.arrays.add(y, y, "fp64").dtype == np.float64
    bf = y.astype(ml_dtypes.bfloat16)
    assert fl.arrays.add(bf, bf, "bf16").dtype == ml_dtypes.bfloat16
    assert fl.arrays.add(bf, y, "bf16").dtype == np.float32
    assert fl.arrays.add([1, 2], 3, "bf16").dtype == np.float32
    assert fl.arrays.add([1, 2], 3, "bf16").tolist() == fl.arrays.add([1.0, 2.0], 3.0, "bf16").tolist() == [4, 5]
    assert fl.arrays.multiply(np.arange(3), y, "fp16").dtype == np.float16
    small, other = y.astype(ml_dtypes.float8_e4m3fn), y.astype(ml_dtypes.float8_e5m2)
    assert fl.arrays.add(small, other, "e5m2").dtype == np.float32
    assert fl.arrays.sqrt(np.float32(2), "fp16").shape == ()
    assert fl.arrays.sqrt(np.zeros((0, 3)), "fp16").shape == (0, 3)
    assert fl.arrays.add(x[::-1], y[::2], "fp16").tolist() == [[3, 5], [2, 4]]
    assert fl.arrays.add(FloatArray([1.5], "e4m3"), 1, "e4m3").tolist() == [2.5]
    assert fl.arrays.add(np.float32([0.1]), 0, "e4m3", return_flags="counts")[1][fl.Flags.INEXACT] == 1


def test_numbers_are_read_into_the_format_as_the_scalar_operations_read_them():
    for context in (Context(), Context("RTP")):
        found = operate("add", [[0.1, 0.3], 0.2], "bf16", context=context, as_codes=True)
        expected = [fl.add(a, 0.2, format="bf16", context=context).result.code for a in (0.1, 0.3)]
        assert found.tolist() == expected
    # The 0.1 of an array is not rounded first: it lies between two adjacent numbers of binary16.
    assert operate("add", [np.float64([0.1]), 0.0], "fp16", "RTP") > quantize(0.1, "fp16")


def test_out_is_written_also_over_an_operand():
    x = np.random.default_rng(1).standard_normal((40, 50)).astype(np.float32)
    expected = fl.arrays.add(x, x[::-1, ::-1], "bf16")
    out = np.empty_like(x)
    assert fl.arrays.add(x, x[::-1, ::-1], "bf16", out=out) is out
    assert np.array_equal(out, expected)
    assert fl.arrays.add(x, x[::-1, ::-1], "bf16", out=x) is x
    assert np.array_equal(x, expected)


def test_flags_are_told_for_each_or_counted():
    x, y = np.float32([1, 1, 448, 0, np.inf]), np.float32([3, 0, 0.5, 0, np.inf])
    _, flags = fl.arrays.divide(x, y, "e4m3", return_flags=True)
    assert [str(fl.Flags(int(each)).names) for each in flags] == [
        "['inexact']", "['divide_by_zero']", "['overflow', 'inexact']", "['invalid']", "['invalid']",
    ]  # fmt: skip
    _, counts = fl.arrays.divide(x, y, "e4m3", return_flags="counts")
    assert counts[fl.Flags.INVALID] == counts[fl.Flags.INEXACT] == 2


@pytest.mark.parametrize(
    ("ask", "named"),
    [
        (lambda: fl.arrays.add(["a"], [1.0], "fp16"), "x must be an array of floats or integers, not of strings"),
        (
            lambda: fl.arrays.add([1.0], np.array([1j]), "fp16"),
            "y must be an array of floats or integers, not of complex128",
        ),
        (
            lambda: fl.arrays.fma([1.0], [1.0], np.array([None]), "fp16"),
            "z must be an array of floats or integers, not of object",
        ),
        (lambda: fl.arrays.add([1.0], [2**60], "fp16"), "y holds integers beyond 2"),
        (lambda: fl.arrays.add([1.0, 2], [1.0, 2, 3], "fp16"), r"do not broadcast: x \(2,\), y \(3,\)"),
        (lambda: fl.arrays.add([1.0], [1.0], "fp17"), "fp17"),
        (lambda: fl.arrays.add([1.0], [1.0], "fp128"), "at most 64"),
        (lambda: fl.arrays.add([1.0], [1.0], "e15m40"), "float64 does not hold"),
        (lambda: fl.arrays.add([1.0], [1.0], "fp16", lane="fast"), "lane must be one of"),
        (lambda: fl.arrays.add([1.0], [1.0], "e11m51", lane="numpy"), "lane numpy cannot add in e11m51"),
        (lambda: fl.arrays.add([1.0], [1.0], "fp16", rounding="upper"), "rounding"),
        (lambda: fl.arrays.add([1.0], [1.0], "fp16", out=np.empty(2, np.float32)), "out must have shape"),
        (lambda: fl.arrays.add([1.0], [1.0], "fp16", out=np.empty(1, np.float64)), "out must have shape"),
        (lambda: fl.arrays.add([1.0], [1.0], "fp16", return_flags="all"), "return_flags must be"),
        (lambda: operate("adds", [[1.0], [1.0]], "fp16"), "did you mean 'add'"),
        (lambda: operate("fma", [[1.0], [1.0]], "fp16"), "fma takes 3 operands, not 2"),
    ],
)
def test_what_cannot_be_done_is_named(ask, named):
    with pytest.raises(FloatlabError, match=named):
        ask()


@pytest.mark.parametrize(
    ("x", "y", "operation"), [(np.inf, 1, "add"), (np.nan, 1, "multiply"), (1, 0, "divide"), (0, np.inf, "multiply")]
)
def test_a_refused_result_leaves_out_as_it_was(x, y, operation):
    out = np.full(3, 7, np.float32)
    with pytest.raises(FloatlabError, match="e2m1fn has no"):
        operate(
            operation, (np.float32([1, 2, x]), np.float32([1, 1, y])), "e2m1", context=Context(absent="error"), out=out
        )
    assert out.tolist() == [7, 7, 7]


def test_a_block_that_only_passes_through_is_not_refused():
    # The placeholders for NaNs and unsafe pairs, while the other elements are rounded, must not appear in the results.
    context = Context(absent="error")
    assert fl.arrays.divide(np.float32([1, 2]), np.float32([2, 1]), "e2m1", context=context).tolist() == [0.5, 2]
    huge = np.float64([1e308, 3])
    found = fl.arrays.multiply(huge, np.float64([1e308, 2]), "e2m1", context=context)
    assert found.tolist() == [6, 6]


def test_every_code_of_a_dtype_in_every_direction_against_decode():
    codes = np.arange(256, dtype=np.uint8)
    x = decode(codes, "e5m2")
    numbers = ~np.isnan(x)
    for direction in Direction:
        assert np.array_equal(operate("multiply", (x, 1), "e5m2", direction, as_codes=True)[numbers], codes[numbers])


def test_an_infinite_term_beside_a_product_that_overflows_wins():
    x, y = np.float64([1e200, -1e200, 1e200]), np.float64([1e200, 1e200, 1e200])
    z = np.float64([-np.inf, np.inf, np.nan])
    for lane in (None, "numpy", "scalar"):
        assert operate("fma", (x, y, z), "fp64", lane=lane)[:2].tolist() == [-np.inf, np.inf]
