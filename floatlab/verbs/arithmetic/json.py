"""The schemas of results other than derivations: comparisons, integers, and fma compared with multiply-then-add."""

from __future__ import annotations

from floatlab.arith.comparison import Comparison, Relation
from floatlab.arith.fma_contrast import Contrast
from floatlab.arith.integers import Integer, IntegerResult
from floatlab.errors import FileFormatError
from floatlab.numbers.derivation import Integral
from floatlab.numbers.printing import fraction_text
from floatlab.wire.codecs import BOOLEAN, FLAGS, INTEGER, TEXT, enumeration
from floatlab.wire.derivations import CONTEXT, DERIVATION, OPERANDS, STEPS, read_derivation, split_pairs
from floatlab.wire.schema import Member, Schema, common_members, constant, derived, field, flattened, schema

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
    return IntegerResult(kind=kind, rounded=rounded, **split_pairs(pairs), **fields)


_COMMON = {"format": derived(_common_format), "context": CONTEXT, "operands": OPERANDS}

COMPARISON = schema(
    lambda pairs, **fields: Comparison(**split_pairs(pairs), **fields),
    **common_members(),
    **_COMMON,
    steps=constant([]),
    result={"relation": enumeration(Relation), "holds": BOOLEAN},
    flags=FLAGS,
    error=constant({"exact": None, "ulps": None}),
)
INTEGER_RESULT = schema(
    _integer_result,
    **common_members("to_integer"),
    **_COMMON,
    steps=Member(STEPS, lambda answer: [] if answer.rounded is None else [Integral(answer.rounded)], "steps"),
    result={
        "type": Member(TEXT, lambda answer: answer.kind.name, "type"),
        "integer": field(INTEGER, "value"),
        "code": derived("hexadecimal_code"),
    },
    flags=FLAGS,
    error=derived(_integer_error),
)
CONTRAST = Schema(
    lambda separate, **fused: Contrast(read_derivation(**fused), separate),
    flattened("fused", DERIVATION.rows) | {"separate": field(DERIVATION, "separate"), "same": derived("same")},
)
