"""TestFloat's functions by name: `f16_add`, `e4m3_mulAdd`, `bf16_to_f32`, `f64_to_i32`, `f32_lt_quiet`.

A line of vectors has the operands and the result in upper-case hexadecimal of their full width, and then the flags in
two digits: 01 inexact, 02 underflow, 04 overflow, 08 divide by zero, 10 invalid.
"""

from __future__ import annotations

import re

from floatlab.arith import (
    Integer,
    Relation,
    add,
    compare,
    divide,
    fma,
    from_integer,
    multiply,
    parse_integer,
    remainder,
    round_to_integral,
    sqrt,
    subtract,
    to_integer,
)
from floatlab.arith.integers import INTEGERS
from floatlab.errors import FloatlabError, FormatError, guess, quoted
from floatlab.formats import Format, parse_format
from floatlab.numbers.datum import Datum
from floatlab.numbers.reading import convert
from floatlab.numbers.rounding import Context, Flags
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    # arguments: operand codes, context; returns the result's code and the flags
    Run = Callable[[tuple[int, ...], Context], tuple[int, Flags]]

_ARITHMETIC = {"add": (add, 2), "sub": (subtract, 2), "mul": (multiply, 2), "div": (divide, 2), "rem": (remainder, 2),
               "sqrt": (sqrt, 1), "mulAdd": (fma, 3)}  # fmt: skip
# Other names of these operations, for suggestions.
_OTHER_WORDS = {"fma": "mulAdd", "rint": "roundToInt", "subtract": "sub", "divide": "div", "multiply": "mul"}
# For each predicate: the relations that satisfy it, and whether a quiet NaN raises invalid.
COMPARISONS = {
    "eq": ((Relation.EQUAL,), False),
    "eq_signaling": ((Relation.EQUAL,), True),
    "le": ((Relation.LESS, Relation.EQUAL), True),
    "le_quiet": ((Relation.LESS, Relation.EQUAL), False),
    "lt": ((Relation.LESS,), True),
    "lt_quiet": ((Relation.LESS,), False),
}
OPERATIONS = (*_ARITHMETIC, *COMPARISONS, "roundToInt")

_FLAG_BITS = {1: Flags.INEXACT, 2: Flags.UNDERFLOW, 4: Flags.OVERFLOW, 8: Flags.DIVIDE_BY_ZERO, 16: Flags.INVALID}
FLAGS_OF_BITS = tuple(Flags(sum(flag.value for bit, flag in _FLAG_BITS.items() if bits & bit)) for bits in range(32))
BITS_OF_FLAGS = {flags: bits for bits, flags in enumerate(FLAGS_OF_BITS)}


class Function(Record):
    """One of TestFloat's functions: its name, the types of its operands and its result, and floatlab's computation."""

    name: str
    operation: str
    operands: tuple[Format | Integer, ...]
    result: Format | Integer | None  # None: a truth value
    run: Run
    exact: bool = True  # whether rounding to an integer raises inexact


def _width(kind: Format | Integer | None) -> int:
    return 1 if kind is None else kind.width


def digits(kind: Format | Integer | None) -> int:
    """Return the number of hexadecimal digits of an operand or a result."""
    return -(-_width(kind) // 4)


def _integer(name: str) -> Integer | None:
    """Return the integer type of a name such as `ui32`; None for other names."""
    return INTEGERS.get(name.lower())


def _format(name: str, whole: str) -> Format:
    try:
        if re.fullmatch(r"ui?\d+|i\d+", name):
            raise FormatError(
                f"the integer type must be {parse_integer(name).name}, as in TestFloat, not {quoted(name)}"
            )
        return parse_format(name)
    except FloatlabError as error:
        raise FormatError(f"{quoted(whole)}: {error}") from None


def parse_function(name: str, exact: bool = True) -> Function:
    """Return the TestFloat function that has this name.

    If `exact` is false, rounding to an integer does not raise the flag *inexact*. TestFloat does this by default; here,
    `exact` is true by default. Raises FloatlabError for an unknown name; the message suggests a similar name, if there
    is one.

    >>> f = parse_function("f16_add")
    >>> f.run((0x3C00, 0x3C00), Context())
    (16384, <Flags.NONE: 0>)
    """
    left, arrow, right = name.lower().partition("_to_")
    if arrow:
        return _conversion(name, left, right, exact)
    # Names of formats may contain underscores, and so may operations.
    for operation in sorted(OPERATIONS, key=len, reverse=True):
        if name.lower().endswith(f"_{operation.lower()}"):
            fmt = _format(name[: -len(operation) - 1], name)
            return _in_one_format(name, operation, fmt, exact)
    raise FloatlabError(
        f"unknown function {quoted(name)}{_nearest(name)} (a format, _, then one of {' '.join(OPERATIONS)};"
        " or f32_to_f16, f32_to_i32, i32_to_f32)"
    )


def _nearest(name: str) -> str:
    """Return a suggestion such as `; did you mean 'f32_add'?` for an unknown name; an empty string if there is none."""
    word = name[:64].lower()
    for operation in OPERATIONS:
        plain = operation.lower()
        if word == plain:
            return f"; did you mean 'f32_{operation}'?"
        if word.endswith(plain) and _is_format(word.removesuffix(plain)):
            return f"; did you mean '{word.removesuffix(plain)}_{operation}'?"
    for place in (place for place, character in enumerate(word) if character == "_"):
        if _is_format(word[:place]):
            known = {operation.lower(): operation for operation in OPERATIONS} | _OTHER_WORDS
            near = guess(word[place + 1 :], list(known)).partition("'")[2].rstrip("'?")
            return f"; did you mean '{word[:place]}_{known[near]}'?" if near else ""
    return ""


def _is_format(name: str) -> bool:
    try:
        parse_format(name)
    except FormatError:
        return False
    return True


def _in_one_format(name: str, operation: str, fmt: Format, exact: bool) -> Function:
    if operation in _ARITHMETIC:
        compute, arity = _ARITHMETIC[operation]

        def run(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
            done = compute(*[Datum(fmt, code) for code in codes], fmt, context)  # type: ignore[operator]
            return done.result.code, done.flags

        return Function(name, operation, (fmt,) * arity, fmt, run)
    if operation == "roundToInt":

        def rint(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
            done = round_to_integral(Datum(fmt, codes[0]), fmt, context, exact)
            return done.result.code, done.flags

        return Function(name, operation, (fmt,), fmt, rint, exact)
    relations, signaling = COMPARISONS[operation]

    def holds(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
        found = compare(Datum(fmt, codes[0]), Datum(fmt, codes[1]), fmt, context, signaling)
        return int(found.relation in relations), found.flags

    return Function(name, operation, (fmt, fmt), None, holds)


def _conversion(name: str, left: str, right: str, exact: bool) -> Function:
    if not left or not right:
        raise FloatlabError(f"{quoted(name)}: a conversion names its source and its target, such as f32_to_f16")
    source, target = _integer(left) or _format(left, name), _integer(right) or _format(right, name)
    if isinstance(source, Integer):
        if isinstance(target, Integer):
            raise FloatlabError(f"{quoted(name)}: from an integer to an integer there is nothing to round")

        def widen(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
            done = from_integer(source.value(codes[0]), target, context)
            return done.result.code, done.flags

        return Function(name, "to", (source,), target, widen)
    if isinstance(target, Integer):

        def narrow(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
            done = to_integer(Datum(source, codes[0]), target.width, target.signed, context=context, exact=exact)
            return done.code, done.flags

        return Function(name, "to", (source,), target, narrow, exact)

    def run(codes: tuple[int, ...], context: Context) -> tuple[int, Flags]:
        done = convert(Datum(source, codes[0]), target, context)
        return done.result.code, done.flags

    return Function(name, "to", (source,), target, run)
