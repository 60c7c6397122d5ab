"""Reads the operands of an operation, and promotes them to a format; the builder of derivations records the steps."""

from __future__ import annotations

from enum import Enum
from functools import lru_cache

from floatlab.errors import FormatError, UnsupportedError
from floatlab.formats import Format, parse_format
from floatlab.numbers.datum import Datum, NumberClass
from floatlab.numbers.derivation import Decode, Derivation, Encode, Promote, Round, Rule, Special
from floatlab.numbers.exact import Exact, Literal
from floatlab.numbers.projection import given_by_table, round_exact
from floatlab.numbers.reading import convert, encode, read
from floatlab.numbers.rounding import DEFAULT, Context, Direction, Flags, as_context
from floatlab.numbers.scalars import own_datum, whole_number

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

    from floatlab.numbers.derivation import Step, Truth
    from floatlab.numbers.rounding import AnyContext

# Operands of several formats are promoted to the first of these that contains all of them.
PROMOTIONS = ("binary16", "bfloat16", "binary32", "binary64", "binary128")
DEFAULT_FORMAT = "binary32"
_FULL = DEFAULT.precision
_TRIED = 16  # formats of up to this width are compared with a table format by trying all their numbers

CONTROLLED = ("add", "subtract", "multiply", "divide", "sqrt")  # operations that precision control applies to

_NAN = (NumberClass.QUIET_NAN, NumberClass.SIGNALING_NAN, NumberClass.UNSUPPORTED)


class Lack(Enum):
    """A reason why one format does not contain all numbers of another."""

    DIGITS = "digits"
    LARGE = "large numbers"
    SMALL = "small numbers"
    STEPS = "fine steps near zero"
    ZERO = "zero"
    SIGN = "negative numbers"
    ENTRIES = "some numbers"  # the reason if a format is given by a table


def lacks(wide: Format, narrow: Format) -> tuple[Lack, ...]:
    """Return the reasons why `wide` does not contain all finite numbers of `narrow`; empty if `wide` contains them.

    >>> lacks(parse_format("bf16"), parse_format("fp16"))
    (<Lack.DIGITS: 'digits'>,)
    """
    if wide.is_table or (given_by_table(narrow) and narrow.is_irrational):
        return () if _has_all(wide, narrow) else (Lack.ENTRIES,)
    small = narrow.smallest < wide.smallest
    found = {
        Lack.DIGITS: wide.precision < narrow.precision,
        Lack.LARGE: wide.largest < narrow.largest,
        Lack.SMALL: small,
        # Near zero, the numbers of `narrow` have finer steps than the subnormal numbers of `wide`.
        Lack.STEPS: not small and wide.subnormals and wide.qmin > narrow.qmin,
        Lack.ZERO: narrow.zero and not wide.zero,
        Lack.SIGN: narrow.signed and not wide.signed,
    }
    return tuple(lack for lack, is_so in found.items() if is_so)


@lru_cache(maxsize=256)
def _has_all(wide: Format, narrow: Format) -> bool:
    """Return whether `wide` has every finite number of `narrow`. All numbers of `narrow` are tried.

    A format of over 16 bits has too many numbers to try. The result is then true only if both formats are equal.
    """
    if wide == narrow or narrow.width > _TRIED:
        return wide == narrow
    data = (Datum(narrow, code) for code in range(1 << narrow.width))
    return not any(datum.is_finite and (datum.symbol or round_exact(datum.exact, wide).flags) for datum in data)


@lru_cache(maxsize=1024)
def holds(wide: Format, narrow: Format) -> bool:
    """Return whether `wide` contains every number and special value of `narrow`.

    >>> holds(parse_format("fp32"), parse_format("bf16")), holds(parse_format("fp16"), parse_format("bf16"))
    (True, False)
    """
    if wide == narrow:
        return True
    special = (wide.infinities or not narrow.infinities) and (wide.has_nan or not narrow.has_nan)
    return special and (wide.negative_zero or not narrow.negative_zero) and not lacks(wide, narrow)


def common_format(formats: list[Format]) -> Format:
    """Return the format to which operands of these formats are promoted; raises FormatError if there is no such format.

    >>> common_format([parse_format("fp16"), parse_format("bf16")]).name
    'binary32'
    """
    if all(each == formats[0] for each in formats):
        return formats[0]
    for name in PROMOTIONS:
        if all(holds(parse_format(name), each) for each in formats):
            return parse_format(name)
    names = ", ".join(dict.fromkeys(each.name for each in formats))
    raise FormatError(f"no promotion format holds {names}: name the result's format with -f (format= in Python)")


def at_precision(precision: int) -> Format:
    """Return the format of x87's results under precision control: `precision` digits, and the exponents of x87.

    >>> at_precision(53).name, at_precision(53).emin
    ('e15m52', -16382)
    """
    return parse_format(f"e15m{precision - 1}")


class DerivationBuilder:
    """Builds the derivation of one operation: it collects the steps, and `close` makes a Derivation of them."""

    __slots__ = ("context", "format", "literals", "operands", "operation", "steps", "values")

    def __init__(
        self,
        operation: str,
        operands: tuple[Datum, ...],
        literals: tuple[str | None, ...],
        format: Format,
        context: Context,
        steps: list[Step],
    ) -> None:
        """Raise UnsupportedError for formats with irrational numbers, and for unsupported precision control.

        The formats with irrational numbers are the logarithmic takums. Precision control is supported only in the
        format x87. It applies only to the operations in `CONTROLLED`, so other operations raise no error for it.
        """
        self.operation, self.operands, self.literals = operation, operands, literals
        self.format, self.context, self.steps = format, context, steps
        for each in (format, *[datum.format for datum in operands]):
            if each.is_irrational:
                raise UnsupportedError(
                    f"{operation}: the numbers of {each.name} are powers of √e, so no exact result exists"
                )
        self.values = [datum.finite_value for datum in operands]
        if context.precision != _FULL and operation in CONTROLLED and not format.explicit_integer_bit:
            raise UnsupportedError(
                f"{operation}: precision {context.precision} is x87's precision control, and {format.name} has none: "
                "name the format x87"
            )

    @property
    def is_finite(self) -> bool:
        """Whether every operand is a finite number: no NaN, infinity, or code that is treated as a NaN."""
        for value in self.values:  # noqa: SIM110 (a generator would take as long as a whole addition)
            if value is None:
                return False
        return True

    def exact(self, index: int) -> Exact:
        """Return a finite operand's value. If inputs are flushed, a subnormal operand gives zero."""
        x = self.values[index]
        if x is None:
            raise UnsupportedError(f"{self.operands[index]!r} has no exact value")
        if self.context.flush_inputs and self.operands[index].is_subnormal:
            self.steps.append(Special(Rule.FLUSHED_INPUT, Flags.NONE))
            return Exact(x.negative, 0, x.q)
        return x

    def finish(self, exact: Exact, truth: Truth, sticky: bool = False) -> Derivation:
        """Round the exact result once, and finish the derivation.

        `exact` is this result. If `sticky` is true, `exact` is truncated: nonzero bits below its last bit were cut off,
        so the true result is slightly larger in magnitude. The error of the rounded result is measured from `truth`.
        """
        if self.context.precision != _FULL and self.operation in CONTROLLED:
            narrow = at_precision(self.context.precision)
            rounded = round_exact(exact, narrow, self.context, sticky)
            self.steps.append(Round(narrow, rounded))
            wide = convert(Datum(narrow, rounded.code), self.format).result  # exactly
            return self.close(wide.code, rounded.flags, truth)
        rounded = round_exact(exact, self.format, self.context, sticky)
        self.steps.append(Round(self.format, rounded))
        return self.close(rounded.code, rounded.flags, truth)

    def special(self, rule: Rule, code: int, flags: Flags) -> Derivation:
        """Finish the derivation: the result is a code that `rule` gives, so nothing is rounded."""
        self.steps.append(Special(rule, flags))
        return self.close(code, flags, None)

    def close(self, code: int, flags: Flags, truth: Truth | None) -> Derivation:
        """Finish the derivation with this code as the result."""
        result = Datum(self.format, code)
        self.steps.append(Encode(result, truth))
        return Derivation(self.operation, self.operands, self.context, tuple(self.steps), result, flags, self.literals)


def reading_context(context: Context) -> Context:
    """Return the context for reading operands. As in compilers, operands are rounded to nearest, and not flushed."""
    if context.rounding is Direction.RNE and not context.flush_results:
        return context
    return context.replace(rounding=Direction.RNE, flush_results=False)


def begin(
    operation: str, values: tuple[object, ...], format: Format | str | None, context: AnyContext
) -> DerivationBuilder:
    """Read the operands, determine the result's format, and return the builder of the derivation.

    The first steps of the derivation decode the operands. Operands of other formats are promoted if the result's format
    contains their formats. Datum objects, derivations, Python floats and NumPy numbers keep their formats. Text,
    fractions and decimals are rounded to nearest into the result's format. The result's format is `format` if it is
    given. Otherwise, the result has the common format of the operands that have a format, or binary32 if no operand has
    a format. Raises UnsupportedError if the result's format cannot represent an integer operand.
    """
    context = as_context(context)
    fmt = None if format is None else parse_format(format)
    if _share_format(values, fmt):
        return DerivationBuilder(operation, values, (), values[0].format, context, [Decode(datum) for datum in values])
    given = [in_own_format(value) for value in values]
    if fmt is None:
        typed = [value.format for value in given if isinstance(value, Datum)]
        fmt = common_format(typed) if typed else parse_format(DEFAULT_FORMAT)
    operands: list[Datum] = []
    literals: list[str | None] = []
    for value, datum in zip(values, given, strict=True):
        if isinstance(datum, Datum):
            operands.append(datum)
            literals.append(_typed(value))
        else:
            operands.append(_read_operand(datum, fmt, context))
            literals.append(datum if isinstance(datum, str) else None)
    steps: list[Step] = [Decode(datum) for datum in operands]
    steps += [
        Promote(datum, convert(datum, fmt, context).result)
        for datum in operands
        if datum.format is not fmt and datum.format != fmt and holds(fmt, datum.format)
    ]
    texts = tuple(literals) if any(text is not None for text in literals) else ()
    return DerivationBuilder(operation, tuple(operands), texts, fmt, context, steps)


def _share_format(values: tuple[object, ...], format: Format | None) -> TypeGuard[tuple[Datum, ...]]:
    """Return whether all operands are Datum objects of the result's format, so that no operand must be promoted."""
    shared = format
    for value in values:
        if type(value) is not Datum or (shared is not None and value.format is not shared):
            return False
        shared = value.format
    return True


def in_own_format(value: object) -> object:
    """Return an operand as a Datum if it has a format; return text, integers and fractions unchanged."""
    if isinstance(value, Datum):
        return value
    if isinstance(value, Derivation):
        return value.result
    own = own_datum(value)
    return value if own is None else own


def _read_operand(value: object, format: Format, context: Context) -> Datum:
    n = whole_number(value)
    return encode(value, format, reading_context(context)) if n is None else exact_integer(n, format)


def exact_integer(n: int, format: Format) -> Datum:
    """Return an integer as a number of a format; raises UnsupportedError if the format does not contain it.

    >>> exact_integer(2048, parse_format("fp16"))
    Datum(binary16 0x6800 = 2048)
    """
    found = encode(n, format)
    if found.is_finite and found.exact == Exact(n < 0, abs(n), 0):
        return found
    short = abs(n) < 1 << 128
    shown, again = (str(n), str(n)) if short else (f"of {n.bit_length():,} bits", "n")
    raise UnsupportedError(
        f"the integer {shown} is not a number of {format.name}: round it explicitly, as in floatlab.encode({again}, "
        f"'{format.name}'), or ask for a format that holds it"
    )


def _typed(value: object) -> str | None:
    """If the value is a derivation that began with a text (as from `read`), return this text; otherwise None."""
    if isinstance(value, Derivation) and isinstance(value.operands[0], Literal):
        return value.operands[0].text
    return None


def readings(
    operands: tuple[Datum, ...], literals: tuple[str | None, ...], context: Context
) -> tuple[Derivation | None, ...]:
    """Return, for each operand that was given as text, the derivation of reading this text; None for other operands.

    >>> from floatlab import add
    >>> d = add("0.1", "1", "fp16")
    >>> [float(each.error_ulps) for each in readings(d.operands, d.literals, d.context)]
    [-0.4, 0.0]
    """
    texts = literals or (None,) * len(operands)
    return tuple(
        None if text is None else read(text, datum.format, reading_context(context))
        for datum, text in zip(operands, texts, strict=False)  # scaleB also has a literal for n
    )


def counts_as_nan(datum: Datum) -> bool:
    """Return whether an operand is a NaN, or a code that operations treat as a NaN."""
    return datum.number_class in _NAN
