"""Minimum, maximum, signs, exponents and neighbours: every code of small formats by the words of IEEE 754-2019."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import floatlab as fl
from floatlab import Context, Flags, LiteralError, parse_format
from floatlab.numbers import Datum
from tests import oracle
from tests.arith import truth

FORMATS = ["e2m1", "e2m2", "e3m1f", "e2m3fnuz", "p3109_k4p2se", "p3109_k5p2sf", "p3109_k5p3ue", "e3m3"]
INVALID = frozenset(["invalid"])
EXTREMA = {
    "minimum": fl.minimum, "maximum": fl.maximum,
    "minimum_number": fl.minimum_number, "maximum_number": fl.maximum_number,
    "minimum_magnitude": fl.minimum_magnitude, "maximum_magnitude": fl.maximum_magnitude,
    "minimum_magnitude_number": fl.minimum_magnitude_number, "maximum_magnitude_number": fl.maximum_magnitude_number,
}  # fmt: skip
BIG = Fraction(10**40)


def data_of(name: str) -> list[Datum]:
    fmt = parse_format(name)
    return [Datum(fmt, code) for code in range(1 << fmt.width)]


def key(meaning: oracle.Meaning) -> tuple[Fraction, bool]:
    """Return an order in which −0 is below +0, and ∞ beyond all numbers."""
    if meaning.kind == "infinite":
        return (-BIG if meaning.negative else BIG), not meaning.negative
    return meaning.value, not meaning.negative


def chosen(name: str, fmt, codes: tuple[int, int]) -> tuple[int | None, frozenset[str]]:
    """Return the code that clause 9.6 gives, None for a NaN, and the flags."""
    meanings = [oracle.decode(fmt, code) for code in codes]
    nans = [each.kind == "nan" for each in meanings]
    flags = INVALID if any(truth.nan_flags("", fmt, (code,)) for code in codes) else frozenset()
    if any(nans):
        if name.endswith("number") and not all(nans):
            return codes[nans.index(False)], flags
        return None, flags
    better = min if name.startswith("minimum") else max
    if "magnitude" in name:
        sizes = [abs(key(each)[0]) for each in meanings]
        if sizes[0] != sizes[1]:
            return codes[sizes.index(better(sizes))], flags
    return better(codes, key=lambda code: key(oracle.decode(fmt, code))), flags


@pytest.mark.one_in(8)
@pytest.mark.parametrize("operation", EXTREMA)
@pytest.mark.parametrize("name", FORMATS)
def test_every_pair_of_codes(operation, name):
    data = data_of(name)
    for x, y in product(data, repeat=2):
        done = EXTREMA[operation](x, y)
        code, flags = chosen(operation, x.format, (x.code, y.code))
        assert frozenset(done.flags.names) == (flags or frozenset()), (x, y)
        if code is None:
            assert done.result.is_nan, (x, y)
        else:
            assert done.result.code == code, (x, y)


@pytest.mark.parametrize("name", FORMATS)
def test_signs_exponents_and_neighbours_of_every_code(name):
    data = data_of(name)
    fmt = data[0].format
    numbers = sorted({key(oracle.decode(fmt, x.code))[0] for x in data if not x.is_nan})
    for x in data:
        meaning = oracle.decode(fmt, x.code)
        _check_signs(fmt, x, meaning)
        if x.is_nan:
            flags = INVALID if truth.nan_flags("", fmt, (x.code,)) else frozenset()
            for operation in (fl.log_b, fl.next_up, fl.next_down, lambda x: fl.scale_b(x, 2)):
                done = operation(x)
                assert done.result.is_nan
                assert frozenset(done.flags.names) == flags
            continue
        value = key(meaning)[0]
        for operation, beyond in ((fl.next_up, [n for n in numbers if n > value][:1]),
                                  (fl.next_down, [n for n in numbers if n < value][-1:])):  # fmt: skip
            done = operation(x)
            assert key(oracle.decode(fmt, done.result.code))[0] == (beyond or [value])[0], x
            assert not done.flags
        _check_exponents(fmt, x, meaning)
    if fmt.negative_zero:
        below = Datum(fmt, fmt.compose(True, 1))
        assert fl.next_up(below).result.code == fmt.compose(True, 0)


def _check_signs(fmt, x, meaning):
    if not fmt.signed:
        assert fl.abs(x).result == x
        return
    without_minus = meaning.kind == "nan" and fmt.nan_in_place_of_negative_zero
    sign = 1 << (fmt.width - 1)
    negative = bool(x.code & sign) and not without_minus
    no_negative_zero = meaning.value == 0 and not fmt.negative_zero
    for operation, wanted in ((fl.negate, not negative), (fl.abs, False)):
        expected = x.code if without_minus or no_negative_zero else (x.code & (sign - 1)) | sign * wanted
        done = operation(x)
        assert (done.result.code, done.flags) == (expected, Flags.NONE), x
    for y in (Datum(fmt, 0), Datum(fmt, sign)):
        minus = bool(y.code) and not (y.is_nan and fmt.nan_in_place_of_negative_zero)
        expected = x.code if without_minus or no_negative_zero else (x.code & (sign - 1)) | sign * minus
        assert fl.copy_sign(x, y).result.code == expected, (x, y)


def _check_exponents(fmt, x, meaning):
    if meaning.kind == "infinite":
        assert fl.scale_b(x, -3).result == x
        assert fl.log_b(x).result == Datum(fmt, fmt.compose(False, fmt.infinity_magnitude))
        return
    for n in (-9, -2, 0, 1, 7, 1 << 20, -(1 << 20)):
        for direction in ("RNE", "RTP"):
            done = fl.scale_b(x, n, context=direction)
            power = Fraction(2) ** max(min(n, 60), -60)
            rules = oracle.Rules(direction)
            wanted = oracle.project(fmt, meaning.value * power, rules, meaning.negative)
            assert (done.result.code, frozenset(done.flags.names)) == wanted, (x, n)
    done = fl.log_b(x)
    if meaning.value:
        wanted = oracle.project(fmt, Fraction(oracle.floor_power(abs(meaning.value))))
        assert (done.result.code, frozenset(done.flags.names)) == wanted, x
    else:
        assert done.flags is Flags.DIVIDE_BY_ZERO


@pytest.mark.parametrize(
    ("name", "kind", "unsigned"), [("fp32", np.float32, np.uint32), ("fp64", np.float64, np.uint64)]
)
def test_numpy_and_mpfr_agree(name, kind, unsigned, generator):
    gmpy2 = pytest.importorskip("gmpy2")
    fmt = parse_format(name)
    landmarks = [0, 1, fmt.smallest_normal_magnitude, fmt.largest_magnitude, fmt.infinity_magnitude, fmt.nan_code]
    landmarks += [fmt.infinity_magnitude + 1, fmt.quiet_bit | fmt.infinity_magnitude | 5]  # signaling; a payload
    codes = [fmt.compose(negative, each) for each in landmarks for negative in (False, True)]
    codes += [generator.getrandbits(fmt.width) for _ in range(40)]

    def number(code: int):
        return np.array([code], unsigned).view(kind)[0]

    def bits(x) -> int:
        return int(np.array([x], kind).view(unsigned)[0])

    context = gmpy2.context(precision=fmt.precision, emin=2 - fmt.bias - (fmt.precision - 1), emax=fmt.emax + 1)
    with np.errstate(all="ignore"), gmpy2.context(context):
        for x, y in product(codes, repeat=2):
            a, b = Datum(fmt, x), Datum(fmt, y)
            assert fl.copy_sign(a, b).result.code == bits(np.copysign(number(x), number(y)))
            if not (a.is_nan or b.is_nan or (number(x) == 0 and number(y) == 0)):  # NumPy leaves the sign of zeros open
                assert fl.minimum(a, b).result.code == bits(np.minimum(number(x), number(y)))
                assert fl.maximum(a, b).result.code == bits(np.maximum(number(x), number(y)))
            if not (a.is_nan and b.is_nan):
                # MPFR has no signaling NaN, and its minimum ignores NaNs.
                theirs = [gmpy2.mpfr("nan") if d.is_nan else gmpy2.mpfr(float(number(d.code))) for d in (a, b)]
                for ours, their in ((fl.minimum_number, gmpy2.minnum), (fl.maximum_number, gmpy2.maxnum)):
                    assert ours(a, b).result.code == bits(float(their(*theirs))), (a, b)
        for x in codes:
            a = Datum(fmt, x)
            assert fl.negate(a).result.code == bits(-number(x))
            assert fl.abs(a).result.code == bits(np.abs(number(x)))
            if a.is_nan:
                continue
            assert fl.next_up(a).result.code == bits(np.nextafter(number(x), kind(np.inf)))
            assert fl.next_down(a).result.code == bits(np.nextafter(number(x), kind(-np.inf)))
            for n in (-300, -30, -3, 0, 5, 200, 1100):
                assert fl.scale_b(a, n).result.code == bits(np.ldexp(number(x), n)), (a, n)
            if a.is_finite and a.exact:
                assert float(fl.log_b(a).result) == np.frexp(number(x))[1] - 1


def test_mixed_formats_contexts_and_what_is_refused():
    half, single = fl.encode("0.1", "fp16"), fl.encode("0.1", "fp32")
    assert fl.minimum(half, single).result.format.name == "binary32"
    assert fl.negate(half, "e4m3").flags.names == ["inexact"]
    for source, target in (("fp32", "fp16"), ("fp16", "e4m3")):
        minus = fl.encode("-nan", source)
        signs = [done.result.sign_bit for done in (fl.abs(minus, target), fl.negate(minus, target))]
        assert signs == [0, 0]
        assert fl.copy_sign(fl.abs(minus), minus, target).result.sign_bit == 1
    assert fl.abs(fl.encode("-inf", "Binary8p4se"), context=Context(overflow="saturate")).result.is_infinite
    assert fl.abs(fl.encode("-inf", "fp16"), "Binary8p4se", Context(overflow="saturate")).result.is_finite
    assert fl.scale_b("1.5", fl.log_b("16", "fp16")).result.exact == 24
    assert fl.scale_b("1.5", "-2", "fp16").operands[1].as_fraction() == -2
    assert fl.next_up("0x1p-14", "fp16", Context(flush_inputs=True)).result.code == 0x401
    assert fl.next_up("0x1p-15", "fp16", Context(flush_inputs=True)).result.code == 1
    for power in ("1.5", "nan", 1 << 21, None, "x" * 50):
        with pytest.raises((LiteralError, fl.FloatlabError)):
            fl.scale_b("1", power, "fp16")
    with pytest.raises(fl.FormatError, match="leave out -f"):
        fl.next_up(half, "fp32")
