"""Checking vectors: every line computed again, every difference reported with the way to see why."""

from __future__ import annotations

from floatlab.errors import FileFormatError, quoted
from floatlab.numbers.context import Context, Flags
from floatlab.record import Record
from floatlab.vectors.functions import BITS_OF_FLAGS, FLAGS_OF_BITS, VERBS, Function, digits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from floatlab.formats import Format


class Mismatch(Record):
    """A line whose result or flags are not what floatlab computes."""

    number: int
    line: str
    function: Function
    operands: tuple[int, ...]
    expected: int
    expected_flags: Flags
    computed: int
    computed_flags: Flags

    def written(self, code: int, flags: Flags) -> str:
        """Write a result and flags as a line of vectors does."""
        return f"{code:0{digits(self.function.result)}X} {BITS_OF_FLAGS[flags]:02X}"

    def command(self, context: Context) -> str | None:
        """Return the command that shows the derivation, or None where no verb does."""
        verb = VERBS.get(self.function.operation)
        if verb is None:
            return None
        values = " ".join(
            f"bits:0x{code:0{digits(kind)}x}" for code, kind in zip(self.operands, self.function.operands, strict=True)
        )
        words = f"floatlab {verb} {values} -f {self.function.operands[0].name} -r {context.rounding.value}"
        words += f" --nan {context.nan.value}" * (context.nan.value != "first")
        return words + f" --tininess {context.tininess.value}" * (context.tininess.value != "after")


def parse_line(text: str, function: Function, number: int = 0) -> tuple[tuple[int, ...], int, Flags]:
    """Return a line's operands, result and flags; raises FileFormatError that names the line."""
    words = text.split()
    kinds = (*function.operands, function.result)
    if len(words) != len(kinds) + 1:
        raise FileFormatError(
            f"line {number}: {function.name} has {len(kinds) + 1} words a line (operands, result, flags), "
            f"and this one has {len(words)}: {quoted(text.strip())}"
        )
    try:
        values = [int(word, 16) for word in words]
    except ValueError:
        values = [-1]
    limits = [1 << (1 if kind is None else kind.width) for kind in kinds]
    whole = all(0 <= value < limit for value, limit in zip(values, [*limits, 32], strict=False))
    if len(values) < len(words) or not whole or not all(word.isalnum() for word in words):
        raise FileFormatError(
            f"line {number}: {quoted(text.strip())} does not fit {function.name}: hexadecimal codes of "
            f"{', '.join(str(digits(kind)) for kind in kinds)} digits and two digits of flags"
        )
    return tuple(values[: len(function.operands)]), values[-2], FLAGS_OF_BITS[values[-1]]


def check_lines(
    lines: Iterable[str], function: Function, context: Context, any_nan: bool = False
) -> Iterator[Mismatch | None]:
    """Yield, for each line that is not empty, None where it agrees and a Mismatch where it does not.

    `any_nan` lets any NaN stand for any other. Raises FileFormatError at the first line that cannot
    be read.

    >>> from floatlab.vectors import parse_function
    >>> add = parse_function("f16_add")
    >>> [each and each.written(each.computed, each.computed_flags) for each in check_lines(
    ...     ["3C00 3C00 4000 00", "3C00 0001 3C00 00"], add, Context())]
    [None, '3C00 01']
    """
    run = function.run
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        operands, expected, expected_flags = parse_line(text, function, number)
        computed, flags = run(operands, context)
        if (computed == expected and flags is expected_flags) or (
            flags == expected_flags and (computed == expected or (any_nan and _both_nan(function, expected, computed)))
        ):
            yield None
        else:
            yield Mismatch(number, text.strip(), function, operands, expected, expected_flags, computed, flags)


def _both_nan(function: Function, expected: int, computed: int) -> bool:
    from floatlab.formats import Format
    from floatlab.numbers.datum import Datum

    fmt: Format | object = function.result
    return isinstance(fmt, Format) and Datum(fmt, expected).is_nan and Datum(fmt, computed).is_nan
