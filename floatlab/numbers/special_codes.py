"""Codes for results that a format may lack: NaN, ±∞, numbers beyond the largest, negative numbers without a sign."""

from __future__ import annotations

from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers.rounding import (
    Absent,
    Context,
    Direction,
    Flags,
    NanRule,
    Negative,
    Overflow,
)

OVERFLOW = Flags.OVERFLOW | Flags.INEXACT
REFUSED = "and --absent error (Context(absent='error')) refuses to replace it"
_FP8 = 8  # bits


def signed_nan(format: Format, negative: bool) -> int:
    """Return the code of the format's default NaN, with the sign if the format's NaNs have one."""
    return (
        format.compose(negative, format.magnitude(format.nan_code))
        if format.nans and format.signed
        else format.nan_code
    )


def beyond_largest(format: Format, context: Context, direction: Direction, negative: bool) -> int:
    """Return the code of an overflowed result (7.4); in some directions it is the largest number."""
    stays = (
        direction is Direction.RTZ
        or (direction is Direction.RTO and _stays_to_odd(format, context))
        or (direction is Direction.RTP and negative)
        or (direction is Direction.RTN and not negative)
    )
    saturates = format.saturates or context.overflow in (Overflow.SATURATE, Overflow.PROPAGATE)
    if not stays and not saturates:
        if format.infinities:
            return format.compose(negative, format.infinity_magnitude)
        if format.has_nan and context.overflow is not Overflow.NONE:
            return signed_nan(format, negative and context.nan is not NanRule.RISCV_FP8)
    return format.compose(negative, format.largest_magnitude)


def _stays_to_odd(format: Format, context: Context) -> bool:
    """Return whether rounding to odd stops at the largest number; SatNone takes whichever neighbour is odd."""
    if context.overflow is Overflow.NONE:
        return bool(format.largest_magnitude & 1)
    return context.overflow is not Overflow.NONE_NAN


def below_zero(format: Format, context: Context, direction: Direction | None) -> tuple[int, Flags]:
    """Return the code and flags for a negative number in an unsigned format; for −∞, `direction` is None."""
    clamps = context.negative is Negative.ZERO
    if format.is_p3109:  # zero is the least number of its range, and SatNone has no −∞ to give
        saturates = context.overflow in (Overflow.SATURATE, Overflow.PROPAGATE)
        inward = context.overflow is not Overflow.NATIVE and direction in (Direction.RTZ, Direction.RTP)
        clamps = clamps or saturates or inward
    if clamps:
        return 0, OVERFLOW
    return absent_code(format, context, False, f"{format.name} is unsigned"), Flags.INVALID


def absent_code(format: Format, context: Context, negative: bool, why: str) -> int:
    """Return the code that replaces a value which the format lacks: the format's NaN, or as `context.absent` says."""
    if context.absent is Absent.ERROR:
        raise UnsupportedError(f"{why}, {REFUSED}")
    if context.absent is Absent.ZERO:
        return 0
    if format.has_nan:
        return signed_nan(format, negative and context.nan is not NanRule.RISCV_FP8)
    return format.signed_code(negative and format.signed, format.largest_magnitude)


def infinity_code(format: Format, context: Context, negative: bool) -> tuple[int, Flags]:
    """Return the code for ±∞ and the flags: ∞ itself, the largest number if saturating, or `absent_code`.

    >>> from floatlab import Context, parse_format
    >>> infinity_code(parse_format("e4m3"), Context(), False)
    (127, <Flags.INVALID: 1>)
    >>> infinity_code(parse_format("e5m2"), Context(overflow="saturate"), True)
    (251, <Flags.OVERFLOW|INEXACT: 20>)
    """
    if negative and not format.signed:
        if context.negative is not Negative.DROP:
            return below_zero(format, context, None)
        negative = False
    if context.overflow is Overflow.SATURATE:
        return format.compose(negative, format.largest_magnitude), OVERFLOW
    if format.infinities:
        return format.compose(negative, format.infinity_magnitude), Flags.NONE
    if context.overflow is Overflow.NONE or (context.overflow is Overflow.PROPAGATE and format.is_p3109):
        return format.compose(negative, format.largest_magnitude), OVERFLOW
    return absent_code(format, context, negative, f"{format.name} has no infinity"), Flags.INVALID


def _sized(payload: int) -> str:
    return f"is {payload:#x}" if payload.bit_length() <= 128 else f"has {payload.bit_length():,} bits"


def nan_code(
    format: Format, context: Context, negative: bool, payload: int = 0, signaling: bool = False
) -> tuple[int, Flags]:
    """Return the code of a NaN with this payload, and the flags; for a format without NaNs, `absent_code`.

    Raises UnsupportedError if the format cannot represent the payload or signaling NaNs.
    """
    if not format.has_nan:
        if signaling or payload:
            raise UnsupportedError(f"{format.name} has no NaN, so no payload and no signaling NaN either")
        return absent_code(format, context, negative, f"{format.name} has no NaN"), Flags.INVALID
    if not format.ieee_nans:
        if signaling or payload:
            raise UnsupportedError(f"{format.name}'s NaNs have no payload and none is signaling; plain nan works")
        return signed_nan(format, negative), Flags.NONE
    if payload >= format.quiet_bit or (signaling and not payload):
        least = int(signaling)
        raise UnsupportedError(
            f"a {'signaling ' * signaling}NaN of {format.name} takes a payload from {least} to "
            f"0x{format.quiet_bit - 1:x}, and this one {_sized(payload)}"
        )
    trailing = payload | (0 if signaling else format.quiet_bit)
    if context.nan is NanRule.RISCV_FP8 and format.width == _FP8 and not signaling:
        trailing = (1 << format.trailing_bits) - 1
    return format.compose(negative, format.infinity_magnitude + trailing), Flags.NONE
