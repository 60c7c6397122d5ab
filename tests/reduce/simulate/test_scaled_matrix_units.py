"""Models of matrix units with block scales, compared with rationals and, if installed, with the authors' program."""

from fractions import Fraction

import numpy as np
import pytest

from floatlab import FloatArray, decode, from_json, matmul, parse_format
from floatlab.arrays.blocks import encode_blocks
from floatlab.arrays.sources import Source
from floatlab.errors import UnsupportedError
from floatlab.reduce import parse_machine
from floatlab.reduce.results.products import matrix_product
from floatlab.reduce.results.scaled import scaled_product
from floatlab.reduce.simulate.scaled_matrix_units import SCALED_UNITS, parse_scaled_unit


def exponent_of(x, least):
    """The exponent of |x|, or that of the smallest normal number."""
    x, e = abs(x), 0
    while x >= 2:
        x, e = x / 2, e + 1
    while x < 1 and e > least:
        x, e = x * 2, e - 1
    return e


def expected(unit, a, b, scales, formats):
    """One element, from the text of the models: an independent computation in rationals. All terms are finite."""
    core, c = unit.core, Fraction(0)
    least = [parse_format(name).emin for name in formats]
    n = len(a)
    for first in range(0, n, core.block):
        terms = []
        for start in range(first, first + core.block, core.group):
            pairs = list(zip(a[start : start + core.group], b[start : start + core.group], strict=True))
            if not pairs:
                terms.append((Fraction(0), None))
                continue
            sa, sb = (abs(side[start // unit.size]) for side in scales)
            zero = not sa or not sb or not any(x and y for x, y in pairs)
            e = exponent_of(sa, unit.scale.emin) + exponent_of(sb, unit.scale.emin) if not zero else None
            if not zero and core.group == 1:
                e += exponent_of(pairs[0][0], least[0]) + exponent_of(pairs[0][1], least[1])
            terms.append((sum(x * y for x, y in pairs) * sa * sb, e))
        terms.append((c, exponent_of(c, -126) if c else None))
        known = [core.zero_exponent if e is None else e for _, e in terms]
        top = max((e for e in known if e is not None), default=0)
        unit_of = Fraction(2) ** (top - core.fraction_bits)
        total = sum(int(value / unit_of) for value, _ in terms) * unit_of  # int truncates toward zero
        quantum = Fraction(2) ** (max(exponent_of(total, -126), -126) - 23) if total else Fraction(1)
        c = int(total / quantum) * quantum
    return c


def operands(unit, rng, n, rows=3, columns=2):
    """Random codes without NaN and infinity, scales so far apart that some results are subnormal, and their formats."""
    formats = [unit.elements[int(rng.integers(len(unit.elements)))] for _ in "ab"]
    sides = []
    for format, shape in zip(formats, ((rows, n), (n, columns)), strict=True):
        codes = rng.integers(0, 1 << format.width, shape).astype(np.uint8)
        finite = np.array([decode(code, format).is_finite for code in range(1 << format.width)])
        codes[~finite[codes]] = 1
        codes[rng.random(shape) < 0.2] = 0
        sides.append(Source(codes, format))
    low = int(rng.choice([100, 55, 40])) if unit.scale.width == 8 and not unit.scale.signed else 0
    made = []
    for shape in ((rows, unit.blocks(n)), (unit.blocks(n), columns)):
        codes = rng.integers(low, low + 30 if low else 127, shape).astype(np.uint8)
        made.append(Source(codes | np.uint8(0 if low else 128 * int(rng.integers(2))), unit.scale))
    return sides, made, formats


def numbers(side):
    return [[decode(code, side.format).exact.as_fraction() for code in row] for row in side.codes.tolist()]


@pytest.mark.parametrize("name", SCALED_UNITS)
def test_a_unit_is_what_its_model_says(name, generator):
    rng, unit = np.random.default_rng(generator.getrandbits(64)), SCALED_UNITS[name]
    for n in (1, 16, 40, 64, 100):
        sides, scales, formats = operands(unit, rng, n)
        found = unit.multiply_add(*sides, tuple(scales))
        rows, columns = numbers(sides[0]), numbers(sides[1].replace(codes=sides[1].codes.T))
        left, right = numbers(scales[0]), numbers(scales[1].replace(codes=scales[1].codes.T))
        for i, j in np.ndindex(found.shape):
            want = expected(unit, rows[i], columns[j], (left[i], right[j]), [each.name for each in formats])
            assert decode(int(found[i, j]), "fp32").exact.as_fraction() == want, (name, n, i, j)
            some = [side.replace(codes=side.codes[i]) for side in (sides[0], scales[0])]
            more = [side.replace(codes=side.codes[:, j]) for side in (sides[1], scales[1])]
            nodes = unit.nodes(some[0], more[0], (some[1], more[1]))
            assert nodes[-1].value.code == found[i, j]


def test_the_two_versions_part_where_everything_is_tiny():
    """2^-147 − 2^-180: zeros at 2^-139 cut the second product off; without them it counts."""
    a, b = [[1.0] + [0.0] * 31 + [-1.0] + [0.0] * 31], [[1.0]] * 64
    scales = ([[2.0**-100, 2.0**-100]], [[2.0**-47], [2.0**-80]])
    now, first = (matmul(a, b, machine=f"b200.mxf4.f32{each}", scales=scales)[0, 0] for each in ("", ".v1"))
    assert (float(now), float(first)) == (2.0**-147, 2.0**-147 - 2.0**-149)


def test_specials():
    inf, nan = float("inf"), float("nan")
    unit = "rtxblackwell.mxf8f6f4.f32"
    for row, column, scale, code in (
        ([inf, 1], [1, 1], 1.0, 0x7F800000),
        ([inf, inf], [1, -1], 1.0, 0x7FFFFFFF),
        ([inf, 1], [0, 1], 1.0, 0x7FFFFFFF),
        ([1, 1], [nan, 1], 1.0, 0x7FFFFFFF),
        ([0, 0], [1, 1], nan, 0x7FFFFFFF),
        ([0, -0.0], [1, 1], 1.0, 0),
        ([-(2.0**-16)] * 2, [2.0**-16, 0], 2.0**-127, 0),
        ([57344] * 2, [-57344] * 2, 2.0**100, 0xFF800000),
    ):
        found = scaled_product(
            FloatArray([row], "e5m2"), FloatArray([[each] for each in column], "e5m2"), unit, ([[scale]], [[1.0]])
        )
        assert found.codes[0, 0] == code, row
        assert found.element(0).value.code == code, row
    assert matmul([[1.0]], [[1.0]], machine="b200.nvf4.f32", scales=([[-2.0]], [[3.0]])) == 6  # the signs are dropped


@pytest.mark.parametrize(("blocks", "kind", "element"), [
    ("mxfp4", "mxf4", "e2m1"), ("mxfp8_e4m3", "mxf8f6f4", "e4m3"), ("mxfp8_e5m2", "mxf8f6f4", "e5m2"),
    ("mxfp6_e2m3", "mxf8f6f4", "e2m3"), ("nvfp4", "nvf4", "e2m1"),
])  # fmt: skip
def test_it_multiplies_what_encode_blocks_gives(blocks, kind, element, generator):
    rng = np.random.default_rng(generator.getrandbits(64))
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in ((5, 128), (128, 4)))
    a, b = encode_blocks(x, blocks), encode_blocks(y, blocks, axis=0)
    factors = [FloatArray.from_codes(each.codes, element) for each in (a, b)]
    found = matmul(*factors, machine=f"blackwell.{kind}.f32", scales=(a.scales, b.scales))
    scale = parse_scaled_unit(f"blackwell.{kind}.f32").scale
    left, right = (FloatArray.from_codes(each.scales, scale).values.astype(np.float64) for each in (a, b))
    size = 128 // a.scales.shape[1]
    exact = (factors[0].values * np.repeat(left, size, 1)).astype(np.float64) @ (
        factors[1].values * np.repeat(right, size, 0)
    )
    assert found.dtype == np.float32
    assert np.allclose(found, exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max())
    as_numbers = matmul(*factors, machine=f"blackwell.{kind}.f32", scales=(left, right))
    assert (as_numbers == found).all()


def test_errors_are_one_line_that_names_the_array():
    a, b, unit = np.ones((4, 64)), np.ones((64, 3)), "b200.mxf4.f32"
    good = np.ones((4, 2)), np.ones((2, 3))
    for options, why in (
        ({}, "needs a scale for every 32 numbers of a and b"),
        ({"scales": (good[0], good[0])}, r"scale_b must have the shape \(2, 3\), not \(4, 2\): blackwell.mxf4.f32"),
        ({"scales": (good[0] * 0.3, good[1])}, "scale_a must have numbers of e8m0fnu, powers of two, not 0.3"),
        ({"scales": (good[0] * 0, good[1])}, "powers of two, not 0.0"),
        ({"scales": good, "fma": True}, "fma is fixed by the machine"),
        ({"scales": good, "schedule": "serial"}, "schedule is fixed by the machine"),
    ):
        with pytest.raises(UnsupportedError, match=why):
            matmul(a, b, machine=unit, **options)
    with pytest.raises(UnsupportedError, match="scales are for machines with block scales"):
        matmul(a, b, machine="hopper.f16.f32", scales=good)
    with pytest.raises(UnsupportedError, match="no model of the matrix units of MI355 has been published"):
        parse_machine("mi355.mxf4.f32")
    with pytest.raises(UnsupportedError, match="use matmul, with scales"):
        parse_machine(unit)


def test_its_json_comes_back():
    found = matrix_product([[1.5, 2]], [[3], [0.5]], machine="b200.mxf4.f32", scales=([[2]], [[0.5]]))
    again = from_json(found.to_json())
    assert again.to_json() == found.to_json()
    assert again.element(0).nodes == found.element(0).nodes
    assert "node 1" in str(found).lower()


def test_the_program_of_the_authors_gives_the_same_bits(generator):
    torch = pytest.importorskip("torch")
    simulator = pytest.importorskip("mmasim.nv_ptx.sim")
    rng = np.random.default_rng(generator.getrandbits(64))
    for kind, instruction, size in (
        ("mxf8f6f4", "m16n8k32.kind::mxf8f6f4.block32.f32.e4m3.e5m2.f32.ue8m0", 32),
        ("mxf4", "m16n8k64.kind::mxf4.block32.f32.e2m1.e2m1.f32.ue8m0", 32),
        ("nvf4", "m16n8k64.kind::mxf4nvf4.block16.f32.e2m1.e2m1.f32.ue4m3", 16),
    ):
        unit, program = SCALED_UNITS[f"rtxblackwell.{kind}.f32"], simulator.MMABlockScale("RTX Blackwell", instruction)
        n = 32 if kind == "mxf8f6f4" else 64
        formats = ("e4m3", "e5m2") if n == 32 else ("e2m1", "e2m1")
        a, b = (rng.integers(0, 1 << parse_format(f).width, s).astype(np.uint8)
                for f, s in zip(formats, ((16, n), (n, 8)), strict=True))  # fmt: skip
        scales = [rng.integers(90, 120, shape).astype(np.uint8) for shape in ((16, n // size), (n // size, 8))]
        c = rng.standard_normal((16, 8)).astype(np.float32)
        kinds = (torch.float8_e4m3fn, torch.float8_e5m2)
        if n == 64:
            given = [
                torch.from_numpy(a[:, ::2] << 4 | a[:, 1::2]), torch.from_numpy((b[::2] << 4 | b[1::2]).T.copy()).T,
            ]  # fmt: skip
        else:
            given = [torch.from_numpy(each).view(own) for each, own in zip((a, b), kinds, strict=True)]
        own = torch.float8_e8m0fnu if kind != "nvf4" else torch.float8_e4m3fn
        want = program(*given, torch.from_numpy(c), *(torch.from_numpy(each).view(own) for each in scales))
        x, y = (Source(codes, parse_format(name)) for codes, name in zip((a, b), formats, strict=True))
        left, right = (Source(each, unit.scale) for each in scales)
        found = unit.multiply_add(x, y, (left, right), c.view(np.uint32))
        assert (found == want.numpy().view(np.uint32)).all(), kind
