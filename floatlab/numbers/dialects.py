"""Dialects: how processors and libraries round into the same formats.

A dialect names a document, and has the settings of a Context that this document requires: for overflow, infinities,
NaNs and negative numbers. The settings may differ between formats. To add a dialect, add a row.
"""

from __future__ import annotations

from floatlab.errors import ContextError, guess, quoted
from floatlab.formats import Format
from floatlab.numbers.rounding import Context
from floatlab.record import Record


class Dialect(Record):
    """A processor's or library's conversions into formats, and the document that defines them.

    `words` is a short description. `formats` are the names of the formats that the document covers. `rules` has the
    settings of a Context by format; the entry "" is for all other formats. `left` is text: the rules of the document
    that a Context cannot express.
    """

    name: str
    words: str
    formats: tuple[str, ...]
    rules: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    source: str
    left: str = ""

    def context(self, format: Format, usual: Context) -> Context:
        """Return `usual` with the dialect's settings for a format; unchanged if the document does not cover the format.

        >>> from floatlab.formats import parse_format
        >>> parse_dialect("torch").context(parse_format("e4m3"), Context())
        Context(overflow='saturate')
        """
        if not self.covers(format):
            return usual
        rules = dict(self.rules)
        return usual.replace(**dict(rules.get(format.name, rules.get("", ()))))

    def covers(self, format: Format) -> bool:
        """Return whether the document covers a format."""
        return format.name in self.formats


_OFP8 = ("e4m3fn", "e5m2")
_ARM = "Arm ARM DDI 0487, section A1.5.5 and table A1-8"
_RISCV = "RISC-V Zvfofp8min 0.2.1 (May 2025)"
_AVX10 = "Intel AVX10.2 Architecture Specification (361050), sections 3.2 and 5.1"
_CUDA = "NVIDIA CUDA, cuda_fp8.hpp and cuda_fp4.hpp; PTX ISA 9.4, cvt"
_OCP = "OCP OFP8 1.0, saturating and non-saturating conversions"
_UNSIGNED = ("e8m0fnu", "ue5m3", "ue4m3")


def _all(**choices: str) -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    return (("", tuple(choices.items())),)


DIALECTS: tuple[Dialect, ...] = (
    Dialect("arm-fp8", "FPMR.OSC = 0: beyond the largest, e4m3 gives NaN and e5m2 ∞", _OFP8,
        _all(overflow="native", nan="riscv"), _ARM,
        "Arm raises overflow and inexact for ∞ too; its e4m3 NaN is signaling"),
    Dialect("arm-fp8-sat", "FPMR.OSC = 1: the largest number, for ∞ too", _OFP8,
        _all(overflow="saturate", nan="riscv"), _ARM, "Arm's e4m3 NaN is signaling"),
    Dialect("riscv-zvfofp8min", "infinite results: e4m3 gives the canonical NaN, e5m2 ∞", _OFP8,
        _all(overflow="native", nan="riscv-fp8"), _RISCV),
    Dialect("riscv-zvfofp8min-sat", "the .sat forms: the largest number, for ∞ too", _OFP8,
        _all(overflow="saturate", nan="riscv-fp8"), _RISCV),
    Dialect("x86-avx10", "VCVT…PH2HF8 and PH2BF8: beyond the largest, hf8 (e4m3) gives NaN and bf8 (e5m2) ∞", _OFP8,
        _all(overflow="native", nan="x86"), _AVX10),
    Dialect("x86-avx10-sat", "VCVT…HF8S and BF8S: finite numbers saturate; ∞ is NaN in hf8, and stays ∞ in bf8", _OFP8,
        _all(overflow="propagate", nan="x86"), _AVX10),
    Dialect("cuda", "__NV_SATFINITE: the largest number, for ∞ too; unsigned formats drop the sign",
        (*_OFP8, "e2m3fn", "e3m2fn", "e2m1fn", *_UNSIGNED), _all(overflow="saturate", negative="drop"), _CUDA,
        "a negative NaN gives the positive largest number in fp6 and fp4"),
    Dialect("cuda-nosat", "__NV_NOSAT: beyond the largest, e4m3 and ue5m3 give NaN, and e5m2 ∞",
        (*_OFP8, *_UNSIGNED), _all(overflow="native", negative="drop"), _CUDA),
    Dialect("ocp", "non-saturating conversions", _OFP8, _all(overflow="native"), _OCP),
    Dialect("ocp-sat", "saturating conversions: the largest number, for ∞ too", _OFP8, _all(overflow="saturate"), _OCP),
    Dialect("torch", "PyTorch 2.13 on the CPU: e4m3fn saturates, even ∞; the others do not",
        (*_OFP8, "e4m3fnuz", "e5m2fnuz", "e8m0fnu"),
        (("e4m3fn", (("overflow", "saturate"),)), ("e8m0fnu", (("negative", "drop"),)), ("", ())),
        "observed: PyTorch 2.13 (docs/arrays-and-peers.md)", "its casts from float64 round twice, by way of float32"),
    Dialect("ml_dtypes", "∞, else NaN; zero and negative numbers into e8m0 give NaN",
        (*_OFP8, "e4m3fnuz", "e5m2fnuz", "e4m3b11fnuz", "e4m3_ieee", "e3m4", "e8m0fnu"),
        (("e8m0fnu", (("absent", "nan"),)), ("", ())),
        "observed: ml_dtypes 0.6 (docs/arrays-and-peers.md)",
        "its casts from float64 round twice, by way of float32; NaN into fp6 and fp4 gives −0"),
)  # fmt: skip
_BY_NAME = {dialect.name: dialect for dialect in DIALECTS}


def parse_dialect(name: str | Dialect) -> Dialect:
    """Return the dialect with a name; for an unknown name, raises ContextError, which suggests a similar name.

    >>> parse_dialect("CUDA").words.partition(":")[0]
    '__NV_SATFINITE'
    """
    if isinstance(name, Dialect):
        return name
    plain = str(name).strip().lower()
    found = _BY_NAME.get(plain) or _BY_NAME.get(plain.replace("_", "-"))
    if found is None:
        raise ContextError(
            f"unknown dialect {quoted(str(name))}{guess(plain, [*_BY_NAME])} (known: {' '.join(_BY_NAME)})"
        )
    return found


def dialects_of(format: Format) -> list[Dialect]:
    """Return the dialects whose documents cover a format.

    >>> from floatlab.formats import parse_format
    >>> [dialect.name for dialect in dialects_of(parse_format("ue5m3"))]
    ['cuda', 'cuda-nosat']
    """
    return [dialect for dialect in DIALECTS if dialect.covers(format)]
