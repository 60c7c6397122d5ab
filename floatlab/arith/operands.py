"""What an operation works on: operands in their formats, the result's format, and the steps so far."""

from __future__ import annotations

from functools import lru_cache

from floatlab.errors import FormatError
from floatlab.formats import Format, parse_format
from floatlab.numbers.context import Context, Flags
from floatlab.numbers.datum import Datum, NumberClass
from floatlab.numbers.exact import Exact
from floatlab.numbers.projection import round_exact
from floatlab.numbers.reading import convert, encode
from floatlab.numbers.steps import Decode, Derivation, Encode, Promote, Round, Rule, Special
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from floatlab.numbers.steps import Step, Truth

# What operands of several formats are promoted to: the first of these that holds them all.
PROMOTIONS = ("binary16", "bfloat16", "binary32", "binary64", "binary128")
DEFAULT_FORMAT = "binary32"

_SUBNORMAL = (NumberClass.POSITIVE_SUBNORMAL, NumberClass.NEGATIVE_SUBNORMAL)
_INFINITE = (NumberClass.POSITIVE_INFINITY, NumberClass.NEGATIVE_INFINITY)
_NAN = (NumberClass.QUIET_NAN, NumberClass.SIGNALING_NAN, NumberClass.UNSUPPORTED)


@lru_cache(maxsize=1024)
def holds(wide: Format, narrow: Format) -> bool:
    """Say whether every number and special value of `narrow` is one of `wide`.

    >>> holds(parse_format("fp32"), parse_format("bf16")), holds(parse_format("fp16"), parse_format("bf16"))
    (True, False)
    """
    if wide == narrow:
        return True
    special = (wide.signed or not narrow.signed) and (wide.zero or not narrow.zero)
    special = special and (wide.infinities or not narrow.infinities) and (wide.has_nan or not narrow.has_nan)
    special = special and (wide.negative_zero or not narrow.negative_zero)
    if not special or wide.precision < narrow.precision:
        return False
    least = wide.qmin if wide.subnormals else wide.emin
    return least <= (narrow.qmin if narrow.subnormals else narrow.emin) and wide.largest >= narrow.largest


def common_format(formats: list[Format]) -> Format:
    """Return the format that operands of these formats are promoted to; raises FormatError where none holds them.

    >>> common_format([parse_format("fp16"), parse_format("bf16")]).name
    'binary32'
    """
    if all(each == formats[0] for each in formats):
        return formats[0]
    for name in PROMOTIONS:
        if all(holds(parse_format(name), each) for each in formats):
            return parse_format(name)
    names = ", ".join(dict.fromkeys(each.name for each in formats))
    raise FormatError(f"no promotion format holds {names}: name the result's format with -f")


class Work(Record):
    """An operation under way; `steps` grows until `finish` closes it."""

    operation: str
    operands: tuple[Datum, ...]
    literals: tuple[str | None, ...]
    format: Format
    context: Context
    steps: list[Step]

    def exact(self, index: int) -> Exact:
        """Return a finite operand's value; zero for a subnormal one where inputs are flushed."""
        datum = self.operands[index]
        x = datum.exact
        if self.context.flush_inputs and datum.number_class in _SUBNORMAL:
            self.steps.append(Special(Rule.FLUSHED_INPUT, Flags.NONE))
            return Exact(x.negative, 0, x.q)
        return x

    def finish(self, exact: Exact, truth: Truth, sticky: bool = False) -> Derivation:
        """Round the exact result, once, and close the derivation."""
        rounded = round_exact(exact, self.format, self.context, sticky)
        self.steps.append(Round(self.format, rounded))
        return self.close(rounded.code, rounded.flags, truth)

    def special(self, rule: Rule, code: int, flags: Flags) -> Derivation:
        """Close the derivation by a rule instead of a rounding."""
        self.steps.append(Special(rule, flags))
        return self.close(code, flags, None)

    def close(self, code: int, flags: Flags, truth: Truth | None) -> Derivation:
        """Close the derivation with this result."""
        result = Datum(self.format, code)
        self.steps.append(Encode(result, truth))
        return Derivation(self.operation, self.operands, self.context, tuple(self.steps), result, flags, self.literals)


def begin(operation: str, values: tuple[Any, ...], format: Format | str | None, context: Context) -> Work:
    """Decode the operands, settle the result's format, and promote where formats differ.

    Data keep their formats; everything else is read, to nearest, into the result's: `format`, else
    what the data have in common, else binary32.
    """
    typed = [value.format for value in values if isinstance(value, Datum)]
    if format is not None:
        fmt = parse_format(format)
    else:
        fmt = common_format(typed) if typed else parse_format(DEFAULT_FORMAT)
    operands: list[Datum] = []
    literals: list[str | None] = []
    for value in values:
        operands.append(value if isinstance(value, Datum) else encode(value, fmt))
        literals.append(value if isinstance(value, str) else None)
    steps: list[Step] = [Decode(datum) for datum in operands]
    steps += [
        Promote(datum, convert(datum, fmt, context).result)
        for datum in operands
        if datum.format is not fmt and datum.format != fmt and holds(fmt, datum.format)
    ]
    texts = tuple(literals) if any(text is not None for text in literals) else ()
    return Work(operation, tuple(operands), texts, fmt, context, steps)


def is_nan(datum: Datum) -> bool:
    """Say whether an operand is a NaN, or a code that counts as one."""
    return datum.number_class in _NAN


def is_infinite(datum: Datum) -> bool:
    """Say whether an operand is ±∞."""
    return datum.number_class in _INFINITE
