"""A codec writes a single value, or a list of values, as JSON, and reads the JSON back.

Integers beyond 2^53 become strings, since many JSON readers convert numbers to binary64. Infinities and NaNs become
strings, too, since JSON has no numbers for them.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from math import isfinite

from floatlab.errors import FileFormatError, FormatError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers.printing import digits_of, fraction_text, integer_from_digits
from floatlab.numbers.rounding import Flags

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")
    Wire: TypeAlias = dict[str, object]  # a JSON object

# The exceptions that reading a malformed document may raise.
FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError, RecursionError)
_SAFE = 1 << 53
_LONG_BITS = 40_000  # longer integers are written in hexadecimal, because conversion to decimal is slow


class Scope:
    """The formats in a document that `parse_format` does not know, by name; all parts of a document share one Scope."""

    __slots__ = ("formats",)

    def __init__(self, formats: dict[str, Format] | None = None) -> None:
        self.formats = formats or {}

    def name(self, format: Format) -> str:
        """Return a format's name; if `parse_format` does not know it, also store the format in `formats`."""
        if not _has_name(format):
            self.formats[format.name] = format
        return format.name

    def format(self, name: str) -> Format:
        """Return the format that a name denotes in this document; raises FormatError if the name is unknown."""
        return self.formats[name] if name in self.formats else parse_format(name)


@lru_cache(maxsize=64)
def _has_name(format: Format) -> bool:
    try:
        return parse_format(format.name) == format
    except FormatError:
        return False


class Codec:
    """Writes a value as JSON and reads it back; for malformed JSON, `read` raises one of FAULTS."""

    __slots__ = ("read", "write")

    def __init__(self, write: Callable[..., object], read: Callable[..., Any]) -> None:
        self.write, self.read = write, read


def read_part(place: str, read: Callable[..., T], *arguments: object) -> T:
    """Read a part of a document; raises FileFormatError, whose message begins with `place`."""
    try:
        return read(*arguments)
    except FAULTS as error:
        raise FileFormatError(f"{place}: {str(error)[:200]}") from None


def expect(wire: object, kind: type[T], words: str) -> T:
    """Return a part of a document if it has the type `kind`, otherwise raise FileFormatError.

    In the error message, `words` names the expected type.
    """
    if not isinstance(wire, kind) or (isinstance(wire, bool) and kind is not bool):
        raise FileFormatError(f"expected {words}, not {quoted(repr(wire)[:40])}")
    return wire


def integer(n: int) -> int | str:
    """Return an integer for JSON: a number up to 2^53, decimal text beyond, and hexadecimal text if very long."""
    if abs(n) <= _SAFE:
        return n
    if n.bit_length() > _LONG_BITS:
        return hex(n)
    return f"{'-' * (n < 0)}{digits_of(abs(n))}"


def number(x: float | int) -> float | int | str:
    """Return a number for JSON: an integer as `integer` writes it, and a float as text if it is not finite."""
    if isinstance(x, int):
        return integer(x)
    return x if isfinite(x) else str(x)


def json_line(record: Wire) -> str:
    """Return a record as a line of JSON. All control characters are escaped, even DEL, which JSON allows unescaped."""
    from json import dumps

    return dumps(record).replace("\x7f", "\\u007f") + "\n"


def _integer(wire: object, _: Scope | None = None) -> int:
    if isinstance(wire, str):
        digits = wire.removeprefix("-")
        if digits.startswith("0x"):
            return int(wire, 16)
        if digits.isascii() and digits.isdigit():
            return integer_from_digits(digits) * (-1 if wire.startswith("-") else 1)
    return expect(wire, int, "an integer")


def _number(wire: object, _: Scope) -> float | int:
    if isinstance(wire, str):
        return float(wire) if wire in ("inf", "-inf", "nan") else _integer(wire)
    return wire if isinstance(wire, float) else expect(wire, int, "a number")


def _flags(wire: object, _: Scope) -> Flags:
    flags = Flags.NONE
    for name in expect(wire, list, "a list of flags"):
        flags |= Flags[name.upper()]
    return flags


def _fraction(wire: object, _: Scope) -> Fraction:
    from fractions import Fraction

    numerator, _slash, denominator = expect(wire, str, "a fraction").partition("/")
    return Fraction(_integer(numerator), _integer(denominator))


TEXT = Codec(lambda text, _: text, lambda wire, _: expect(wire, str, "text"))
BOOLEAN = Codec(lambda flag, _: bool(flag), lambda wire, _: expect(wire, bool, "true or false"))
INTEGER = Codec(lambda n, _: integer(int(n)), _integer)
NUMBER = Codec(lambda x, _: number(x if isinstance(x, int) else float(x)), _number)
FRACTION = Codec(lambda x, _: fraction_text(x), _fraction)  # "N/D"
FLAGS = Codec(lambda flags, _: flags.names, _flags)
FORMAT = Codec(lambda fmt, scope: scope.name(fmt), lambda wire, scope: scope.format(expect(wire, str, "a name")))
CODE = Codec(lambda code, _: code, lambda wire, _: int(expect(wire, str, "a hexadecimal code"), 16))
AS_IT_IS = Codec(lambda wire, _: wire, lambda wire, _: wire)


def enumeration(kind: type[Enum]) -> Codec:
    """Return the codec of an enumeration: members are written as their values."""
    return Codec(lambda member, _: member.value, lambda wire, _: kind(wire))


def optional(codec: Codec) -> Codec:
    """Return the codec of a value that may be None; None becomes null."""
    return Codec(
        lambda value, scope: None if value is None else codec.write(value, scope),
        lambda wire, scope: None if wire is None else codec.read(wire, scope),
    )


def list_of(codec: Codec) -> Codec:
    """Return the codec of a tuple of values of one type; its JSON is a list."""
    return Codec(
        lambda values, scope: [codec.write(value, scope) for value in values],
        lambda wire, scope: tuple(
            read_part(f"[{i}]", codec.read, each, scope) for i, each in enumerate(expect(wire, list, "a list"))
        ),
    )


def tuple_of(*codecs: Codec) -> Codec:
    """Return the codec of a tuple whose values have the given codecs, in order; its JSON is a list."""

    def read(wire: object, scope: Scope) -> tuple[object, ...]:
        if len(parts := expect(wire, list, "a list")) != len(codecs):
            raise FileFormatError(f"expected {len(codecs)} values, not {len(parts)}")
        return tuple(codec.read(part, scope) for codec, part in zip(codecs, parts, strict=True))

    return Codec(
        lambda values, scope: [codec.write(each, scope) for codec, each in zip(codecs, values, strict=True)], read
    )


def mapping(codec: Codec) -> Codec:
    """Return the codec of a dictionary from names to values of one type; its JSON is an object."""
    return Codec(
        lambda values, scope: {name: codec.write(value, scope) for name, value in values.items()},
        lambda wire, scope: {
            name: read_part(name[:40], codec.read, each, scope)
            for name, each in expect(wire, dict, "an object").items()
        },
    )


# Codecs by the type annotation of the value.
CODECS: dict[str, Codec] = {
    "bool": BOOLEAN,
    "int": INTEGER,
    "str": TEXT,
    "float": NUMBER,
    "float | int": NUMBER,
    "Fraction": FRACTION,
    "Flags": FLAGS,
    "Format": FORMAT,
}
