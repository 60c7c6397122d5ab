"""The named formats, one row each with its source; and `parse_format`, which finds the format of a name or pattern.

To add a format, add a row.
"""

from __future__ import annotations

import re
from functools import lru_cache

from floatlab.errors import FormatError, guess, quoted
from floatlab.formats.format import MAX_EXPONENT_BITS, MAX_TRAILING_BITS, CatalogRow, Format

IEEE = "IEEE 754-2019, table 3.5"
INTEL = "Intel 64 and IA-32 Architectures SDM, volume 1, section 4.2.2"
NVIDIA = "NVIDIA A100 Tensor Core GPU Architecture (2020)"
BRAIN = "Intel BFLOAT16 Hardware Numerics Definition (2018)"
OFP8 = "OCP 8-bit Floating Point Specification (OFP8) 1.0"
MX = "OCP Microscaling Formats (MX) Specification 1.0"
FNUZ = "Noune et al., 8-bit Numerical Formats for Deep Neural Networks (arXiv:2206.02915)"
FP8B11 = "Sun et al., Hybrid 8-bit Floating Point Training (NeurIPS 2019)"
P3109 = "IEEE P3109 Working Group, Interim Report on Binary Floating-point Formats, version 4.0 (26 June 2026)"
CUDA = "CUDA Math API 13.4 and later, __nv_fp8_ue5m3; PTX ISA 9.4, .ue5m3x2"
UNSIGNED = "the pattern ue<W>m<T>: e<W>m<T>fn without a sign; without trailing bits, powers of two as in e8m0fnu"
PATTERN = "the pattern e<W>m<T>: the rules of IEEE 754-2019 clause 3.4 for any W and T"


def fnuz(name: str, precision: int, exponent_bits: int, bias: int | None = None) -> Format:
    """Return a format without infinity and −0, whose only NaN has the code that −0 would have (arXiv:2206.02915)."""
    bias = 1 << (exponent_bits - 1) if bias is None else bias
    return Format(name, precision, exponent_bits, bias, infinities=False, nans=0, negative_zero=False)


def finite(name: str, precision: int, exponent_bits: int, nans: int = 0) -> Format:
    """Return a format without infinity, with `nans` NaNs per sign: 1 in OCP's e4m3fn, 0 in OCP's fp6 and fp4."""
    return Format(name, precision, exponent_bits, infinities=False, nans=nans)


def unsigned(w: int, t: int) -> Format:
    """Return the format ue<W>m<T>, for scales: it has no sign and no infinity, and no zero if T is 0.

    The last code of the format is its only NaN.

    >>> unsigned(5, 3).largest, unsigned(4, 3).width
    (Fraction(114688, 1), 7)
    """
    return Format(f"ue{w}m{t}", t + 1, w, infinities=False, nans=1, zero=t > 0, signed=False)


CATALOG: tuple[CatalogRow, ...] = (
    CatalogRow(Format("binary16", 11, 5), ("fp16", "float16", "half", "f16"), IEEE, "GPUs, images, training"),
    CatalogRow(Format("binary32", 24, 8), ("fp32", "float32", "single", "f32"), IEEE, "the common float"),
    CatalogRow(Format("binary64", 53, 11), ("fp64", "float64", "double", "f64"), IEEE, "Python's float"),
    CatalogRow(Format("binary128", 113, 15), ("fp128", "float128", "quad", "f128"), IEEE, "quadruple precision"),
    CatalogRow(Format("x87", 64, 15, explicit_integer_bit=True), ("fp80", "float80", "extf80"), INTEL,
        "x86 long double; its integer bit is stored"),
    CatalogRow(Format("bfloat16", 8, 8), ("bf16",), BRAIN, "training; binary32's range"),
    CatalogRow(Format("tf32", 11, 8), ("tensorfloat32",), NVIDIA, "tensor-core inputs, 19 of binary32's 32 bits"),
    CatalogRow(finite("e4m3fn", 4, 4, nans=1), ("e4m3", "fp8_e4m3", "fp8_e4m3fn", "float8_e4m3fn"), OFP8,
        "fp8 weights and activations"),
    CatalogRow(Format("e5m2", 3, 5), ("fp8_e5m2", "float8_e5m2"), OFP8, "fp8 gradients"),
    CatalogRow(fnuz("e4m3fnuz", 4, 4), ("fp8_e4m3fnuz", "float8_e4m3fnuz"), FNUZ, "fp8 on AMD MI300, Graphcore"),
    CatalogRow(fnuz("e5m2fnuz", 3, 5), ("fp8_e5m2fnuz", "float8_e5m2fnuz"), FNUZ, "fp8 on AMD MI300, Graphcore"),
    CatalogRow(fnuz("e4m3b11fnuz", 4, 4, bias=11), ("fp8_e4m3b11fnuz", "float8_e4m3b11fnuz", "e4m3b11"), FP8B11,
        "fp8 with a shifted range, on TPUs"),
    CatalogRow(Format("e4m3_ieee", 4, 4), ("fp8_e4m3_ieee", "float8_e4m3"), IEEE + "'s rules at 8 bits",
        "fp8 with IEEE specials"),
    CatalogRow(Format("e3m4", 5, 3), ("fp8_e3m4", "float8_e3m4"), IEEE + "'s rules at 8 bits", "fp8, more digits"),
    CatalogRow(Format("e8m0fnu", 1, 8, infinities=False, nans=1, zero=False, signed=False),
        ("e8m0", "float8_e8m0fnu", "ue8m0"), MX, "scales of MX blocks: powers of two, no zero, no sign"),
    CatalogRow(unsigned(5, 3), ("fp8_ue5m3",), CUDA, "scales of fp4 blocks, more range"),
    CatalogRow(unsigned(4, 3), ("float_ue4m3",), "CUTLASS, float_ue4m3_t: e4m3fn without a sign",
        "scales of fp4 blocks; 7 bits, stored in 8"),
    CatalogRow(finite("e2m3fn", 4, 2), ("fp6_e2m3", "e2m3", "fp6_e2m3fn", "float6_e2m3fn"), MX, "fp6"),
    CatalogRow(finite("e3m2fn", 3, 3), ("fp6_e3m2", "e3m2", "fp6_e3m2fn", "float6_e3m2fn"), MX, "fp6"),
    CatalogRow(finite("e2m1fn", 2, 2), ("e2m1", "fp4", "fp4_e2m1", "fp4_e2m1fn", "float4_e2m1fn"), MX, "fp4"),
)  # fmt: skip


def p3109(k: int, p: int, signed: bool, extended: bool) -> Format:
    """Return IEEE P3109's format of width `k` and precision `p` (interim report, section 4).

    The only NaN has the code that −0 would have in signed formats, and the last code in unsigned formats. Only extended
    formats have infinity; its code follows the code of the largest number.

    >>> p3109(8, 4, signed=True, extended=True).largest
    Fraction(224, 1)
    """
    w = k - p if signed else k - p + 1
    return Format(
        f"p3109_k{k}p{p}{'s' if signed else 'u'}{'e' if extended else 'f'}",
        p,
        w,
        bias=1 << (w - 1),
        infinities=extended,
        nans=0 if signed else 1,
        negative_zero=False,
        signed=signed,
        ties_to_even_code=True,
    )


# The names of block formats and their aliases; `formats.blocks` defines these formats. They are listed here so that the
# error message of `parse_format` can say “this is a block format” without importing that module.
BLOCK_NAMES: dict[str, tuple[str, ...]] = {
    "mxfp8_e4m3": ("mxfp8_e4m3fn",),
    "mxfp8_e5m2": (),
    "mxfp6_e2m3": ("mxfp6_e2m3fn",),
    "mxfp6_e3m2": ("mxfp6_e3m2fn",),
    "mxfp4": ("mxfp4_e2m1", "mxfp4_e2m1fn"),
    "mxint8": (),
    "nvfp4": ("nvfp4_e2m1",),
    "hif4": ("hifloat4",),
    **dict.fromkeys(("q8_0", "q4_0", "q4_1", "q4_k"), ()),
}
BLOCK_FAMILIES = {"mxfp8": "mxfp8_e4m3 mxfp8_e5m2", "mxfp6": "mxfp6_e2m3 mxfp6_e3m2", "mx": "mxfp8_e4m3 mxfp4 …"}
_BY_NAME = {name: row for row in CATALOG for name in (row.format.name, *row.aliases)}
BLOCK_ALIASES = {name for row in BLOCK_NAMES.items() for name in (row[0], *row[1])}
_PATTERN = re.compile(r"(u?)e([0-9]{1,4})m([0-9]{1,4})(fnuz|fn|f|)")
_P3109 = re.compile(r"(?:p3109_k|binary)([0-9]{1,4})p([0-9]{1,4})([su])([ef])")
MAX_P3109_WIDTH = 64
MAX_NAME = 64
# Format names that are also command-line options, such as --fp16.
SHORTHANDS = ("fp16", "fp32", "fp64", "fp128", "bf16", "tf32", "e4m3", "e5m2", "e2m1")
TABLE_SHORTHANDS = ("hif8", "nf4", "posit8", "posit16")  # these are also options, but the help does not list them
# Names that are used for several formats at once.
FAMILIES = {
    **dict.fromkeys(("fp8", "float8", "f8"), "e4m3 e5m2 e4m3fnuz e5m2fnuz (show bits:0x38 --dialects compares them)"),
    **dict.fromkeys(("fp6", "float6"), "e2m3 e3m2"),
    **dict.fromkeys(("float4",), "e2m1"),
    **dict.fromkeys(("float", "fp", "ieee", "ieee754"), "fp16 fp32 fp64 fp128"),
    "p3109": "p3109_k8p3se p3109_k8p4se …",
}


def _pattern(sign: str, w: int, t: int, suffix: str) -> Format:
    name = f"{sign}e{w}m{t}{suffix}"
    if sign and suffix:
        raise FormatError(f"{name}: ue<W>m<T> has no suffix; its last code is the only NaN")
    if not (1 <= w <= MAX_EXPONENT_BITS and 0 <= t <= MAX_TRAILING_BITS):
        raise FormatError(f"{name}: e<W>m<T> takes W from 1 to {MAX_EXPONENT_BITS} and T from 0 to {MAX_TRAILING_BITS}")
    if sign:
        return unsigned(w, t)
    if suffix == "fnuz":
        return fnuz(name, t + 1, w)
    if suffix in ("fn", "f"):
        return finite(name, t + 1, w, nans=int(suffix == "fn"))
    return Format(name, t + 1, w)


def _ieee(name: str) -> Format:
    base = parse_format(name.removesuffix("_ieee"))
    if not base.signed or base.explicit_integer_bit:
        raise FormatError(f"{quoted(name)}: {base.name} has no IEEE 754 form: it is unsigned or no interchange format")
    return Format(name, base.precision, base.exponent_bits)


def catalog_row(format: Format) -> CatalogRow:
    """Return the catalog row of a format; for a format that is not in the catalog, such as P3109's, return a new row.

    >>> from floatlab.formats import parse_format
    >>> catalog_row(parse_format("fp8_e5m2")).aliases
    ('fp8_e5m2', 'float8_e5m2')
    """
    named = _BY_NAME.get(format.name)
    if format.is_table:
        from floatlab.formats.table_catalog import table_row

        named = table_row(format.name)
    if named is not None and named.format == format:
        return named
    if format.name.startswith("p3109_"):
        return CatalogRow(format, (f"Binary{format.name.removeprefix('p3109_k')}",), P3109, "P3109")
    if format == unsigned(format.exponent_bits, format.trailing_bits):
        return CatalogRow(format, (), UNSIGNED, "scales")
    return CatalogRow(format, (), PATTERN, "custom")


def family(name: str) -> str:
    """Return an error message that lists the formats of a family, or an empty string for other names.

    >>> family("fp6")
    "'fp6' is a family of formats: name one of e2m3 e3m2"
    """
    members = FAMILIES.get(name.lower())
    return f"{quoted(name)} is a family of formats: name one of {members}" if members else ""


def short_name(format: Format) -> str:
    """Return the short name of a format (`SHORTHANDS`), or its full name if it has no short name.

    >>> short_name(parse_format("binary16")), short_name(parse_format("e3m4"))
    ('fp16', 'e3m4')
    """
    return next((name for name in SHORTHANDS if parse_format(name) == format), format.name)


@lru_cache(maxsize=256)
def _lookup(name: str) -> Format:
    if len(name) > MAX_NAME:
        raise FormatError(f"unknown format {quoted(name)}: no name is that long")
    plain = name.strip().lower().replace("-", "_")
    if plain in _BY_NAME:
        return _BY_NAME[plain].format
    if plain.endswith("_ieee"):
        return _ieee(plain)
    if found := _P3109.fullmatch(plain):
        k, p, signed = int(found[1]), int(found[2]), found[3] == "s"
        most = k - 1 if signed else k
        if not (2 <= k <= MAX_P3109_WIDTH and 1 <= p <= most and k - p <= MAX_EXPONENT_BITS - 1):
            raise FormatError(
                f"{quoted(name)}: P3109 names are p3109_k<K>p<P><s|u><e|f> with K from 2 to {MAX_P3109_WIDTH}, "
                f"P from 1 to K − 1 (signed) or K (unsigned), and K at most P + {MAX_EXPONENT_BITS - 1}"
            )
        return p3109(k, p, signed, found[4] == "e")
    if found := _PATTERN.fullmatch(plain):
        return _pattern(found[1], int(found[2]), int(found[3]), found[4])
    from floatlab.formats.table_catalog import TABLE_NAMES, table_row  # here, since few commands name such a format

    if row := table_row(plain):
        return row.format
    if words := family(plain):
        raise FormatError(words)
    if plain in BLOCK_FAMILIES:
        raise FormatError(f"{plain} is a family of block formats: {BLOCK_FAMILIES[plain]}")
    if plain in BLOCK_ALIASES:
        raise FormatError(f"{plain} is a block format: floatlab block VALUE… --to {plain} shows one")
    if re.fullmatch(r"u?(int|i)[0-9]{1,3}", plain):
        raise FormatError(f"{quoted(name)} is a type of integers, not of floats: toint VALUE --to {plain} converts")
    raise FormatError(
        f"unknown format {quoted(name)}{guess(plain, sorted([*_BY_NAME, *TABLE_NAMES]))}"
        " (known: floatlab formats; any e<W>m<T>[fn|f|fnuz] works too)"
    )


def parse_format(name: str | Format) -> Format:
    """Return the format of a name.

    Parameters
    ----------
    name : str or Format
        A name or alias of the catalog (`fp16`, `FP8-E4M3`) or of a table format (`nf4`, `posit16`), a P3109 name
        (`p3109_k8p4se`, `Binary8p4se`), or a pattern (`e<W>m<T>[fn|f|fnuz]`, `ue<W>m<T>`). The suffix `_ieee` selects
        the infinities and NaNs of IEEE 754: `e4m3` alone means `e4m3fn`, which has no infinity; `e4m3_ieee` has
        infinities. Case is ignored, and `-` equals `_`. A Format is returned unchanged.

    Returns
    -------
    Format

    Raises
    ------
    FormatError
        The name is unknown (the message suggests a similar one), or it names a family, a block format or a type of
        integers.

    Examples
    --------
    >>> parse_format("FP8-E4M3").name
    'e4m3fn'
    >>> parse_format("e6m9").width
    16
    """
    if isinstance(name, Format):
        return name
    if not isinstance(name, str):
        raise FormatError(f"a format must be a name or a Format, not {type(name).__name__}")
    return _lookup(name)


def format_called(name: str) -> Format | None:
    """Return the format of a library's type name, such as float16 or float8_e4m3fn, or None for other names."""
    kind, _, variant = name.partition("_")
    if kind.strip("0123456789") not in ("float", "bfloat"):
        return None
    try:
        # In libraries, float8_e4m3 is the format with infinities, and e4m3fn is always spelled out. Here, `e4m3` means
        # e4m3fn.
        return parse_format({"e4m3": "e4m3_ieee", "e5m2": "e5m2"}.get(variant, variant) or kind)
    except FormatError:
        return None
