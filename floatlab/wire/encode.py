"""Answers as JSON objects (INTERFACE: schema 1): the model itself, never a parsed page.

Integers beyond 2^53 are strings, since many readers of JSON hold numbers as binary64.
"""

from __future__ import annotations

from enum import Enum
from math import isfinite

from floatlab.errors import FormatError
from floatlab.formats import Format, Row, parse_format
from floatlab.formats.census import census
from floatlab.numbers import Context, Datum, Derivation, Encode, Flags, Ratio, Rounded, Step
from floatlab.numbers.datum import exact_text, hexadecimal, hexadecimal_code, shortest
from floatlab.numbers.decimals import (
    DIGIT_LIMIT,
    digits_of,
    exact_decimal,
    fraction_text,
    ratio_text,
    terminating_decimal,
)
from floatlab.numbers.exact import SquareRoot
from floatlab.numbers.intervals import preimage
from floatlab.numbers.literals import Literal
from floatlab.numbers.steps import EXACT_ERROR_BITS, Integral
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.arith import Comparison, IntegerResult
    from floatlab.numbers.steps import Operand

    Wire = dict[str, Any]

SCHEMA = 1
_SAFE = 1 << 53
_LONG_BITS = 40_000  # past this, decimal digits would take longer than all the rest


def json_line(record: Wire) -> str:
    """Return a record as a line of JSON, in which every control character is escaped: JSON itself lets DEL stand."""
    from json import dumps

    return dumps(record).replace("\x7f", "\\u007f") + "\n"


def integer(n: int) -> int | str:
    """Return an integer: as a string of digits where binary64 might not hold it, hexadecimal where that is long."""
    if abs(n) <= _SAFE:
        return n
    if n.bit_length() > _LONG_BITS:
        return hex(n)
    return f"{'-' * (n < 0)}{digits_of(abs(n))}"


def number(x: float | int | None) -> float | int | str | None:
    """Return a measure: as text where JSON has no such number."""
    if isinstance(x, int):
        return integer(x)
    return x if x is None or isfinite(x) else str(x)


def datum_to_wire(datum: Datum) -> Wire:
    """Return DATUM."""
    wire: Wire = {
        "format": datum.format.name,
        "code": hexadecimal_code(datum),
        "sign": datum.sign_bit,
        "biased_exponent": datum.biased_exponent,
        "trailing_significand": integer(datum.trailing_significand),
        "class": datum.number_class.value,
        "exact": exact_text(datum),
        "hex": hexadecimal(datum),
        "shortest": shortest(datum),
    }
    if datum.integer_bit is not None:
        wire["integer_bit"] = datum.integer_bit
    return wire


def operand_to_wire(operand: Operand, literal: str | None = None) -> Wire:
    """Return an operand: DATUM for data, else its exact value, with `literal` where it was text."""
    if isinstance(operand, Datum):
        return datum_to_wire(operand) | ({} if literal is None else {"literal": literal})
    if isinstance(operand, Ratio):
        return {"exact": ratio_text(operand), "ratio": _value_to_wire(operand)}
    wire: Wire = {"literal": operand.text}
    if isinstance(operand.value, Ratio):
        wire["exact"] = ratio_text(operand.value)
    return wire


def context_to_wire(context: Context) -> Wire:
    """Return a context with every choice spelled out."""
    return _fields_to_wire(context)


def _fields_to_wire(record: Record) -> Wire:
    return {name: _value_to_wire(getattr(record, name)) for name in record._fields}


def _value_to_wire(value: object) -> Any:
    """Return what a step holds, by its type."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return integer(value)
    if isinstance(value, Datum):
        return datum_to_wire(value)
    if isinstance(value, Format):
        return value.name
    if isinstance(value, Flags):
        return value.names
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, SquareRoot):
        return {"square_root_of": _value_to_wire(value.radicand)}
    assert isinstance(value, Record)
    return _fields_to_wire(value)


def step_to_wire(step: Step) -> Wire:
    """Return one step: its kind and its numbers; a rounding also says what they amount to."""
    wire: Wire = {"step": type(step).__name__.lower()}
    for name in step._fields:
        value = getattr(step, name)
        if isinstance(value, Rounded):
            wire |= rounded_to_wire(value)
        else:
            wire[name] = _value_to_wire(value)
    return wire


def rounded_to_wire(rounded: Rounded) -> Wire:
    """Return a rounding: what it saw, and what that amounts to."""
    return _fields_to_wire(rounded) | {
        "tail": rounded.tail.value,
        "guard": int(rounded.guard),
        "round": int(rounded.round),
        "sticky": int(rounded.sticky),
        "carried": rounded.carried,
    }


def error_to_wire(derivation: Derivation) -> Wire:
    """Return the error, exactly and in ulps: a fraction, symbolic where that is too long, null where there is none."""
    truth, result = derivation.truth, derivation.result
    if truth is None or not result.is_finite:
        return {"exact": None, "ulps": None}
    if isinstance(truth, SquareRoot):
        bounds = [each / result.ulp.as_fraction() for each in derivation.error_bounds or ()]
        return {"exact": None, "ulps": None, "ulps_bounds": [fraction_text(each) for each in bounds]}
    if isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS):
        gone = ratio_text(truth.replace(negative=not truth.negative))
        kept = exact_text(result)
        symbolic = gone if not result.exact else f"{kept} - {_literal(derivation)}"
        return {"exact": symbolic, "ulps": f"({symbolic}) / 2^{result.quantum_exponent}"}
    error, ulps = derivation.error, derivation.error_ulps
    assert error is not None
    assert ulps is not None
    return {"exact": fraction_text(error), "ulps": terminating_decimal(ulps) or fraction_text(ulps)}


def _literal(derivation: Derivation) -> str:
    operand = derivation.operands[0]
    if isinstance(operand, Literal):
        return operand.text if len(operand.text) <= DIGIT_LIMIT else "literal"
    return "operand"


def to_wire(derivation: Derivation) -> Wire:
    """Return a derivation as INTERFACE's result object."""
    return {
        "schema": SCHEMA,
        "operation": derivation.operation,
        "format": derivation.result.format.name,
        "context": context_to_wire(derivation.context),
        "operands": _operands_to_wire(derivation),
        "steps": [step_to_wire(step) for step in derivation.steps],
        "result": datum_to_wire(derivation.result),
        "flags": derivation.flags.names,
        "error": error_to_wire(derivation),
        **_handmade(derivation),
    }


def _operands_to_wire(found: Derivation | Comparison | IntegerResult) -> list[Wire]:
    literals = found.literals or (None,) * len(found.operands)
    return [operand_to_wire(*pair) for pair in zip(found.operands, literals, strict=True)]


def _handmade(derivation: Derivation) -> Wire:
    """Return the parameters of formats that no name can bring back."""
    data = [each for each in (*derivation.operands, derivation.result) if isinstance(each, Datum)]
    handmade = {each.format.name: each.format for each in data if not _has_name(each.format)}
    return {"formats": {name: _fields_to_wire(each) for name, each in handmade.items()}} if handmade else {}


def _has_name(format: Format) -> bool:
    try:
        return parse_format(format.name) == format
    except FormatError:
        return False


def format_to_wire(row: Row) -> Wire:
    """Return a format: its parameters, its landmarks as DATUM, its codes per class, its names and source."""
    f = row.format
    landmarks = {"largest": f.largest_magnitude, "smallest_normal": f.smallest_normal_magnitude}
    if f.subnormals:
        landmarks["smallest_subnormal"] = f.smallest_magnitude
    count = census(f)
    return {
        "schema": SCHEMA,
        "operation": "formats",
        "format": f.name,
        "aliases": list(row.aliases),
        "source": row.source,
        "width": f.width,
        "precision": f.precision,
        "exponent_bits": f.exponent_bits,
        "bias": f.bias,
        "emin": f.emin,
        "emax": f.emax,
        "signed": f.signed,
        "infinities": f.infinities,
        "nans": integer(f.nans),
        "zero": f.zero,
        "negative_zero": f.negative_zero,
        "subnormals": f.subnormals,
        **{name: datum_to_wire(Datum(f, f.compose(False, magnitude))) for name, magnitude in landmarks.items()},
        "codes": {name: integer(getattr(count, name)) for name in count._fields},
    }


def codes_to_wire(format: Format) -> list[Wire]:
    """Return DATUM for every code of a small format."""
    return [datum_to_wire(Datum(format, code)) for code in range(1 << format.width)]


def conversion_to_wire(stages: list[Derivation], direct: Derivation) -> Wire:
    """Return a conversion along a path: the last stage's object, with the path and the direct rounding."""
    last = to_wire(stages[-1])
    first = stages[0]
    return last | {
        "operation": "convert",
        "operands": _operands_to_wire(first),
        "steps": [step_to_wire(step) for stage in stages for step in stage.steps],
        "error": error_to_wire(_restated(stages[-1], first)),
        "path": [
            {"format": stage.result.format.name, "result": datum_to_wire(stage.result), "flags": stage.flags.names,
             "error": error_to_wire(stage)}
            for stage in stages
        ],
        "direct": {"result": datum_to_wire(direct.result), "flags": direct.flags.names, "error": error_to_wire(direct)},
        "same": direct.result == stages[-1].result,
    }  # fmt: skip


def _restated(last: Derivation, first: Derivation) -> Derivation:
    """Return the last stage with the first operand as what its result stands for: the error of the whole path."""
    steps = (*last.steps[:-1], Encode(last.result, first.truth))
    return last.replace(operands=first.operands, steps=steps)


def interval_to_wire(datum: Datum, context: Context) -> Wire | None:
    """Return the interval of reals that round to a datum; null where none does, a null end where it has none."""
    interval = preimage(datum, context)
    if interval is None:
        return None
    low, high = interval.low, interval.high
    return {
        "low": None if low is None else exact_decimal(low),
        "low_closed": interval.low_closed,
        "high": None if high is None else exact_decimal(high),
        "high_closed": interval.high_closed,
        "mirrored": interval.mirrored,
    }


def comparison_to_wire(comparison: Comparison) -> Wire:
    """Return a comparison: its result is the relation."""
    return _without_datum(comparison, comparison.operation) | {
        "result": {"relation": comparison.relation.value, "holds": comparison.holds},
        "flags": comparison.flags.names,
        "error": {"exact": None, "ulps": None},
    }


def integer_to_wire(found: IntegerResult) -> Wire:
    """Return a conversion to an integer: its result is the integer, with its bits."""
    value = found.operands[0]
    error = fraction_text(found.value - value.exact.as_fraction()) if value.is_finite else None
    result = {"type": found.kind.name, "integer": integer(found.value), "code": found.hexadecimal_code}
    steps = [] if found.rounded is None else [step_to_wire(Integral(found.rounded))]
    return _without_datum(found, "to_integer", steps) | {
        "result": result,
        "flags": found.flags.names,
        "error": {"exact": error, "ulps": None},
    }


def _without_datum(found: Comparison | IntegerResult, operation: str, steps: list[Wire] | None = None) -> Wire:
    """Return what a result that is no datum has in common with a derivation."""
    formats = list(dict.fromkeys(datum.format.name for datum in found.operands))
    return {
        "schema": SCHEMA,
        "operation": operation,
        "format": formats[0] if len(formats) == 1 else None,
        "context": context_to_wire(found.context),
        "operands": _operands_to_wire(found),
        "steps": steps or [],
    }
