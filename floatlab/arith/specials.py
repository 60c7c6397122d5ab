"""Infinite results, NaN operands and invalid operations (IEEE 754-2019 clauses 6.1, 6.2, 7.2), each with its rule."""

from __future__ import annotations

from floatlab.formats import Format
from floatlab.numbers.datum import Datum, NumberClass, quieted
from floatlab.numbers.derivation import Derivation, Rule
from floatlab.numbers.projection import infinity_code, nan_code
from floatlab.numbers.rounding import Context, Flags, NanRule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.arith.operands import DerivationBuilder


def default_nan(format: Format, context: Context) -> int:
    """Return the code of the default NaN: quiet, with payload 0, and negative only under the NaN rule `x86`.

    Under the NaN rule `riscv-fp8`, the default NaN of 8-bit formats such as e5m2 is 0x7f. In a format without NaNs,
    return the code that `context.absent` gives in place of a NaN.
    """
    if format.has_nan and not format.ieee_nans:
        return format.signed_nan(False)
    return nan_code(format, context, negative=context.nan is NanRule.X86)[0]


def invalid(work: DerivationBuilder, rule: Rule) -> Derivation:
    """Finish an invalid operation: return the default NaN and raise invalid (7.2)."""
    return work.special(rule, default_nan(work.format, work.context), Flags.INVALID)


def infinite(work: DerivationBuilder, negative: bool, also: Flags = Flags.NONE) -> Derivation:
    """Finish an operation whose exact result is ±∞ (6.1); `also` has the flags that the operands raised."""
    code, flags = infinity_code(work.format, work.context, negative)
    return work.special(Rule.INFINITE_RESULT, code, flags | also)


def _payload(datum: Datum) -> int:
    """Return a NaN's payload; 0 for a number that replaces a NaN in a format without NaNs."""
    return datum.payload if datum.is_nan else 0


def _preferred_by_x87(first: Datum, second: Datum, first_is_quiet: bool) -> Datum:
    """Return the NaN that an x87 instruction keeps (Intel SDM volume 1, table 4-7).

    A quiet NaN is preferred to a signaling NaN. Of two NaNs of the same kind, the NaN with the larger significand is
    preferred. If the significands are equal, the positive NaN is preferred.
    """
    second_is_quiet = not second.is_signaling
    if first_is_quiet != second_is_quiet:
        return first if first_is_quiet else second
    width = max(first.format.trailing_bits, second.format.trailing_bits)
    a, b = (_payload(datum) << (width - datum.format.trailing_bits) for datum in (first, second))
    if a != b:
        return first if a > b else second
    return second if first.sign_bit else first


def _chosen(first: Datum | None, second: Datum, context: Context, first_is_quiet: bool, x87: bool) -> Datum:
    """Return which of two NaN operands propagates. If `first` is None, `second` propagates.

    `first_is_quiet` is true if `first` is the result of an earlier choice, which has made it quiet.
    """
    if first is None:
        return second
    first_is_quiet = first_is_quiet or not first.is_signaling
    if x87:
        return _preferred_by_x87(first, second, first_is_quiet)
    if context.nan is NanRule.ARM and second.is_signaling and first_is_quiet:
        return second
    return first


def propagate(work: DerivationBuilder, operands: tuple[Datum, ...], start: int | None = None) -> Derivation:
    """Finish an operation with NaN operands. One of them propagates and becomes quiet (6.2.3).

    The rules `first` and `x86` (as in SSE) take the first NaN. If an operand or the result is x87 extended, `x86`
    follows the x87 instructions. `arm` (as in Arm VFPv2) takes the first signaling NaN or, without one, the first NaN.
    Of three operands, the x87 instructions and `arm` first choose between the NaNs of the first two, and then between
    the chosen NaN, which is now quiet, and the NaN of the third. `riscv` and `riscv-fp8` always give the default NaN.
    If an operand is an unsupported code, all rules give the default NaN. `start` is the code of a NaN from an earlier
    part of the operation; the caller adds the flags of that part.
    """
    flags = Flags.NONE
    chosen: Datum | None = None if start is None else Datum(work.format, start)
    unsupported = False
    formats = (work.format, *(datum.format for datum in operands))
    x87 = work.context.nan is NanRule.X86 and any(fmt.explicit_integer_bit for fmt in formats)
    for position, datum in enumerate(operands):
        kind = datum.number_class
        if kind is NumberClass.UNSUPPORTED:
            unsupported = True
        if datum.is_signaling or kind is NumberClass.UNSUPPORTED:
            flags = Flags.INVALID
        if datum.is_nan:
            # From the third operand on, the NaN chosen so far is the quiet result of an earlier pair.
            chosen = _chosen(chosen, datum, work.context, position > 1 or start is not None, x87)
    rule = Rule.SIGNALING_OPERAND if flags else Rule.NAN_OPERAND
    if unsupported:
        return work.special(Rule.UNSUPPORTED_OPERAND, default_nan(work.format, work.context), Flags.INVALID)
    if chosen is None:
        return work.special(rule, default_nan(work.format, work.context), flags)
    code, raised = quieted(chosen, work.format, work.context)
    return work.special(rule, code, flags | raised if raised else flags)
