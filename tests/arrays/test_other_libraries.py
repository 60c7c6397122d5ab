"""Arrays compared with other libraries: from float32 to all formats that these have, and all codes back.

NaNs only have to be NaNs; all other results are compared code by code. Every difference of a library is a row of
`DIFFERENCES`: the values, the library's results, and the versions in which this was seen. docs/arrays-and-peers.md says
for each difference which library is right, and by which text.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import NamedTuple

import numpy as np
import pytest

from floatlab import Context, parse_format
from floatlab.arrays.conversion import decode, encode, quantize
from floatlab.numbers.rounding import draw
from tests.arrays.values import telling

ML_DTYPES = {
    "bfloat16": "bfloat16", "e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2", "e4m3fnuz": "float8_e4m3fnuz",
    "e5m2fnuz": "float8_e5m2fnuz", "e4m3b11fnuz": "float8_e4m3b11fnuz", "e4m3_ieee": "float8_e4m3",
    "e3m4": "float8_e3m4", "e8m0fnu": "float8_e8m0fnu", "e2m3fn": "float6_e2m3fn", "e3m2fn": "float6_e3m2fn",
    "e2m1fn": "float4_e2m1fn",
}  # fmt: skip
TORCH = ("bfloat16", "e4m3fn", "e5m2", "e4m3fnuz", "e5m2fnuz", "e8m0fnu")
KINDS = {
    "numpy": {"binary16": "float16"},
    "ml_dtypes": ML_DTYPES,
    "torch": {"binary16": "float16"} | {name: ML_DTYPES[name] for name in TORCH},
    "jax": {"binary16": "float16"} | {name: kind for name, kind in ML_DTYPES.items() if "6" not in kind},
}
KINDS["jax"]["bfloat16"] = "bfloat16"
PAIRS = [(peer, name) for peer, names in KINDS.items() for name in names]


def kind_of(peer, name):
    """Return a library's type, or skip."""
    if peer == "jax":
        pytest.importorskip("jax", reason="jax is not installed")
    module = pytest.importorskip("jax.numpy" if peer == "jax" else peer, reason=f"{peer} is not installed")
    kind = getattr(module, KINDS[peer][name], None)
    if kind is None:
        pytest.skip(f"{peer} {version(peer)} has no {KINDS[peer][name]}")
    return module, kind


def cast(peer, name, x):
    """Return the codes of a library's cast from float32."""
    module, kind = kind_of(peer, name)
    code = np.uint8 if parse_format(name).width <= 8 else np.uint16
    if peer == "torch":
        whole = {np.uint8: module.uint8, np.uint16: module.uint16}[code]
        return module.from_numpy(x).to(kind).view(whole).numpy()
    with np.errstate(all="ignore"):
        made = module.asarray(x).astype(kind) if peer == "jax" else x.astype(kind)
    return np.asarray(made).view(code)


def cast_back(peer, name, codes):
    """Return the codes as float32, cast by a library."""
    module, kind = kind_of(peer, name)
    if peer == "torch":
        return module.from_numpy(codes).view(kind).to(module.float32).numpy()
    if peer == "jax":
        return np.asarray(module.asarray(codes.view(np.dtype(kind))).astype(module.float32))
    return codes.view(kind).astype(np.float32)


class Difference(NamedTuple):
    """A difference from other libraries: the values for which their codes differ, and their codes."""

    name: str
    seen: dict  # the libraries that differ, and the versions in which this was seen
    formats: tuple
    where: object  # takes float32 values and the format; returns a mask of those that differ
    theirs: object  # takes the same; returns the library's codes


def _saturated(x, name):
    return encode(x, name, overflow="saturate")


DIFFERENCES = (
    Difference(
        "overflow saturates, infinities too", {"torch": "2.13.0"}, ("e4m3fn",),
        lambda x, name: np.abs(x) > 464, _saturated,
    ),
    Difference(
        "a NaN is a zero of the other sign where the format has none", {"ml_dtypes": "0.6.0"},
        ("e2m3fn", "e3m2fn", "e2m1fn"),
        lambda x, name: np.isnan(x),
        lambda x, name: np.where(np.signbit(x), 0, 1 << (parse_format(name).width - 1)),
    ),
    Difference(
        "a NaN is −0 where the format has none", {"jax": "0.10.2"}, ("e2m1fn",),
        lambda x, name: np.isnan(x), lambda x, name: np.full(x.shape, 0b1000),
    ),
    Difference(
        "e8m0: a zero is a NaN", {"ml_dtypes": "0.6.0", "jax": "0.10.2"}, ("e8m0fnu",),
        lambda x, name: x == 0, lambda x, name: encode(x, name, context=Context(absent="nan")),
    ),
    Difference(
        "e8m0: the sign is dropped", {"torch": "2.13.0"}, ("e8m0fnu",),
        lambda x, name: x < 0, lambda x, name: encode(-x, name),
    ),
    Difference(
        "e8m0: what lies above 2^-127 goes up to 2^-126, though 2^-127 is nearer",
        {"ml_dtypes": "0.6.0", "jax": "0.10.2", "torch": "2.13.0"}, ("e8m0fnu",),
        lambda x, name: (np.abs(x) > 2.0**-127) & (np.abs(x) < 1.5 * 2.0**-127) & (encode(x, name) != 0xFF),
        lambda x, name: np.ones(x.shape),
    ),
    Difference(
        "e8m0: the same, below zero", {"torch": "2.13.0"}, ("e8m0fnu",),
        lambda x, name: (-x > 2.0**-127) & (-x < 1.5 * 2.0**-127), lambda x, name: np.ones(x.shape),
    ),
)  # fmt: skip
ROWS = [(row, peer, name) for row in DIFFERENCES for peer in row.seen for name in row.formats]


def is_nan(codes, name):
    return np.isnan(decode(codes, name))


def values(name, count=20_000):
    """Return values that are hard for a format, and as many random bit patterns."""
    random = np.random.default_rng(5).integers(0, 1 << 32, count, dtype=np.uint32)
    return np.concatenate([telling(parse_format(name), np.float32, count), random.view(np.float32)])


def assert_explained(peer, name, x):
    """Assert that a library's codes are ours, except for the known differences."""
    ours, theirs = encode(x, name), cast(peer, name, x)
    same = (ours == theirs) | (is_nan(ours, name) & is_nan(theirs, name))
    explained = same.copy()
    for row in DIFFERENCES:
        if peer in row.seen and name in row.formats:
            here = row.where(x, name)
            explained[here] = same[here] | (row.theirs(x[here], name) == theirs[here])
    wrong = np.flatnonzero(~explained)
    told = [f"{x[i].item().hex()}: {ours[i]:#x}, {theirs[i]:#x} by {peer}" for i in wrong[:5]]
    assert not len(wrong), f"{len(wrong)} of {len(x)} into {name}: {told}"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(("peer", "name"), PAIRS)
def test_a_library_casts_float32_the_same(peer, name):
    assert_explained(peer, name, values(name))


@pytest.mark.slow
@pytest.mark.parametrize(("peer", "name"), PAIRS)
def test_a_library_casts_many_float32_the_same(peer, name):
    for upper in range(0, 1 << 32, 1 << 28):  # every upper half, with random lower halves
        random = np.random.default_rng(upper).integers(0, 1 << 16, 1 << 20, dtype=np.uint32)
        assert_explained(peer, name, (random + (np.arange(1 << 20, dtype=np.uint32) << 8) + upper).view(np.float32))


@pytest.mark.parametrize(("row", "peer", "name"), ROWS, ids=lambda each: getattr(each, "name", each))
def test_a_difference_is_there(row, peer, name):
    try:
        found = version(peer)
    except PackageNotFoundError:
        pytest.skip(f"{peer} is not installed")
    if found.partition("+")[0] != row.seen[peer]:
        pytest.skip(f"seen with {peer} {row.seen[peer]}; this is {found}")
    x = values(name)
    x = x[row.where(x, name)]
    assert (encode(x, name) != cast(peer, name, x)).any()


@pytest.mark.parametrize(("peer", "name"), PAIRS)
def test_every_code_is_read_the_same(peer, name):
    codes = np.arange(1 << parse_format(name).width, dtype=encode([1.0], name).dtype)
    ours, theirs = decode(codes, name), cast_back(peer, name, codes)
    assert np.array_equal(ours, theirs, equal_nan=True)
    numbers = ~np.isnan(ours)
    assert np.array_equal(np.signbit(ours[numbers]), np.signbit(theirs[numbers]))


@pytest.mark.parametrize("source", [np.float32, np.float64])
@pytest.mark.parametrize(("name", "kind"), [("binary16", np.float16), ("binary32", np.float32)])
def test_numpy_casts_the_same_and_back(name, kind, source):
    x = telling(parse_format(name), source, 20_000)
    numbers = ~np.isnan(x)
    with np.errstate(all="ignore"):
        made = x.astype(kind)
    assert np.array_equal(encode(x, name)[numbers], made.view(f"u{made.itemsize}")[numbers])
    assert np.array_equal(quantize(x, name), made.astype(source), equal_nan=True)


QUIET = {"binary16": 0x7E00, "bfloat16": 0x7FC0, "e5m2": 0x7E}
NANS = {  # the code that a NaN becomes, by its sign and, if the library keeps them, the leading digits of its payload
    ("numpy", "binary16"): lambda sign, digits: sign | 0x7C00 | np.maximum(digits, 1),
    ("torch", "binary16"): lambda sign, digits: sign | 0x7E00 | digits,
    ("torch", "bfloat16"): lambda sign, digits: np.full(sign.shape, 0xFFFF),
    ("torch", "e5m2"): lambda sign, digits: sign | 0x7F,
    ("ml_dtypes", "bfloat16"): lambda sign, digits: sign | 0x7FC0,
    ("ml_dtypes", "e5m2"): lambda sign, digits: sign | 0x7E,
}


@pytest.mark.parametrize(("peer", "name"), NANS)
def test_codes_of_nans_are_as_documented(peer, name):
    fmt = parse_format(name)
    x = values(name)
    x = x[np.isnan(x)]
    bits = x.view(np.uint32)
    sign = (bits >> 31) << (fmt.width - 1)
    digits = (bits & 0x7FFFFF) >> (23 - fmt.trailing_bits)
    assert np.array_equal(cast(peer, name, x), NANS[peer, name](sign, digits))
    assert np.array_equal(encode(x, name), sign | QUIET[name] | digits)


# gfloat rounds NumPy's float64 in five directions, with and without saturation, and stochastically with given draws.

GFLOAT = {
    "binary16": "binary16", "bfloat16": "bfloat16", "binary32": "binary32", "e5m2": "ocp_e5m2", "e4m3fn": "ocp_e4m3",
    "e2m3fn": "ocp_e2m3", "e3m2fn": "ocp_e3m2", "e2m1fn": "ocp_e2m1", "e8m0fnu": "ocp_e8m0",
    "p3109_k8p4se": (8, 4, "Signed", "Extended"), "p3109_k8p1sf": (8, 1, "Signed", "Finite"),
    "p3109_k6p3se": (6, 3, "Signed", "Extended"), "p3109_k8p3uf": (8, 3, "Unsigned", "Finite"),
    "p3109_k8p2ue": (8, 2, "Unsigned", "Extended"),
}  # fmt: skip
MODES = {
    "RNE": "TiesToEven", "RNA": "TiesToAway", "RTZ": "TowardZero", "RTP": "TowardPositive", "RTN": "TowardNegative",
    "SR": "StochasticFastest",
}  # fmt: skip


def gfloat_format(name):
    formats = import_module("gfloat.formats")
    row = GFLOAT[name]
    if isinstance(row, str):
        return getattr(formats, f"format_info_{row}")
    k, p, signedness, domain = row
    return formats.format_info_p3109(k, p, formats.Signedness[signedness], formats.Domain[domain])


def gfloat_takes(fmt, x):
    """Return the values that gfloat can convert.

    It rejects NaNs if the format has none. For negative values in unsigned formats, and for values below the smallest
    in formats without a zero, its codes are wrong.
    """
    takes = ~np.isnan(x) | fmt.has_nan
    if not fmt.signed:
        takes &= ~(x < 0)
    return takes if fmt.zero else takes & (x >= float(fmt.smallest))


# In formats without ∞ and NaN, gfloat supports only saturation.
CASES = [(name, saturate) for name in GFLOAT for saturate in (True, False) if saturate or parse_format(name).has_nan]


@pytest.mark.parametrize("direction", MODES)
@pytest.mark.parametrize(("name", "saturate"), CASES)
def test_gfloat_rounds_the_same(name, saturate, direction):
    gfloat = pytest.importorskip("gfloat", reason="gfloat is not installed")
    info, fmt = gfloat_format(name), parse_format(name)
    if fmt.precision == 1:
        fmt = fmt.replace(ties_to_even_code=True)  # e8m0, too, where floatlab's ties go away from zero
    with np.errstate(invalid="ignore"):  # signaling NaNs
        x = telling(fmt, np.float64 if name == "binary32" else np.float32, 1500).astype(np.float64)
    x = x[gfloat_takes(fmt, x)]
    places = np.arange(len(x), dtype=np.uint64)
    # It steps away from zero if rest + bits/2^32 ≥ 1. With complemented bits, this is the same as draw < rest·2^32.
    bits = (1 << 32) - 1 - draw(7, places).astype(np.int64)
    drawn = {"srbits": bits, "srnumbits": 32} if direction == "SR" else {}
    with np.errstate(all="ignore"):
        values = gfloat.round_ndarray(info, x, gfloat.RoundMode[MODES[direction]], sat=saturate, **drawn)
        theirs = gfloat.encode_ndarray(info, values)
    ours = encode(x, fmt, context=Context(direction, seed=7, overflow="saturate" if saturate else "native"))
    wrong = (ours != theirs) & ~(np.isnan(decode(ours, fmt)) & np.isnan(values))
    assert not wrong.any(), [(x[i].hex(), hex(ours[i]), hex(theirs[i])) for i in np.flatnonzero(wrong)[:5]]


@pytest.mark.parametrize("name", GFLOAT)
def test_gfloat_reads_codes_the_same(name):
    gfloat = pytest.importorskip("gfloat", reason="gfloat is not installed")
    fmt = parse_format(name)
    step = max(1, (1 << fmt.width) // (1 << 16))
    codes = np.arange(0, 1 << fmt.width, step | 1, dtype=np.uint32)
    theirs = gfloat.decode_ndarray(gfloat_format(name), codes.astype(np.int64))
    assert np.array_equal(decode(codes, fmt, dtype=np.float64), theirs, equal_nan=True)
