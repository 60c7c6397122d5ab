"""Answers as JSON objects (INTERFACE: schema 1): the model itself, never a parsed page.

Integers beyond 2^53 are strings, since many readers of JSON hold numbers as binary64.
"""

from __future__ import annotations

from floatlab.formats import Format, Row
from floatlab.formats.census import census
from floatlab.numbers import Context, Datum, Decode, Derivation, Encode, Exact, Ratio, Read, Round, Special, Step
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.decimals import (
    DIGIT_LIMIT,
    exact_decimal,
    exact_text,
    fraction_text,
    hexadecimal,
    ratio_text,
    shortest,
    terminating_decimal,
)
from floatlab.numbers.digits import digits_of
from floatlab.numbers.intervals import preimage
from floatlab.numbers.literals import Literal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.numbers.steps import Operand

    Wire = dict[str, Any]

SCHEMA = 1
_SAFE = 1 << 53


def integer(n: int) -> int | str:
    """Return an integer, as a string of digits where binary64 might not hold it."""
    if abs(n) <= _SAFE:
        return n
    return f"{'-' * (n < 0)}{digits_of(abs(n))}"


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


def operand_to_wire(operand: Operand) -> Wire:
    """Return an operand: DATUM for data, else its exact value, with `literal` where it was text."""
    if isinstance(operand, Datum):
        return datum_to_wire(operand)
    if isinstance(operand, Ratio):
        return {"exact": ratio_text(operand)}
    wire: Wire = {"literal": operand.text}
    if isinstance(operand.value, Ratio):
        wire["exact"] = ratio_text(operand.value)
    return wire


def context_to_wire(context: Context) -> Wire:
    """Return a context with every choice spelled out."""
    return {
        "rounding": context.rounding.value,
        "seed": integer(context.seed),
        "overflow": context.overflow.value,
        "absent": context.absent.value,
        "tininess": context.tininess.value,
        "flush_inputs": context.flush_inputs,
        "flush_results": context.flush_results,
        "nan": context.nan.value,
        "fma_invalid": context.fma_invalid,
    }


def _exact_to_wire(x: Exact) -> Wire:
    return {"negative": x.negative, "c": integer(x.c), "q": integer(x.q)}


def step_to_wire(step: Step) -> Wire:
    """Return one step: its kind and its numbers."""
    if isinstance(step, Read):
        return {"step": "read", "exact": _exact_to_wire(step.exact), "sticky": step.sticky}
    if isinstance(step, Decode):
        return {"step": "decode", "datum": datum_to_wire(step.datum)}
    if isinstance(step, Special):
        return {"step": "special", "rule": step.rule.value, "flags": step.flags.names}
    if isinstance(step, Encode):
        return {"step": "encode", "datum": datum_to_wire(step.datum)}
    assert isinstance(step, Round)
    r = step.rounded
    return {
        "step": "round",
        "format": step.format.name,
        "negative": r.negative,
        "quantum": integer(r.quantum),
        "kept": integer(r.kept),
        "rest": f"{digits_of(r.rest2)}/{digits_of(2 * r.unit)}",
        "sticky_below": r.sticky_below,
        "tail": r.tail.value,
        "guard": int(r.guard),
        "round": int(r.round),
        "sticky": int(r.sticky),
        "odd": r.odd,
        "increment": r.increment,
        "drawn": r.drawn,
        "carried": r.carried,
        "tiny_before": r.tiny_before,
        "tiny_after": r.tiny_after,
        "overflowed": r.overflowed,
        "flags": r.flags.names,
    }


def error_to_wire(derivation: Derivation) -> Wire:
    """Return the error, exactly and in ulps: a fraction, symbolic where that is too long, null where there is none."""
    truth, result = derivation.truth, derivation.result
    if truth is None or not result.is_finite:
        return {"exact": None, "ulps": None}
    if isinstance(truth, Ratio) and not (truth.expandable and _short(truth)):
        gone = ratio_text(truth.replace(negative=not truth.negative))
        kept = exact_text(result)
        symbolic = gone if not result.exact else f"{kept} - {_literal(derivation)}"
        return {"exact": symbolic, "ulps": f"({symbolic}) / 2^{result.quantum_exponent}"}
    error, ulps = derivation.error, derivation.error_ulps
    assert error is not None
    assert ulps is not None
    return {"exact": fraction_text(error), "ulps": terminating_decimal(ulps) or fraction_text(ulps)}


def _short(truth: Ratio) -> bool:
    bits = max(truth.numerator.bit_length(), truth.denominator.bit_length(), abs(truth.twos), abs(truth.tens) * 10 // 3)
    return bits * 30103 <= DIGIT_LIMIT * 400_000


def _literal(derivation: Derivation) -> str:
    operand = derivation.operands[0]
    if isinstance(operand, Literal):
        return operand.text if len(operand.text) <= DIGIT_LIMIT else "literal"
    return "operand"


def derivation_to_wire(derivation: Derivation) -> Wire:
    """Return a derivation as INTERFACE's result object."""
    return {
        "schema": SCHEMA,
        "operation": derivation.operation,
        "format": derivation.result.format.name,
        "context": context_to_wire(derivation.context),
        "operands": [operand_to_wire(operand) for operand in derivation.operands],
        "steps": [step_to_wire(step) for step in derivation.steps],
        "result": datum_to_wire(derivation.result),
        "flags": derivation.flags.names,
        "error": error_to_wire(derivation),
    }


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
    last = derivation_to_wire(stages[-1])
    first = stages[0]
    return last | {
        "operation": "convert",
        "operands": [operand_to_wire(operand) for operand in first.operands],
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
