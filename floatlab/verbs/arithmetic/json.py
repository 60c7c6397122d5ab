"""The schemas of results other than derivations: comparisons, integers, and fma compared with multiply-then-add."""

from __future__ import annotations

from floatlab.arith.comparison import Comparison, Relation
from floatlab.arith.fused import Contrast
from floatlab.arith.integers import Integer, IntegerResult
from floatlab.errors import FileFormatError
from floatlab.numbers.decimals import fraction_text
from floatlab.numbers.steps import Integral
from floatlab.wire.codecs import BOOLEAN, FLAGS, INTEGER, TEXT, word_of
from floatlab.wire.derivations import CONTEXT, DERIVATION, OPERANDS, STEPS, read_derivation, unpaired
from floatlab.wire.schema import Member, Schema, constant, field, heading, schema, shown, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _common_format(answer: Comparison | IntegerResult) -> str | None:
    names = {datum.format.name for datum in answer.operands}
    return names.pop() if len(names) == 1 else None


def _integer_error(answer: IntegerResult) -> dict[str, str | None]:
    operand = answer.operands[0]
    error = fraction_text(answer.value - operand.exact.as_fraction()) if operand.is_finite else None
    return {"exact": error, "ulps": None}


def _integer_result(pairs: Any, steps: tuple[Integral, ...], type: str, **fields: Any) -> IntegerResult:
    digits = type.removeprefix("u").removeprefix("i")
    if not (digits.isascii() and digits.isdigit() and len(digits) < 6):
        raise FileFormatError(f"{type[:20]!r} is not an integer type")
    rounded = steps[0].rounded if steps else None
    kind = Integer(int(digits), not type.startswith("u"))
    return IntegerResult(kind=kind, rounded=rounded, **unpaired(pairs), **fields)


_COMMON = {"format": shown(_common_format), "context": CONTEXT, "operands": OPERANDS}

COMPARISON = schema(
    lambda pairs, **fields: Comparison(**unpaired(pairs), **fields),
    **heading(),
    **_COMMON,
    steps=constant([]),
    result={"relation": word_of(Relation), "holds": BOOLEAN},
    flags=FLAGS,
    error=constant({"exact": None, "ulps": None}),
)
INTEGER_RESULT = schema(
    _integer_result,
    **heading("to_integer"),
    **_COMMON,
    steps=Member(STEPS, lambda answer: [] if answer.rounded is None else [Integral(answer.rounded)], "steps"),
    result={
        "type": Member(TEXT, lambda answer: answer.kind.name, "type"),
        "integer": field(INTEGER, "value"),
        "code": shown("hexadecimal_code"),
    },
    flags=FLAGS,
    error=shown(_integer_error),
)
CONTRAST = Schema(
    lambda separate, **fused: Contrast(read_derivation(**fused), separate),
    within("fused", DERIVATION.rows) | {"separate": field(DERIVATION, "separate"), "same": shown("same")},
)
