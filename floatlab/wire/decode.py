"""Derivations back from their JSON: `from_wire(to_wire(d)) == d` for every derivation."""

from __future__ import annotations

from floatlab.errors import FileFormatError, FloatlabError, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers import Context, Datum, Derivation, Exact, Flags, Ratio, Rounded, parse_literal
from floatlab.numbers.decimals import integer_from_digits
from floatlab.numbers.exact import SquareRoot
from floatlab.numbers.steps import Combination, Integral, Round, Rule, Step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Formats = dict[str, Format]

_STEPS: dict[str, type[Step]] = {kind.__name__.lower(): kind for kind in Step.__subclasses__()}


def _integer(wire: Any) -> int:
    if isinstance(wire, str):
        digits = wire.removeprefix("-")
        if digits.startswith("0x"):
            return int(wire, 16)
        if not (digits.isascii() and digits.isdigit()):
            raise FileFormatError(f"not an integer: {wire[:40]!r}")
        return integer_from_digits(digits) * (-1 if wire.startswith("-") else 1)
    if not isinstance(wire, int):
        raise FileFormatError(f"not an integer: {wire!r}")
    return wire


def _flags(wire: Any) -> Flags:
    flags = Flags.NONE
    for name in wire:
        flags |= Flags[name.upper()]
    return flags


def _exact(wire: Any) -> Exact:
    return Exact(bool(wire["negative"]), _integer(wire["c"]), _integer(wire["q"]))


def _ratio(wire: Any) -> Ratio:
    n, d, twos, tens = (_integer(wire[name]) for name in ("numerator", "denominator", "twos", "tens"))
    return Ratio(bool(wire["negative"]), n, d, twos, tens, bool(wire["truncated"]))


def _truth(wire: Any) -> Exact | Ratio | SquareRoot | None:
    if wire is None:
        return None
    if "square_root_of" in wire:
        return SquareRoot(_exact(wire["square_root_of"]))
    return _ratio(wire) if "numerator" in wire else _exact(wire)


def _format(name: Any, formats: Formats) -> Format:
    return formats[name] if name in formats else parse_format(name)


def _datum(wire: Any, formats: Formats) -> Datum:
    return Datum(_format(wire["format"], formats), int(wire["code"], 16))


def _rounded(wire: Any) -> Rounded:
    fields: dict[str, Any] = {}
    for name in Rounded._fields:
        if name == "flags":
            fields[name] = _flags(wire[name])
        elif isinstance(wire[name], bool) or wire[name] is None:
            fields[name] = wire[name]
        else:
            fields[name] = _integer(wire[name])
    return Rounded(**fields)


# What each field of a step is read by; fields of one name are of one kind in all steps.
_FIELDS: dict[str, Callable[[Any, Formats], Any]] = {
    **dict.fromkeys(("datum", "promoted"), _datum),
    **dict.fromkeys(("exact", "left", "right", "quotient", "root"), lambda wire, _: _exact(wire)),
    **dict.fromkeys(("shift", "moved"), lambda wire, _: _integer(wire)),
    "sticky": lambda wire, _: bool(wire),
    "kind": lambda wire, _: Combination(wire),
    "rule": lambda wire, _: Rule(wire),
    "flags": lambda wire, _: _flags(wire),
    "format": _format,
    "truth": lambda wire, _: _truth(wire),
}


def step_from_wire(wire: Any, formats: Formats) -> Step:
    """Return a step from its JSON object."""
    kind = _STEPS[wire["step"]]
    if kind is Round:
        return Round(_format(wire["format"], formats), _rounded(wire))
    if kind is Integral:
        return Integral(_rounded(wire))
    return kind(*(_FIELDS[name](wire[name], formats) for name in kind._fields))


def _context(wire: Any) -> Context:
    return Context(**(wire | {"seed": _integer(wire["seed"])}))


def from_json(text: str) -> Derivation:
    """Return the derivation that its JSON describes; raises FileFormatError for anything else.

    Other answers are written as JSON, and not read back yet.

    >>> from floatlab import add
    >>> d = add("0.1", "0.2", "fp16")
    >>> from_json(d.to_json()) == d
    True
    """
    from json import loads

    try:
        wire = loads(text)
    except (TypeError, ValueError) as error:
        raise FileFormatError(f"not JSON: {error}") from None
    if isinstance(wire, dict) and "steps" not in wire and "operation" in wire:
        raise FileFormatError(
            f"the JSON of {quoted(str(wire['operation']))} is not read back, only that of derivations"
        )
    return from_wire(wire)


def from_wire(wire: Any) -> Derivation:
    """Return the derivation that a JSON object (already parsed) describes; raises FileFormatError where it is none.

    >>> from floatlab import read
    >>> from floatlab.wire.encode import to_wire
    >>> d = read("1/3", "fp16")
    >>> from_wire(to_wire(d)) == d
    True
    """
    try:
        if wire["schema"] != 1:
            raise FileFormatError(f"schema {wire['schema']!r} is not 1")
        formats = {name: Format(**_parameters(fields)) for name, fields in wire.get("formats", {}).items()}
        operands: list[Any] = []
        literals: list[str | None] = []
        for operand in wire["operands"]:
            literals.append(operand.get("literal") if "code" in operand else None)
            if "code" in operand:
                operands.append(_datum(operand, formats))
            elif "ratio" in operand:
                operands.append(_ratio(operand["ratio"]))
            else:
                operands.append(parse_literal(operand["literal"]))
        return Derivation(
            wire["operation"],
            tuple(operands),
            _context(wire["context"]),
            tuple(step_from_wire(step, formats) for step in wire["steps"]),
            _datum(wire["result"], formats),
            _flags(wire["flags"]),
            tuple(literals) if any(literal is not None for literal in literals) else (),
        )
    except FloatlabError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise FileFormatError(f"not a derivation: {type(error).__name__} at {str(error)[:60]}") from None


def _parameters(fields: Any) -> dict[str, Any]:
    return {
        name: value if isinstance(value, bool) or name == "name" else _integer(value) for name, value in fields.items()
    }
