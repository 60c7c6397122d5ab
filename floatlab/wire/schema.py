"""Schemas: the JSON form of each record, defined once for writing and for reading back.

A schema is a table: the name of each member of the JSON object, and the codec of its value. `rows_of` makes the table
of a record from the types of its fields. Integers beyond 2^53 become strings, since many readers store JSON's numbers
as binary64. The floats that JSON lacks ("inf", "nan") become strings, too.
"""

from __future__ import annotations

import sys
from enum import Enum
from functools import lru_cache
from math import isfinite
from operator import attrgetter

from floatlab.errors import FileFormatError, FormatError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers.decimals import digits_of, fraction_text, integer_from_digits
from floatlab.numbers.rounding import Flags
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from fractions import Fraction
    from typing import Any, TypeAlias, TypeVar

    T = TypeVar("T")
    Wire: TypeAlias = dict[str, object]  # a JSON object
    Rows: TypeAlias = Mapping[str, object]  # a member's Codec or Member, or the rows of a nested object
    Fields: TypeAlias = Mapping[str, "Member | Fields"]

VERSION = 1  # of the schema, in every document
# Exceptions that reading a malformed document may raise.
FAULTS = (ValueError, TypeError, ArithmeticError, LookupError, AttributeError, AssertionError, RecursionError)
_SAFE = 1 << 53
_LONG_BITS = 40_000  # up to this many bits an integer is decimal; more digits would dominate the run time


class Scope:
    """State shared by the parts of a document: the formats that cannot be parsed from their names, by name."""

    __slots__ = ("formats",)

    def __init__(self, formats: dict[str, Format] | None = None) -> None:
        self.formats = formats or {}

    def name(self, format: Format) -> str:
        """Return a format's name; if `parse_format` cannot recover the format from it, record the format for output."""
        if not _has_name(format):
            self.formats[format.name] = format
        return format.name

    def format(self, name: str) -> Format:
        """Return the format that a name denotes in this document; raises FormatError."""
        return self.formats[name] if name in self.formats else parse_format(name)


@lru_cache(maxsize=64)
def _has_name(format: Format) -> bool:
    try:
        return parse_format(format.name) == format
    except FormatError:
        return False


class Codec:
    """Writes a value as JSON and reads it back; reading raises FileFormatError."""

    __slots__ = ("read", "write")

    def __init__(self, write: Callable[..., object], read: Callable[..., Any]) -> None:
        self.write, self.read = write, read


class Member(Record):
    """A member whose value is not the field of the same name.

    `get` returns the value to write. `into` is the constructor parameter that receives the value read; None for members
    that are written only, since they can be computed from the others. An optional member is omitted if it is None.
    """

    codec: Codec
    get: Callable[..., object]
    into: str | None = None
    is_optional: bool = False


class Schema(Codec):
    """The JSON object of a record: its members by name, and the constructor called with the values read."""

    __slots__ = ("make", "rows")

    def __init__(self, make: Callable[..., object] | None, rows: Rows) -> None:
        super().__init__(self._written, self._made)
        self.make, self.rows = make, _fields_of(rows)

    def _written(self, record: object, scope: Scope) -> Wire:
        return _write(self.rows, record, scope)

    def _made(self, wire: object, scope: Scope) -> object:
        if self.make is None:
            raise FileFormatError("is a summary, which is not read back")
        return self.make(**_read(self.rows, wire, scope))


def _fields_of(rows: Rows) -> Fields:
    return {name: _field_of(name, row) for name, row in rows.items()}


def _field_of(name: str, row: Any) -> Member | Fields:
    if isinstance(row, dict):
        return _fields_of(row)
    return field(row, name) if isinstance(row, Codec) else row


def _write(rows: Fields, record: object, scope: Scope) -> Wire:
    wire: Wire = {}
    for name, row in rows.items():
        if not isinstance(row, Member):
            wire[name] = _write(row, record, scope)
        elif (value := row.get(record)) is not None or not row.is_optional:
            wire[name] = row.codec.write(value, scope)
    return wire


def _read(rows: Fields, wire: object, scope: Scope) -> Wire:
    members = _checked(wire, dict, "an object")
    values: Wire = {}
    for name, row in rows.items():
        if not isinstance(row, Member):
            if any(not isinstance(inner, Member) or inner.into for inner in row.values()):
                values |= _at(name, _read, row, members.get(name), scope)
        elif row.into is not None and (name in members or not row.is_optional):
            if name not in members:
                raise FileFormatError(f"{name} is missing")
            values[row.into] = _at(name, row.codec.read, members[name], scope)
    return values


def _at(place: str, read: Callable[..., T], *arguments: object) -> T:
    """Read a part; an error names its position in the document."""
    try:
        return read(*arguments)
    except FAULTS as error:
        raise FileFormatError(f"{place}: {str(error)[:200]}") from None


def _checked(wire: object, kind: type[T], words: str) -> T:
    if not isinstance(wire, kind) or (isinstance(wire, bool) and kind is not bool):
        raise FileFormatError(f"expected {words}, not {quoted(repr(wire)[:40])}")
    return wire


def integer(n: int) -> int | str:
    """Return an integer: as decimal text if binary64 might not represent it, as hexadecimal text if it is very long."""
    if abs(n) <= _SAFE:
        return n
    if n.bit_length() > _LONG_BITS:
        return hex(n)
    return f"{'-' * (n < 0)}{digits_of(abs(n))}"


def number(x: float | int) -> float | int | str:
    """Return a measure; as text if JSON has no such number."""
    if isinstance(x, int):
        return integer(x)
    return x if isfinite(x) else str(x)


def json_line(record: Wire) -> str:
    """Return a record as a line of JSON with every control character escaped (JSON itself permits DEL)."""
    from json import dumps

    return dumps(record).replace("\x7f", "\\u007f") + "\n"


def _integer(wire: object, _: Scope | None = None) -> int:
    if isinstance(wire, str):
        digits = wire.removeprefix("-")
        if digits.startswith("0x"):
            return int(wire, 16)
        if digits.isascii() and digits.isdigit():
            return integer_from_digits(digits) * (-1 if wire.startswith("-") else 1)
    return _checked(wire, int, "an integer")


def _number(wire: object, _: Scope) -> float | int:
    if isinstance(wire, str):
        return float(wire) if wire in ("inf", "-inf", "nan") else _integer(wire)
    return wire if isinstance(wire, float) else _checked(wire, int, "a number")


def _flags(wire: object, _: Scope) -> Flags:
    flags = Flags.NONE
    for name in _checked(wire, list, "a list of flags"):
        flags |= Flags[name.upper()]
    return flags


def _fraction(wire: object, _: Scope) -> Fraction:
    from fractions import Fraction

    numerator, _slash, denominator = _checked(wire, str, "a fraction").partition("/")
    return Fraction(_integer(numerator), _integer(denominator))


# Codecs of single values.

TEXT = Codec(lambda text, _: text, lambda wire, _: _checked(wire, str, "text"))
BOOLEAN = Codec(lambda flag, _: bool(flag), lambda wire, _: _checked(wire, bool, "true or false"))
INTEGER = Codec(lambda n, _: integer(int(n)), _integer)
NUMBER = Codec(lambda x, _: number(x if isinstance(x, int) else float(x)), _number)
FRACTION = Codec(lambda x, _: fraction_text(x), _fraction)  # "N/D"
FLAGS = Codec(lambda flags, _: flags.names, _flags)
FORMAT = Codec(lambda fmt, scope: scope.name(fmt), lambda wire, scope: scope.format(_checked(wire, str, "a name")))
CODE = Codec(lambda code, _: code, lambda wire, _: int(_checked(wire, str, "a hexadecimal code"), 16))
AS_IT_IS = Codec(lambda wire, _: wire, lambda wire, _: wire)


def word_of(kind: type[Enum]) -> Codec:
    """Return the codec of an enumeration: the value of each member."""
    return Codec(lambda member, _: member.value, lambda wire, _: kind(wire))


def optional(codec: Codec) -> Codec:
    """Return the codec of a value that may be None; None becomes null."""
    return Codec(
        lambda value, scope: None if value is None else codec.write(value, scope),
        lambda wire, scope: None if wire is None else codec.read(wire, scope),
    )


def listed(codec: Codec) -> Codec:
    """Return the codec of a tuple of values of one type: a list."""
    return Codec(
        lambda values, scope: [codec.write(value, scope) for value in values],
        lambda wire, scope: tuple(
            _at(f"[{i}]", codec.read, each, scope) for i, each in enumerate(_checked(wire, list, "a list"))
        ),
    )


def row(*codecs: Codec) -> Codec:
    """Return the codec of a tuple with a value of each given type: a list."""

    def read(wire: object, scope: Scope) -> tuple[object, ...]:
        if len(parts := _checked(wire, list, "a list")) != len(codecs):
            raise FileFormatError(f"{len(codecs)} values are expected, not {len(parts)}")
        return tuple(codec.read(part, scope) for codec, part in zip(codecs, parts, strict=True))

    return Codec(
        lambda values, scope: [codec.write(each, scope) for codec, each in zip(codecs, values, strict=True)], read
    )


def mapping(codec: Codec) -> Codec:
    """Return the codec of a dictionary of values of one type, by name: an object."""
    return Codec(
        lambda values, scope: {name: codec.write(value, scope) for name, value in values.items()},
        lambda wire, scope: {
            name: _at(name[:40], codec.read, each, scope) for name, each in _checked(wire, dict, "an object").items()
        },
    )


def variant(member: str, schemas: dict[str, Schema]) -> Codec:
    """Return the codec of a record of one of several classes; this member holds the class name in lower case."""

    def write(record: object, scope: Scope) -> object:
        kind = type(record).__name__.lower()
        return _write({member: constant(kind), **schemas[kind].rows}, record, scope)

    def read(wire: object, scope: Scope) -> object:
        kind = _checked(wire, dict, "an object").get(member)
        if kind not in schemas:
            raise FileFormatError(f"there is no {member} {quoted(repr(kind)[:40])}")
        return schemas[kind].read(wire, scope)

    return Codec(write, read)


# Members that are not the field of the same name.


def constant(value: object) -> Member:
    """Return a member with a constant value."""
    return Member(AS_IT_IS, lambda _: value)


def shown(get: str | Callable[..., object], codec: Codec = AS_IT_IS) -> Member:
    """Return a member that is written only, derived from the others: a (dotted) attribute name, or a function."""
    return Member(codec, attrgetter(get) if isinstance(get, str) else get)


def attributes(*names: str) -> dict[str, Member]:
    """Return written-only members for attributes of the same names."""
    return {name: shown(name) for name in names}


def field(codec: Codec, name: str) -> Member:
    """Return a member for the field `name`."""
    return Member(codec, attrgetter(name), name)


def within(part: str | Callable[..., object], rows: Rows) -> dict[str, Any]:
    """Return the members of a nested record, flattened into the outer one."""
    part_of = attrgetter(part) if isinstance(part, str) else part

    def moved(row: Member | Fields) -> Member | Fields:
        if isinstance(row, Member):
            return row.replace(get=lambda record: row.get(part_of(record)))
        return {inner: moved(each) for inner, each in row.items()}

    return {name: moved(row) for name, row in _fields_of(rows).items()}


def heading(operation: str) -> dict[str, Member]:
    """Return the members with which every document begins."""
    return {"schema": constant(VERSION), "operation": constant(operation)}


# Schemas from the types of fields.

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


def rows_of(kind: type[Record], *names: str) -> dict[str, Codec]:
    """Return a codec for each field of a record, or for the named ones, by its type.

    >>> from floatlab.formats.census import Census
    >>> list(rows_of(Census))[:3]
    ['zeros', 'subnormals', 'normals']
    """
    return {name: _codec_of(kind.__annotations__[name], kind.__module__) for name in names or kind._fields}


def schema_of(kind: type[Record], make: Callable[..., object] | None = None, **rows: Codec | Member) -> Schema:
    """Return the schema of a record from the types of its fields, except for the rows given.

    `make` constructs the record from the values read; default: the class.

    >>> from floatlab.numbers import Exact
    >>> schema_of(Exact).write(Exact(True, 3, -2), Scope())
    {'negative': True, 'c': 3, 'q': -2}
    """
    names = [name for name in kind._fields if name not in rows]
    own = rows_of(kind, *names) if names else {}
    return Schema(make or kind, {name: own.get(name) or rows[name] for name in kind._fields} | rows)


def _codec_of(annotation: str, module: str) -> Codec:
    """Return the codec for a type annotation (a string), resolved in its module."""
    if annotation in CODECS:
        return CODECS[annotation]
    if annotation.endswith(" | None"):
        return optional(_codec_of(annotation.removesuffix(" | None"), module))
    if annotation.startswith("tuple["):
        inner = annotation[len("tuple[") : -1]
        if inner.endswith(", ..."):
            return listed(_codec_of(inner.removesuffix(", ..."), module))
        return row(*(_codec_of(each, module) for each in inner.split(", ")))
    kind: type[Record | Enum] = getattr(sys.modules[module], annotation)
    return word_of(kind) if issubclass(kind, Enum) else schema_of(kind)


# Whole documents.

_PARAMETERS = schema_of(Format)


def write_document(schema: Codec, record: object) -> Wire:
    """Return the JSON object of an answer, with the parameters of formats that cannot be parsed from their names."""
    scope = Scope()
    wire = schema.write(record, scope)
    assert isinstance(wire, dict)
    if scope.formats:
        wire["formats"] = {name: _PARAMETERS.write(each, scope) for name, each in scope.formats.items()}
    return wire


def read_document(schema: Codec, wire: Wire) -> object:
    """Return the answer that a JSON object describes; raises FileFormatError if the object is malformed."""
    if wire.get("schema") != VERSION:
        raise FileFormatError(f"schema {quoted(repr(wire.get('schema'))[:40])} is not {VERSION}")
    formats = _checked(wire.get("formats", {}), dict, "an object")
    known = {name: _at(f"formats.{name[:40]}", _PARAMETERS.read, each, Scope()) for name, each in formats.items()}
    return schema.read(wire, Scope(known))
