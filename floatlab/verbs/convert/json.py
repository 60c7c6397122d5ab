"""The JSON schema of a conversion along a path: the stages as one derivation, their results, the direct rounding."""

from __future__ import annotations

from floatlab.numbers.derivation import Encode
from floatlab.wire.codecs import FLAGS, FORMAT, list_of
from floatlab.wire.derivations import DATUM, DERIVATION, error_of
from floatlab.wire.schema import derived, flattened, schema

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.numbers import Derivation
    from floatlab.verbs.convert.conversion import Conversion
    from floatlab.wire.codecs import Wire


def _whole(conversion: Conversion) -> Derivation:
    """Return all stages as one derivation."""
    first, last = conversion.stages[0], conversion.stages[-1]
    steps = tuple(step for stage in conversion.stages for step in stage.steps)
    return last.replace(operation="convert", operands=first.operands, literals=first.literals, steps=steps)


def _error(conversion: Conversion) -> Wire:
    """Return the error of the whole path: the difference between the last result and the first operand."""
    first, last = conversion.stages[0], conversion.stages[-1]
    return error_of(last.replace(operands=first.operands, steps=(*last.steps[:-1], Encode(last.result, first.truth))))


_RESULT = {"result": DATUM, "flags": FLAGS, "error": derived(error_of)}
CONVERSION = schema(
    **(flattened(_whole, DERIVATION.rows) | {"error": derived(_error)}),
    path=derived("stages", list_of(schema(format=derived("result.format", FORMAT), **_RESULT))),
    direct=derived("direct", schema(**_RESULT)),
    same=derived("same"),
)
