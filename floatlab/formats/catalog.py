"""The formats that have names: one row each, with its source. Adding a format is adding a row."""

from __future__ import annotations

from floatlab.formats.format import Format
from floatlab.record import Record

IEEE = "IEEE 754-2019, table 3.5"
INTEL = "Intel 64 and IA-32 Architectures SDM, volume 1, section 4.2.2"
NVIDIA = "NVIDIA A100 Tensor Core GPU Architecture (2020)"
BRAIN = "Intel BFLOAT16 Hardware Numerics Definition (2018)"
OFP8 = "OCP 8-bit Floating Point Specification (OFP8) 1.0"
MX = "OCP Microscaling Formats (MX) Specification 1.0"
FNUZ = "Noune et al., 8-bit Numerical Formats for Deep Neural Networks (arXiv:2206.02915)"
FP8B11 = "Sun et al., Hybrid 8-bit Floating Point Training (NeurIPS 2019)"
P3109 = "IEEE P3109 Working Group, Interim Report on Binary Floating-point Formats for Machine Learning"
PATTERN = "the pattern e<W>m<T>: the rules of IEEE 754-2019 clause 3.4 for any W and T"


class CatalogRow(Record):
    """A named format: its aliases, where it is defined, and what it is for."""

    format: Format
    aliases: tuple[str, ...]
    source: str
    purpose: str


def fnuz(name: str, precision: int, exponent_bits: int, bias: int | None = None) -> Format:
    """Return a format with one NaN in the place of −0 and no infinity (arXiv:2206.02915)."""
    bias = 1 << (exponent_bits - 1) if bias is None else bias
    return Format(name, precision, exponent_bits, bias, infinities=False, nans=0, negative_zero=False)


def finite(name: str, precision: int, exponent_bits: int, nans: int = 0) -> Format:
    """Return a format without infinity, and with so many NaNs per sign (OCP's `fn` has one, `f` none)."""
    return Format(name, precision, exponent_bits, infinities=False, nans=nans)


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
    CatalogRow(finite("e2m3fn", 4, 2), ("fp6_e2m3", "e2m3", "fp6_e2m3fn", "float6_e2m3fn"), MX, "fp6"),
    CatalogRow(finite("e3m2fn", 3, 3), ("fp6_e3m2", "e3m2", "fp6_e3m2fn", "float6_e3m2fn"), MX, "fp6"),
    CatalogRow(finite("e2m1fn", 2, 2), ("e2m1", "fp4", "fp4_e2m1", "fp4_e2m1fn", "float4_e2m1fn"), MX, "fp4"),
)  # fmt: skip


def p3109(k: int, p: int, signed: bool, extended: bool) -> Format:
    """Return IEEE P3109's format of width `k` and precision `p` (interim report, section 4).

    Its one NaN takes the code of −0 (signed) or the last code (unsigned); the infinities of the
    extended formats end the strip.

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


# The names of block formats and their aliases: `formats.blocks` says what they are. Whoever is given one of them where
# a format of single numbers is wanted can say where it belongs.
BLOCK_NAMES: dict[str, tuple[str, ...]] = {
    "mxfp8_e4m3": ("mxfp8_e4m3fn",),
    "mxfp8_e5m2": (),
    "mxfp6_e2m3": ("mxfp6_e2m3fn",),
    "mxfp6_e3m2": ("mxfp6_e3m2fn",),
    "mxfp4": ("mxfp4_e2m1", "mxfp4_e2m1fn"),
    "mxint8": (),
    "nvfp4": ("nvfp4_e2m1",),
}
BLOCK_FAMILIES = {"mxfp8": "mxfp8_e4m3 mxfp8_e5m2", "mxfp6": "mxfp6_e2m3 mxfp6_e3m2", "mx": "mxfp8_e4m3 mxfp4 …"}
