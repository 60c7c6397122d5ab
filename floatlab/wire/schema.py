"""Schemas: the JSON form of each record, used both for writing a record and for reading it back.

A schema is a table: the name of each member of the JSON object, and the codec of its value. `field_codecs` makes the
table of a record from the types of its fields.
"""

from __future__ import annotations

import sys
from enum import Enum
from operator import attrgetter

from floatlab.errors import FileFormatError, quoted
from floatlab.formats import Format
from floatlab.record import Record
from floatlab.wire.codecs import (
    AS_IT_IS,
    CODECS,
    TEXT,
    Codec,
    Scope,
    enumeration,
    expect,
    list_of,
    optional,
    read_part,
    tuple_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypeAlias

    from floatlab.wire.codecs import Wire

    Rows: TypeAlias = Mapping[str, object]  # by member name: a Codec, a Member, or the rows of a nested object
    Fields: TypeAlias = Mapping[str, "Member | Fields"]

VERSION = 1  # the schema's version, written into every document


class Member(Record):
    """A member of a JSON object: its codec, the source of the written value, and the use of the value read.

    `get` returns the value to write. `into` is the constructor parameter that receives the value after reading; it is
    None for members that are written but not read. An optional member is omitted if its value is None.
    """

    codec: Codec
    get: Callable[..., object]
    into: str | None = None
    is_optional: bool = False


class Schema(Codec):
    """The JSON object of a record: its members by name, and the constructor that is called with the values read."""

    __slots__ = ("make", "rows")

    def __init__(self, make: Callable[..., object] | None, rows: Rows) -> None:
        super().__init__(self._written, self._made)
        self.make, self.rows = make, _fields_of(rows)

    def _written(self, record: object, scope: Scope) -> Wire:
        return _write(self.rows, record, scope)

    def _made(self, wire: object, scope: Scope) -> object:
        if self.make is None:
            raise FileFormatError("is a summary, which cannot be read back")
        return self.make(**_read(self.rows, wire, scope))


def schema(make: Callable[..., object] | None = None, /, **rows: object) -> Schema:
    """Return the schema of an object with the members `rows`. Without `make`, the object cannot be read back."""
    return Schema(make, rows)


def _fields_of(rows: Rows) -> Fields:
    return {name: _field_of(name, row) for name, row in rows.items()}


def _field_of(name: str, member: object) -> Member | Fields:
    if isinstance(member, Codec):
        return field(member, name)
    assert isinstance(member, dict | Member)
    return _fields_of(member) if isinstance(member, dict) else member


def _write(rows: Fields, record: object, scope: Scope) -> Wire:
    wire: Wire = {}
    for name, member in rows.items():
        if not isinstance(member, Member):
            wire[name] = _write(member, record, scope)
        elif (value := member.get(record)) is not None or not member.is_optional:
            wire[name] = member.codec.write(value, scope)
    return wire


def _read(rows: Fields, wire: object, scope: Scope) -> Wire:
    members = expect(wire, dict, "an object")
    values: Wire = {}
    for name, member in rows.items():
        if not isinstance(member, Member):
            if any(not isinstance(inner, Member) or inner.into for inner in member.values()):
                values |= read_part(name, _read, member, members.get(name), scope)
        elif member.into is not None and (name in members or not member.is_optional):
            if name not in members:
                raise FileFormatError(f"{name} is missing")
            values[member.into] = read_part(name, member.codec.read, members[name], scope)
    return values


def variant(member: str, schemas: dict[str, Schema]) -> Codec:
    """Return the codec of records of several classes; the JSON member `member` has the class name in lower case."""

    def write(record: object, scope: Scope) -> object:
        kind = type(record).__name__.lower()
        return _write({member: constant(kind), **schemas[kind].rows}, record, scope)

    def read(wire: object, scope: Scope) -> object:
        kind = expect(wire, dict, "an object").get(member)
        if kind not in schemas:
            raise FileFormatError(f"unknown {member} {quoted(repr(kind)[:40])}")
        return schemas[kind].read(wire, scope)

    return Codec(write, read)


# Functions that make members.


def constant(value: object) -> Member:
    """Return a member with a constant value."""
    return Member(AS_IT_IS, lambda _: value)


def derived(get: str | Callable[..., object], codec: Codec = AS_IT_IS) -> Member:
    """Return a member that is written but not read. `get` is an attribute name, which may have dots, or a function."""
    return Member(codec, attrgetter(get) if isinstance(get, str) else get)


def attributes(*names: str) -> dict[str, Member]:
    """Return a member for each attribute in `names`; these members are written but not read."""
    return {name: derived(name) for name in names}


def field(codec: Codec, name: str) -> Member:
    """Return a member for the field `name`."""
    return Member(codec, attrgetter(name), name)


def flattened(part: str | Callable[..., object], rows: Rows) -> dict[str, Any]:
    """Return the members of an inner record as members of the outer record's JSON object.

    `part` is the name of the outer record's attribute that holds the inner record, or a function that returns the inner
    record.
    """
    part_of = attrgetter(part) if isinstance(part, str) else part

    def moved(row: Member | Fields) -> Member | Fields:
        if isinstance(row, Member):
            return row.replace(get=lambda record: row.get(part_of(record)))
        return {inner: moved(each) for inner, each in row.items()}

    return {name: moved(row) for name, row in _fields_of(rows).items()}


def common_members(operation: str = "") -> dict[str, Member]:
    """Return the members with which every document begins: the schema version and `operation`.

    The value of the member `operation` is the argument or, if the argument is empty, the record's field `operation`.
    """
    return {"schema": constant(VERSION), "operation": constant(operation) if operation else field(TEXT, "operation")}


# Schemas from the types of fields.


def field_codecs(kind: type[Record], *names: str) -> dict[str, Codec]:
    """Return the codecs of a record's fields by field name; `names` selects fields, by default all.

    The type of a field determines its codec.

    >>> from floatlab.formats.census import Census
    >>> list(field_codecs(Census))[:3]
    ['zeros', 'subnormals', 'normals']
    """
    return {name: _codec_of(kind.__annotations__[name], kind.__module__) for name in names or kind._fields}


def schema_of(kind: type[Record], make: Callable[..., object] | None = None, **rows: Codec | Member) -> Schema:
    """Return the schema of a record from the types of its fields; `rows` replaces or adds members by name.

    `make` constructs the record from the values read; by default, this is the class `kind`.

    >>> from floatlab.numbers import Exact
    >>> schema_of(Exact).write(Exact(True, 3, -2), Scope())
    {'negative': True, 'c': 3, 'q': -2}
    """
    names = [name for name in kind._fields if name not in rows]
    own = field_codecs(kind, *names) if names else {}
    return Schema(make or kind, {name: own.get(name) or rows[name] for name in kind._fields} | rows)


def _codec_of(annotation: str, module: str) -> Codec:
    """Return the codec for a type annotation, which is a string with names of the module `module`."""
    if annotation in CODECS:
        return CODECS[annotation]
    if annotation.endswith(" | None"):
        return optional(_codec_of(annotation.removesuffix(" | None"), module))
    if annotation.startswith("tuple["):
        inner = annotation[len("tuple[") : -1]
        if inner.endswith(", ..."):
            return list_of(_codec_of(inner.removesuffix(", ..."), module))
        return tuple_of(*(_codec_of(each, module) for each in inner.split(", ")))
    kind: type[Record | Enum] = getattr(sys.modules[module], annotation)
    return enumeration(kind) if issubclass(kind, Enum) else schema_of(kind)


# Whole documents.

_PARAMETERS = schema_of(Format)


def write_document(schema: Codec, record: object) -> Wire:
    """Return the JSON object of an answer, with the parameters of formats that `parse_format` does not know."""
    scope = Scope()
    wire = schema.write(record, scope)
    assert isinstance(wire, dict)
    if scope.formats:
        wire["formats"] = {name: _PARAMETERS.write(each, scope) for name, each in scope.formats.items()}
    return wire


def read_document(schema: Codec, wire: Wire) -> object:
    """Return the answer that a JSON object describes; raises FileFormatError if the object is malformed."""
    if wire.get("schema") != VERSION:
        raise FileFormatError(f"the schema version must be {VERSION}, not {quoted(repr(wire.get('schema'))[:40])}")
    formats = expect(wire.get("formats", {}), dict, "an object")
    known = {name: read_part(f"formats.{name[:40]}", _PARAMETERS.read, each, Scope()) for name, each in formats.items()}
    return schema.read(wire, Scope(known))
