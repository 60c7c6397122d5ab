"""The schemas that all packages share: Datum objects, contexts, roundings, steps and whole derivations."""

from __future__ import annotations

from operator import attrgetter, itemgetter

from floatlab.numbers import Context, Datum, Derivation, Exact, Ratio, Rounded, parse_literal
from floatlab.numbers.datum import exact_text, hexadecimal, hexadecimal_code, shortest
from floatlab.numbers.derivation import EXACT_ERROR_BITS, Integral, Round, Step
from floatlab.numbers.exact import Literal, SquareRoot
from floatlab.numbers.printing import DIGIT_LIMIT, exact_decimal, fraction_text, ratio_text, terminating_decimal
from floatlab.numbers.projection import Between, given_by_table
from floatlab.numbers.rounding import DEFAULT, LATER_FIELDS
from floatlab.wire.codecs import CODE, CODECS, FLAGS, FORMAT, INTEGER, TEXT, Codec, list_of, optional
from floatlab.wire.schema import (
    Member,
    Schema,
    common_members,
    derived,
    field_codecs,
    flattened,
    schema,
    schema_of,
    variant,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction
    from typing import Any

    from floatlab.numbers.derivation import Operand, Truth
    from floatlab.wire.codecs import Scope, Wire
    from floatlab.wire.schema import Rows


def _fields(datum: Datum) -> Wire | None:
    """Return the bits of a code's fields by name if the format is given by a table; None for other formats.

    Formats given by a table have no biased exponent and no trailing significand.
    """
    fmt = datum.format
    return {each.name: each.bits for each in fmt.fields(datum.code)} if given_by_table(fmt) else None


DATUM = Schema(
    Datum,
    {
        "format": FORMAT,
        "code": Member(CODE, hexadecimal_code, "code"),
        "sign": derived("sign_bit"),
        "biased_exponent": derived(lambda datum: None if datum.format.is_table else datum.biased_exponent),
        "trailing_significand": derived(
            lambda datum: None if datum.format.is_table else datum.trailing_significand, optional(INTEGER)
        ),
        "class": derived("number_class.value"),
        "exact": derived(exact_text),
        "hex": derived(hexadecimal),
        "shortest": derived(shortest),
        "integer_bit": derived("integer_bit").replace(is_optional=True),
        "fields": derived(_fields).replace(is_optional=True),
    },
)


def _later(name: str, codec: Codec) -> Member:
    """Return the member for a newer field of `Context`; old documents lack it, and its default value is not written."""
    usual = getattr(DEFAULT, name)
    return Member(codec, lambda context: None if (value := getattr(context, name)) == usual else value, name, True)


_LATER: Rows = {name: _later(name, codec) for name, codec in field_codecs(Context, *LATER_FIELDS).items()}
CONTEXT = Schema(Context, {**field_codecs(Context), **_LATER})
EXACT = schema_of(Exact)
RATIO = schema_of(Ratio)

BETWEEN = schema_of(Between)
_ROUNDED: Rows = field_codecs(Rounded) | {
    "between": Member(BETWEEN, attrgetter("between"), "between").replace(is_optional=True),
    "tail": derived("tail.value"),
    "guard": derived(lambda rounded: int(rounded.guard)),
    "round": derived(lambda rounded: int(rounded.round)),
    "sticky": derived(lambda rounded: int(rounded.sticky)),
    "carried": derived("carried"),
}
ROUNDED = Schema(Rounded, _ROUNDED)


# The exact number that a result approximates.


def _write_truth(truth: Truth, scope: Scope) -> object:
    if isinstance(truth, SquareRoot):
        return {"square_root_of": EXACT.write(truth.radicand, scope)}
    if isinstance(truth, Datum):
        return {"value_of": DATUM.write(truth, scope)}
    return (RATIO if isinstance(truth, Ratio) else EXACT).write(truth, scope)


def _read_truth(wire: Wire, scope: Scope) -> Truth:
    if "square_root_of" in wire:
        return SquareRoot(EXACT.read(wire["square_root_of"], scope))
    if "value_of" in wire:
        return DATUM.read(wire["value_of"], scope)  # type: ignore[no-any-return]
    truth: Truth = (RATIO if "numerator" in wire else EXACT).read(wire, scope)
    return truth


CODECS.update({
    "Datum": DATUM, "Exact": EXACT, "Ratio": RATIO, "Context": CONTEXT, "Rounded": ROUNDED,
    "Truth": Codec(_write_truth, _read_truth),
})  # fmt: skip


# Steps. A rounding is not a nested object: its members are among those of its step.


_OF_ROUNDED = flattened("rounded", _ROUNDED)
_STEPS = {kind.__name__.lower(): Schema(kind, field_codecs(kind)) for kind in Step.__subclasses__()} | {
    "integral": Schema(lambda **rounded: Integral(Rounded(**rounded)), _OF_ROUNDED),
    "round": Schema(lambda **fields: Round(fields.pop("format"), Rounded(**fields)), {"format": FORMAT} | _OF_ROUNDED),
}
STEPS = list_of(variant("step", _STEPS))


# Operands: Datum objects, or exact values; `literal` is the text from which an operand was read.


_TYPED = Schema(
    None, flattened(itemgetter(0), DATUM.rows) | {"literal": derived(itemgetter(1)).replace(is_optional=True)}
)


def _write_operand(pair: tuple[Operand, str | None], scope: Scope) -> object:
    operand, literal = pair
    if isinstance(operand, Datum):
        return _TYPED.write((operand, literal), scope)
    if isinstance(operand, Ratio):
        return {"exact": ratio_text(operand), "ratio": RATIO.write(operand, scope)}
    wire: Wire = {"literal": operand.text}
    if isinstance(operand.value, Ratio):
        wire["exact"] = ratio_text(operand.value)
    return wire


def _read_operand(wire: Wire, scope: Scope) -> tuple[Operand, str | None]:
    if "code" in wire:
        return DATUM.read(wire, scope), optional(TEXT).read(wire.get("literal"), scope)
    if "ratio" in wire:
        return RATIO.read(wire["ratio"], scope), None
    return parse_literal(TEXT.read(wire["literal"], scope)), None


def _pairs(answer: Derivation) -> list[tuple[Operand, str | None]]:
    return list(zip(answer.operands, answer.literals or (None,) * len(answer.operands), strict=True))


def split_pairs(pairs: tuple[tuple[Operand, str | None], ...]) -> dict[str, Any]:
    """Split (operand, literal) pairs into the fields `operands` and `literals` of an answer."""
    literals = tuple(literal for _, literal in pairs)
    is_typed = any(literal is not None for literal in literals)
    return {"operands": tuple(operand for operand, _ in pairs), "literals": literals if is_typed else ()}


OPERANDS = Member(list_of(Codec(_write_operand, _read_operand)), _pairs, "pairs")


# Errors of results.


def error_in_ulps(error: Fraction | None, value: Datum) -> Wire:
    """Return the JSON members of an error: `exact`, the error itself, and `ulps`, the error in ulps of `value`.

    Both members are null if `error` is None or `value` is not finite.
    """
    if error is None or not value.is_finite:
        return {"exact": None, "ulps": None}
    ulps = error / value.ulp.as_fraction()
    return {"exact": fraction_text(error), "ulps": terminating_decimal(ulps) or fraction_text(ulps)}


def error_of(derivation: Derivation) -> Wire:
    """Return the JSON members `exact` and `ulps` of a derivation's error.

    Both members are null if the exact number or the result is not finite. If the exact number is too long
    (`EXACT_ERROR_BITS`), both members are formulas as text. If the error is irrational, both members are null, and a
    member `ulps_bounds` has bounds on the error in ulps.
    """
    truth, result = derivation.truth, derivation.result
    if truth is None or not result.is_finite:
        return {"exact": None, "ulps": None}
    if derivation.is_enclosed and not (isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS)):
        bounds = [bound / result.ulp.as_fraction() for bound in derivation.error_bounds or ()]
        return {"exact": None, "ulps": None, "ulps_bounds": [fraction_text(bound) for bound in bounds]}
    if isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS):
        lost = ratio_text(truth.replace(negative=not truth.negative))
        symbolic = lost if not result.exact else f"{exact_text(result)} - {_literal(derivation)}"
        return {"exact": symbolic, "ulps": f"({symbolic}) / 2^{result.quantum_exponent}"}
    return error_in_ulps(derivation.error, result)


def _literal(derivation: Derivation) -> str:
    operand = derivation.operands[0]
    if isinstance(operand, Literal):
        return operand.text if len(operand.text) <= DIGIT_LIMIT else "literal"
    return "operand"


# Derivations.


def read_derivation(pairs: Any, **fields: Any) -> Derivation:
    """Return the derivation with these operands (`pairs`) and fields."""
    return Derivation(**split_pairs(pairs), **fields)


DERIVATION = schema(
    read_derivation,
    **common_members(),
    format=derived("result.format", FORMAT),
    context=CONTEXT,
    operands=OPERANDS,
    steps=STEPS,
    result=DATUM,
    flags=FLAGS,
    error=derived(error_of),
)


def interval_to_wire(datum: Datum, context: Context) -> Wire | None:
    """Return the interval of reals that round to a datum, for JSON; None if no real does. An unbounded end is null."""
    from floatlab.numbers.intervals import preimage

    interval = preimage(datum, context)
    if interval is None:
        return None
    low, high = (None if bound is None else exact_decimal(bound) for bound in (interval.low, interval.high))
    ends = {"low": low, "low_closed": interval.low_closed, "high": high, "high_closed": interval.high_closed}
    return {**ends, "mirrored": interval.mirrored}
