"""Layer 1: exact numbers, the single rounding kernel, and the codec between codes, values and text."""

from floatlab.numbers.datum import Datum, NumberClass, decode, hexadecimal_code
from floatlab.numbers.derivation import Decode, Derivation, Encode, Read, Round, Special, Step
from floatlab.numbers.exact import Exact, Literal, Ratio
from floatlab.numbers.projection import Rounded, Tail, round_exact
from floatlab.numbers.reading import convert, encode, parse_literal, read
from floatlab.numbers.rounding import (
    DEFAULT,
    Absent,
    Context,
    Direction,
    Flags,
    NanRule,
    Overflow,
    Tininess,
    as_context,
    parse_direction,
)

__all__ = [
    "DEFAULT", "Absent", "Context", "Datum", "Decode", "Derivation", "Direction", "Encode", "Exact", "Flags",
    "Literal", "NanRule", "NumberClass", "Overflow", "Ratio", "Read", "Round", "Rounded", "Special", "Step",
    "Tail", "Tininess", "as_context", "convert", "decode", "encode", "hexadecimal_code", "parse_direction",
    "parse_literal", "read", "round_exact",
]  # fmt: skip
