"""Between floating-point numbers and integers (IEEE 754-2019 clauses 5.3.1, 5.4.1 and 5.8)."""

from __future__ import annotations

from floatlab.arith.operands import begin, is_infinite, is_nan
from floatlab.arith.specials import propagate
from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers.context import DEFAULT, Context, Flags, NanRule
from floatlab.numbers.datum import Datum
from floatlab.numbers.exact import Exact
from floatlab.numbers.projection import infinity_code
from floatlab.numbers.reading import read
from floatlab.numbers.rounding import Direction, draw, increments, increments_stochastic, split, tail
from floatlab.numbers.steps import Combination, Combine, Derivation, Rule, Special
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_INTEGER_BITS = 4096


class IntegerResult(Record):
    """A conversion to an integer: the integer, and what was raised."""

    operands: tuple[Datum, ...]
    context: Context
    width: int
    signed: bool
    value: int
    flags: Flags


def _integral(x: Exact, context: Context) -> tuple[Exact, bool]:
    """Round to an integer in the context's direction; return it, and whether it differs from x."""
    if x.q >= 0:
        return x, False
    shift = -x.q
    c = x.c
    if shift > c.bit_length() + 64:  # far below one half: any such number rounds alike
        c, shift = int(c != 0), 64
    kept, rest2, unit = split(c, shift)
    inexact, half, tie = tail(rest2, unit, False)
    if context.rounding is Direction.SR:
        step = increments_stochastic(rest2, unit, draw(context.seed))
    else:
        step = increments(context.rounding, x.negative, bool(kept & 1), inexact, half, tie)
    return Exact(x.negative, kept + bool(step), 0), bool(inexact)


def round_to_integral(
    a: Any, format: Format | str | None = None, context: Context = DEFAULT, exact: bool = True
) -> Derivation:
    """Round to an integral value in the same format (5.9); `exact` raises inexact where that changes it.

    >>> round_to_integral("2.5", "fp16").result, round_to_integral("-0.2", "fp16").result
    (Datum(binary16 0x4000 = 2), Datum(binary16 0x8000 = -0))
    """
    work = begin("round_to_integral", (a,), format, context)
    x = work.operands[0]
    if is_nan(x):
        return propagate(work, work.operands)
    if is_infinite(x):
        code, flags = infinity_code(work.format, context, bool(x.sign_bit))
        return work.special(Rule.INFINITE_RESULT, code, flags)
    value = work.exact(0)
    integral, changed = _integral(value, context)
    if not changed:
        work.steps.append(Special(Rule.ALREADY_INTEGRAL, Flags.NONE))
    work.steps.append(Combine(Combination.INTEGER, integral))
    done = work.finish(integral, value)
    return done.replace(flags=done.flags | Flags.INEXACT) if changed and exact else done


def to_integer(
    a: Any,
    width: int = 32,
    signed: bool = True,
    context: Context = DEFAULT,
    exact: bool = True,
    format: Format | str | None = None,
) -> IntegerResult:
    """Convert to an integer of `width` bits (5.8); what does not fit is invalid.

    Out of range and NaN give, by the context's NaN rule: x86's one pattern (the least signed
    integer, or all ones), Arm's nearest integer with 0 for NaN, RISC-V's nearest with the largest
    for NaN. `exact` raises inexact where the value changes.

    >>> to_integer("2.5", format="fp16").value, to_integer("1e9", 16, format="fp32").value
    (2, -32768)
    """
    if not 1 <= width <= MAX_INTEGER_BITS:
        raise UnsupportedError(f"an integer has 1 to {MAX_INTEGER_BITS} bits, not {width}")
    work = begin("to_integer", (a,), format, context)
    x = work.operands[0]
    low, high = (-(1 << (width - 1)), (1 << (width - 1)) - 1) if signed else (0, (1 << width) - 1)
    if is_nan(x) or is_infinite(x):
        sign = 0 if is_nan(x) else -1 if x.sign_bit else 1
        return IntegerResult(work.operands, context, width, signed, _unfit(sign, low, high, context), Flags.INVALID)
    value = work.exact(0)
    if value and value.exponent > width:
        sign = -1 if value.negative else 1
        return IntegerResult(work.operands, context, width, signed, _unfit(sign, low, high, context), Flags.INVALID)
    integral, changed = _integral(value, context)
    n = integral.scaled(0)
    if not low <= n <= high:
        unfit = _unfit(-1 if n < 0 else 1, low, high, context)
        return IntegerResult(work.operands, context, width, signed, unfit, Flags.INVALID)
    flags = Flags.INEXACT if changed and exact else Flags.NONE
    return IntegerResult(work.operands, context, width, signed, n, flags)


def _unfit(sign: int, low: int, high: int, context: Context) -> int:
    """Return what stands for an integer that does not fit (sign ±1) or for a NaN (0)."""
    if context.nan in (NanRule.FIRST, NanRule.X86):
        return low if low else high
    if not sign:
        return 0 if context.nan is NanRule.ARM else high
    return low if sign < 0 else high


def from_integer(n: int, format: Format | str, context: Context = DEFAULT) -> Derivation:
    """Convert an integer (5.4.1), rounded once.

    >>> from_integer(2049, "fp16").result
    Datum(binary16 0x6800 = 2048)
    """
    return read(n, format, context)
