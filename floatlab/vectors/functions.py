"""TestFloat's functions by name: `f16_add`, `e4m3_mulAdd`, `bf16_to_f32`, `f64_to_i32`, `f32_lt_quiet`.

A line of vectors is the operands and the result in upper-case hexadecimal of their full width, then
the flags in two digits: 01 inexact, 02 underflow, 04 overflow, 08 divide by zero, 10 invalid.
"""

from __future__ import annotations

import re

from floatlab.arith import (
    add,
    divide,
    equal,
    fma,
    from_integer,
    less,
    less_equal,
    multiply,
    remainder,
    round_to_integral,
    sqrt,
    subtract,
    to_integer,
)
from floatlab.errors import FloatlabError, FormatError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers.context import Context, Flags
from floatlab.numbers.datum import Datum
from floatlab.numbers.reading import convert
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # Operand codes and a context in; the result's code and the flags out.
    Run = Callable[[tuple[int, ...], Context], tuple[int, Flags]]

_ARITHMETIC = {"add": (add, 2), "sub": (subtract, 2), "mul": (multiply, 2), "div": (divide, 2), "rem": (remainder, 2),
               "sqrt": (sqrt, 1), "mulAdd": (fma, 3)}  # fmt: skip
_COMPARISONS = {
    "eq": (equal, False),
    "eq_signaling": (equal, True),
    "le": (less_equal, True),
    "le_quiet": (less_equal, False),
    "lt": (less, True),
    "lt_quiet": (less, False),
}
OPERATIONS = (*_ARITHMETIC, *_COMPARISONS, "roundToInt")
# The verb that shows each function's derivation.
VERBS = {"add": "add", "sub": "sub", "mul": "mul", "div": "div", "rem": "rem", "sqrt": "sqrt", "mulAdd": "fma",
         "roundToInt": "rint"}  # fmt: skip

_FLAG_BITS = {1: Flags.INEXACT, 2: Flags.UNDERFLOW, 4: Flags.OVERFLOW, 8: Flags.DIVIDE_BY_ZERO, 16: Flags.INVALID}
FLAGS_OF_BITS = tuple(Flags(sum(flag.value for bit, flag in _FLAG_BITS.items() if bits & bit)) for bits in range(32))
BITS_OF_FLAGS = {flags: bits for bits, flags in enumerate(FLAGS_OF_BITS)}


class Integer(Record):
    """An integer operand or result: two's complement where it is signed."""

    width: int
    signed: bool

    @property
    def name(self) -> str:
        """The name in TestFloat's words."""
        return f"{'' if self.signed else 'u'}i{self.width}"


class Function(Record):
    """A function by TestFloat's name: what it takes, what it gives, and how floatlab computes it."""

    name: str
    operation: str
    operands: tuple[Format | Integer, ...]
    result: Format | Integer | None  # None: a truth value
    run: Run


def _width(kind: Format | Integer | None) -> int:
    return 1 if kind is None else kind.width


def digits(kind: Format | Integer | None) -> int:
    """Return the hexadecimal digits of an operand or a result."""
    return -(-_width(kind) // 4)


def _integer(name: str) -> Integer | None:
    found = re.fullmatch(r"(ui?|i)(8|16|32|64|128)", name)
    return Integer(int(found[2]), found[1] == "i") if found else None


def parse_integer(name: str) -> Integer:
    """Return the integer type that a name means: i8 … i128, ui8 … ui128.

    >>> parse_integer("ui32")
    Integer(width=32, signed=False)
    """
    found = _integer(name.strip().lower())
    if found is None:
        raise FloatlabError(f"an integer type is i or ui and 8, 16, 32, 64 or 128 bits, not {quoted(name)}")
    return found


def _format(name: str, whole: str) -> Format:
    try:
        return parse_format(name)
    except FormatError as error:
        raise FormatError(f"{quoted(whole)}: {error}") from None


def parse_function(name: str) -> Function:
    """Return the function that a name means; raises FloatlabError with the nearest one.

    >>> f = parse_function("f16_add")
    >>> f.run((0x3C00, 0x3C00), Context())
    (16384, <Flags.NONE: 0>)
    """
    left, arrow, right = name.partition("_to_")
    if arrow:
        return _conversion(name, left, right)
    # Formats may have underscores in their names too, and so may operations.
    for operation in sorted(OPERATIONS, key=len, reverse=True):
        if name.lower().endswith(f"_{operation.lower()}"):
            fmt = _format(name[: -len(operation) - 1], name)
            return _in_one_format(name, operation, fmt)
    known = [f"{name.partition('_')[0]}_{operation}" for operation in OPERATIONS]
    raise FloatlabError(
        f"unknown function {quoted(name)}{guess(name, known)} (a format, _, then one of {' '.join(OPERATIONS)};"
        " or f32_to_f16, f32_to_i32, i32_to_f32)"
    )


def _in_one_format(name: str, operation: str, fmt: Format) -> Function:
    if operation in _ARITHMETIC:
        compute, arity = _ARITHMETIC[operation]

        def run(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
            done = compute(*[Datum(fmt, code) for code in codes], fmt, context)  # type: ignore[operator]
            return done.result.code, done.flags

        return Function(name, operation, (fmt,) * arity, fmt, run)
    if operation == "roundToInt":

        def rint(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
            done = round_to_integral(Datum(fmt, codes[0]), fmt, context)
            return done.result.code, done.flags

        return Function(name, operation, (fmt,), fmt, rint)
    predicate, signaling = _COMPARISONS[operation]

    def compare(codes: tuple[int, ...], _: Context) -> tuple[int, Flags]:
        found = predicate(Datum(fmt, codes[0]), Datum(fmt, codes[1]), signaling)
        return int(found.holds), found.flags

    return Function(name, operation, (fmt, fmt), None, compare)


def _conversion(name: str, left: str, right: str) -> Function:
    source, target = _integer(left) or _format(left, name), _integer(right) or _format(right, name)
    if isinstance(source, Integer):
        if isinstance(target, Integer):
            raise FloatlabError(f"{quoted(name)}: from an integer to an integer there is nothing to round")

        def widen(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
            n = codes[0]
            if source.signed and n >> (source.width - 1):
                n -= 1 << source.width
            done = from_integer(n, target, context)
            return done.result.code, done.flags

        return Function(name, "to", (source,), target, widen)
    if isinstance(target, Integer):

        def narrow(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
            done = to_integer(Datum(source, codes[0]), target.width, target.signed, context)
            return done.value & ((1 << target.width) - 1), done.flags

        return Function(name, "to", (source,), target, narrow)

    def run(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
        done = convert(Datum(source, codes[0]), target, context)
        return done.result.code, done.flags

    return Function(name, "to", (source,), target, run)
