"""From the name that a user types to the format it means."""

from __future__ import annotations

import re
from functools import lru_cache

from floatlab.errors import FormatError, guess, quoted
from floatlab.formats.catalog import (
    BLOCK_FAMILIES,
    BLOCK_NAMES,
    CATALOG,
    P3109,
    PATTERN,
    CatalogRow,
    finite,
    fnuz,
    p3109,
)
from floatlab.formats.format import MAX_EXPONENT_BITS, MAX_TRAILING_BITS, Format

_BY_NAME = {name: row for row in CATALOG for name in (row.format.name, *row.aliases)}
_BLOCKS = {name for row in BLOCK_NAMES.items() for name in (row[0], *row[1])}
_PATTERN = re.compile(r"e([0-9]{1,4})m([0-9]{1,4})(fnuz|fn|f|)")
_P3109 = re.compile(r"p3109_k([0-9]{1,4})p([0-9]{1,4})([su])([ef])")
MAX_P3109_WIDTH = 64
MAX_NAME = 64
# The names that are options of their own on the command line.
SHORTHANDS = ("fp16", "fp32", "fp64", "fp128", "bf16", "tf32", "e4m3", "e5m2", "e2m1")
# Names that people use for several formats at once.
FAMILIES = {
    **dict.fromkeys(("fp8", "float8", "f8"), "e4m3 e5m2 e4m3fnuz e5m2fnuz (show bits:0x38 --dialects compares them)"),
    **dict.fromkeys(("fp6", "float6"), "e2m3 e3m2"),
    **dict.fromkeys(("float4",), "e2m1"),
    **dict.fromkeys(("float", "fp", "ieee", "ieee754"), "fp16 fp32 fp64 fp128"),
    "p3109": "p3109_k8p3se p3109_k8p4se …",
}


def _pattern(w: int, t: int, suffix: str) -> Format:
    name = f"e{w}m{t}{suffix}"
    if not (1 <= w <= MAX_EXPONENT_BITS and 0 <= t <= MAX_TRAILING_BITS):
        raise FormatError(f"{name}: e<W>m<T> takes W from 1 to {MAX_EXPONENT_BITS} and T from 0 to {MAX_TRAILING_BITS}")
    if suffix == "fnuz":
        return fnuz(name, t + 1, w)
    if suffix in ("fn", "f"):
        return finite(name, t + 1, w, nans=int(suffix == "fn"))
    return Format(name, t + 1, w)


def _ieee(name: str) -> Format:
    base = parse_format(name.removesuffix("_ieee"))
    if not base.signed or base.explicit_integer_bit:
        raise FormatError(f"{quoted(name)}: {base.name} has no IEEE 754 twin: it is unsigned or not interchangeable")
    return Format(name, base.precision, base.exponent_bits)


def catalog_row(format: Format) -> CatalogRow:
    """Return the format's row; formats that follow a pattern get one with the pattern's source.

    >>> from floatlab.formats import parse_format
    >>> catalog_row(parse_format("fp8_e5m2")).aliases
    ('fp8_e5m2', 'float8_e5m2')
    """
    named = _BY_NAME.get(format.name)
    if named is not None and named.format == format:
        return named
    if format.name.startswith("p3109_"):
        return CatalogRow(format, (), P3109, "P3109")
    return CatalogRow(format, (), PATTERN, "custom")


def family(name: str) -> str:
    """Say which formats a name of several stands for; nothing for other names.

    >>> family("fp6")
    "'fp6' is a family of formats: name one of e2m3 e3m2"
    """
    members = FAMILIES.get(name.lower())
    return f"{quoted(name)} is a family of formats: name one of {members}" if members else ""


def short_name(format: Format) -> str:
    """Return the name of a format that is quickest to type.

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
                f"P from 1 to K − 1 (signed) or K (unsigned), and at most {MAX_EXPONENT_BITS - 1} above P"
            )
        return p3109(k, p, signed, found[4] == "e")
    if found := _PATTERN.fullmatch(plain):
        return _pattern(int(found[1]), int(found[2]), found[3])
    if words := family(plain):
        raise FormatError(words)
    if plain in BLOCK_FAMILIES:
        raise FormatError(f"{plain} is a family of block formats: {BLOCK_FAMILIES[plain]}")
    if plain in _BLOCKS:
        raise FormatError(f"{plain} is a block format: floatlab block VALUE… --to {plain} shows one")
    if re.fullmatch(r"u?(int|i)[0-9]{1,3}", plain):
        raise FormatError(f"{quoted(name)} is a type of integers, not of floats: toint VALUE --to {plain} converts")
    raise FormatError(
        f"unknown format {quoted(name)}{guess(plain, sorted(_BY_NAME))}"
        " (known: floatlab formats; any e<W>m<T>[fn|f|fnuz] works too)"
    )


def parse_format(name: str | Format) -> Format:
    """Return the format that a name means.

    Parameters
    ----------
    name : str or Format
        A name or alias of the catalog (`fp16`, `FP8-E4M3`), a P3109 name (`p3109_k8p4se`), or
        `e<W>m<T>[fn|f|fnuz][_ieee]`. Case does not matter, and `-` is `_`. A Format is returned as it is.

    Returns
    -------
    Format

    Raises
    ------
    FormatError
        There is no such format; the text suggests the nearest name.

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
        raise FormatError(f"a format is a name or a Format, not {type(name).__name__}")
    return _lookup(name)


def format_called(name: str) -> Format | None:
    """Return the format that libraries call by a name such as float16, bfloat16 or float8_e4m3fn."""
    kind, _, variant = name.partition("_")
    if kind.strip("0123456789") not in ("float", "bfloat"):
        return None
    try:
        # Theirs is named in full: float8_e4m3 is IEEE's, and e4m3fn is what we call e4m3 for short.
        return parse_format({"e4m3": "e4m3_ieee", "e5m2": "e5m2"}.get(variant, variant) or kind)
    except FormatError:
        return None
