"""Immutable records: like `@dataclass(frozen=True, slots=True)`, but imported in a tenth of the time.

Importing `dataclasses` takes longer than everything else in `floatlab show` (docs/decisions/0001-records.md).
"""

from __future__ import annotations

from floatlab.fpmode import in_default_mode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FunctionType
    from typing import Any, ClassVar, Self, dataclass_transform
else:

    def dataclass_transform(**_):  # noqa: D103
        return lambda decorated: decorated


_templates: dict[tuple[int, bool], FunctionType] = {}  # the code of `__init__`, by number of fields and `validated`


def _initializer(
    setters: list[object], fields: tuple[str, ...], defaults: dict[str, object], validated: bool
) -> FunctionType:
    """Return a function `__init__` that passes its parameters, named like the fields, to these setters.

    If `validated` is true, `__init__` then calls `__post_init__`.

    Compiling source is slow. Therefore the source is compiled once for each number of fields. Every class with this
    number of fields gets a copy of the code in which the names are replaced.
    """
    count = len(fields)
    if fields[count - len(defaults) :] != tuple(defaults):
        raise TypeError("a field without a default follows one with a default")
    template = _templates.get((count, validated))
    if template is None:
        body = [f"_set_{i}(self, f{i})" for i in range(count)] + ["self.__post_init__()"] * validated
        scope: dict[str, FunctionType] = {}
        exec(f"def __init__(self, {', '.join(f'f{i}' for i in range(count))}):\n    {'; '.join(body)}\n", scope)
        template = _templates[count, validated] = scope["__init__"]
    code = template.__code__.replace(co_varnames=("self", *fields))
    names = {f"_set_{i}": setter for i, setter in enumerate(setters)}
    return type(template)(code, names, "__init__", tuple(defaults.values()) or None)


@dataclass_transform(frozen_default=True)
class RecordType(type):
    """Metaclass that makes slots and `__init__` from the annotated names of a class body.

    Records inherit all other methods, such as `__eq__`, from `Record`.

    The defining module must have `from __future__ import annotations`, so that annotations are stored as text. If a
    class has a method `__post_init__`, it is called after the fields are set, to validate them.
    """

    def __new__(mcls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """Build the class; an `__init__` in the class body is kept."""
        annotations = namespace.get("__annotations__", {})
        fields = tuple(f for f, kind in annotations.items() if not kind.startswith("ClassVar"))
        defaults = {f: namespace.pop(f) for f in fields if f in namespace}
        namespace["__slots__"] = fields if bases else ("_hash",)
        namespace.setdefault("_fields", fields)
        namespace["__match_args__"] = namespace["_fields"]
        cls = super().__new__(mcls, name, bases, namespace)
        if fields and "__init__" not in namespace:
            setters = [vars(cls)[f].__set__ for f in fields]
            initializer = _initializer(setters, fields, defaults, hasattr(cls, "__post_init__"))
            type.__setattr__(cls, "__init__", initializer)
        return cls


class Record(metaclass=RecordType):
    """An immutable value: records of the same type with equal fields are equal."""

    _fields: ClassVar[tuple[str, ...]] = ()
    _hash: ClassVar[int]  # a slot, set at first use

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, f) for f in self._fields)

    def __eq__(self, other: object) -> bool:
        """Return whether type and fields are equal."""
        if self is other:
            return True
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        """Return the hash of the fields; it is computed only once."""
        try:
            return self._hash
        except AttributeError:
            object.__setattr__(self, "_hash", hash(self._values()))
            return self._hash

    @in_default_mode
    def __repr__(self) -> str:
        """Show the fields by name."""
        inside = ", ".join(f"{f}={getattr(self, f)!r}" for f in self._fields)
        return f"{type(self).__name__}({inside})"

    def __setattr__(self, name: str, value: object) -> None:
        """Raise AttributeError: records are frozen."""
        raise AttributeError(f"{type(self).__name__}.{name} cannot be assigned: records are frozen")

    def __delattr__(self, name: str) -> None:
        """Raise AttributeError: records are frozen."""
        raise AttributeError(f"{type(self).__name__}.{name} cannot be deleted: records are frozen")

    def __reduce__(self) -> tuple[type, tuple[object, ...]]:
        """Support `copy` and `pickle`, which would otherwise assign attributes."""
        return type(self), self._values()

    def replace(self, **changes: Any) -> Self:
        """Return a copy with some fields changed.

        >>> from floatlab import Context
        >>> Context().replace(rounding="RTZ").rounding.value
        'RTZ'
        """
        return type(self)(**(dict(zip(self._fields, self._values(), strict=True)) | changes))


class Individual(Record):
    """A record that equals only itself, for records with arrays, since arrays compare elementwise."""

    def __eq__(self, other: object) -> bool:
        """Compare by identity."""
        return self is other

    __hash__ = object.__hash__
