"""The second rounding of x87 results, which are computed under precision control and stored in binary32 or binary64."""

from __future__ import annotations

from collections.abc import Callable

from floatlab import arith
from floatlab.arith.operands import CONTROLLED
from floatlab.formats import Format, parse_format
from floatlab.numbers import Datum, Derivation, convert
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.rounding import DEFAULT
from floatlab.page import words
from floatlab.page.model import Block, Role, Row, Span, line
from floatlab.record import Record

STORES = ("binary32", "binary64")
_OPERATIONS: dict[str, Callable[..., Derivation]] = {
    "add": arith.add, "subtract": arith.subtract, "multiply": arith.multiply, "divide": arith.divide,
    "sqrt": arith.sqrt,
}  # fmt: skip


class StoredResult(Record):
    """The two ways to round an x87 result into a narrower format.

    `twice` is the computed result rounded again, as a store does. `once` is the exact result rounded only once.
    """

    twice: Derivation
    once: Derivation

    @property
    def is_innocuous(self) -> bool:
        """Whether rounding twice gave the same number as rounding once."""
        return self.twice.result == self.once.result


def store(derivation: Derivation, format: Format) -> StoredResult:
    """Round an operation's result again, as an x87 store does; for comparison, round the exact result only once.

    Both roundings are into `format`.

    >>> from floatlab import Context
    >>> tiny = arith.multiply("0x1.05fp-1030", "0x1.ebf3538667817p0", "x87", Context(precision=53))
    >>> found = store(tiny, parse_format("fp64"))
    >>> found.is_innocuous, hex(found.twice.result.code), hex(found.once.result.code)
    (False, '0x1f75c4846558', '0x1f75c4846559')
    """
    rules = derivation.context.replace(precision=DEFAULT.precision)
    once = _OPERATIONS[derivation.operation](*derivation.operands, format, rules)
    return StoredResult(convert(derivation.result, format, rules), once)


def stored_rows(derivation: Derivation) -> list[Block]:
    """Return a row for each format in which an x87 result may be stored.

    The list is empty if the result is not finite, or if precision control does not apply to the operation.
    """
    if derivation.operation not in CONTROLLED or not derivation.result.is_finite:
        return []
    rows: list[Block] = []
    for name in STORES:
        found = store(derivation, parse_format(name))
        flags = words.flags_line(found.twice.flags) if found.twice.flags else ()
        rows.append(Row("stored", _named(found.twice.result), flags))
        if not found.is_innocuous:
            rows.append(Row("", line(Span("rounded twice", Role.LOST), "; once it is ", _named(found.once.result))))
    return rows


def _named(datum: Datum) -> str:
    return f"{datum.format.name} {hexadecimal_code(datum)} {words.brief(datum)}"
