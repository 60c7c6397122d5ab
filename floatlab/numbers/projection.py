"""Rounding an exact number into a format: the scalar lane of the kernel, which keeps everything it saw.

The name is P3109's: to *project* is to round to the format's precision and then to settle what
lies beyond its range. Codes count up one by one with the values they name, so the code of the
rounded number is  (quantum − qmin)·2^t + kept + increment: a carry runs into the exponent field
by itself, and overflow is a comparison with the largest code.
"""

from __future__ import annotations

from enum import Enum

from floatlab.errors import UnsupportedError
from floatlab.formats import Format
from floatlab.numbers.exact import GUARD_DIGITS, Exact
from floatlab.numbers.rounding import (
    DEFAULT,
    Absent,
    Context,
    Direction,
    Flags,
    Overflow,
    Tininess,
    draw,
    increments,
    increments_stochastic,
    split,
    stochastic_threshold,
    tail,
)
from floatlab.record import Record

_OVERFLOW = Flags.OVERFLOW | Flags.INEXACT
_UNDERFLOW = Flags.UNDERFLOW | Flags.INEXACT
_REFUSED = "and --absent error (Context(absent='error')) refuses to replace it"


class Tail(Enum):
    """Where the digits that were cut off stand to half a unit of the last digit kept."""

    ZERO = "zero"
    BELOW_HALF = "below half"
    HALF = "half"
    ABOVE_HALF = "above half"


class Rounded(Record):
    """The verdict on one rounding, with everything that led to it.

    `kept`·2^`quantum` is what was kept before the increment; `rest2`/2 of `unit` is what was cut off
    (with `sticky_below`: and something more below that). What lies further than GUARD_DIGITS below
    the cut is one digit at that place. `code` is the result's.
    """

    negative: bool
    precision: int
    quantum: int
    kept: int
    rest2: int
    unit: int
    sticky_below: bool
    odd: bool  # parity of the kept code
    increment: bool
    drawn: int | None  # the random draw of a stochastic rounding
    tiny_before: bool
    tiny_after: bool
    overflowed: bool
    code: int
    flags: Flags

    @property
    def tail(self) -> Tail:
        """Where the cut-off digits stand to half a unit."""
        inexact, half, tie = tail(self.rest2, self.unit, self.sticky_below)
        if not inexact:
            return Tail.ZERO
        return Tail.HALF if tie else Tail.ABOVE_HALF if half else Tail.BELOW_HALF

    @property
    def guard(self) -> bool:
        """The first digit cut off."""
        return self.rest2 >= self.unit

    @property
    def round(self) -> bool:
        """The second digit cut off."""
        return 2 * (self.rest2 - self.unit * self.guard) >= self.unit

    @property
    def sticky(self) -> bool:
        """Whether any digit after the second is nonzero."""
        after_guard = self.rest2 - self.unit * self.guard
        return self.sticky_below or 2 * after_guard != self.unit * self.round

    @property
    def threshold(self) -> int:
        """What a stochastic rounding's draw is compared with: the tail's share of a unit, in 2^-32ths."""
        return int(stochastic_threshold(self.rest2, self.unit))

    @property
    def significand(self) -> int:
        """The kept digits after the increment, before anything happened to the range."""
        return self.kept + self.increment

    @property
    def carried(self) -> bool:
        """Whether the increment ran through all p digits into the next binade."""
        return self.significand.bit_length() > self.precision


def direction_in(format: Format, context: Context) -> Direction:
    """Return the direction that decides in a format: at precision 1 ties may go to the larger power of two (4.3.1).

    >>> from floatlab import parse_format
    >>> direction_in(parse_format("e8m0"), Context())
    <Direction.RNA: 'RNA'>
    """
    if context.rounding is Direction.RNE and not format.trailing_bits and not format.ties_to_even_code:
        return Direction.RNA
    return context.rounding


def round_exact(x: Exact, format: Format, context: Context = DEFAULT, sticky: bool = False, index: int = 0) -> Rounded:
    """Round an exact number into a format in the context's direction; decide the code and the flags.

    `sticky` says that the true magnitude lies above x's by less than one unit of x's last digit; x
    then holds at least one digit below the format's precision and below qmin. `index` numbers the
    draw of a stochastic rounding.

    >>> from floatlab import parse_format
    >>> r = round_exact(Exact(False, 4099, -12), parse_format("fp16"))
    >>> r.kept, r.tail, r.increment, hex(r.code), r.flags
    (1024, <Tail.ABOVE_HALF: 'above half'>, True, '0x3c01', <Flags.INEXACT: 16>)
    """
    t = format.trailing_bits
    direction = context.rounding if t else direction_in(format, context)
    drawn = draw(context.seed, index) if direction is Direction.SR else None
    e = x.c.bit_length() + x.q - 1
    nonzero = x.c != 0 or sticky
    tiny_before = tiny_after = nonzero and e < format.emin
    if nonzero and not tiny_before:
        quantum, lift = e - t, 0
    elif format.subnormals or not nonzero:
        quantum, lift = format.qmin, 0
    else:
        quantum, lift = format.emin, t  # no subnormals: the neighbours are zero and 2^emin
    # The codes below kept's: zero, if there is one, is code 0.
    base = 0 if lift else ((quantum - format.qmin) << t) - (not format.zero)
    kept, rest2, unit, odd, step = _decide(x, quantum, sticky, base, direction, drawn)
    rank = base + ((kept + step) << lift)
    if tiny_before and e == format.emin - 1:
        # Would p digits, were there room below emin, still not reach 2^emin?
        quantum_at_p = e - t
        wide, _, _, _, up = _decide(
            x, quantum_at_p, sticky, ((quantum_at_p - format.qmin) << t) - (not format.zero), direction, drawn
        )
        tiny_after = (wide + up).bit_length() <= format.precision
    tiny = tiny_before if context.tininess is Tininess.BEFORE else tiny_after
    overflowed = rank > format.largest_magnitude
    code, flags = _settle(rank, x.negative, format, context, direction, nonzero, tiny, bool(rest2) or sticky)
    return Rounded(
        x.negative, format.precision, quantum, kept, rest2, unit, sticky and unit > 1, odd, step, drawn,
        tiny_before, tiny_after, overflowed, code, flags,
    )  # fmt: skip


def round_to_quantum(x: Exact, quantum: int, context: Context = DEFAULT, index: int = 0) -> Rounded:
    """Round an exact number to an integer multiple of 2^quantum, with any number of digits (5.9 at quantum 0).

    The verdict's `code` is the multiple, without its sign.

    >>> round_to_quantum(Exact(False, 5, -1), 0).code
    2
    """
    direction = context.rounding
    drawn = draw(context.seed, index) if direction is Direction.SR else None
    kept, rest2, unit, odd, step = _decide(x, quantum, False, 0, direction, drawn)
    flags = Flags.INEXACT if rest2 else Flags.NONE
    digits = max(kept.bit_length(), 1)
    return Rounded(
        x.negative, digits, quantum, kept, rest2, unit, False, odd, step, drawn, False, False, False, kept + step, flags
    )


def _decide(
    x: Exact, quantum: int, sticky: bool, base: int, direction: Direction, drawn: int | None
) -> tuple[int, int, int, bool, bool]:
    """Cut x at the quantum and ask the kernel; return kept, 2·rest, unit, the code's parity and the step."""
    c, shift = x.c, quantum - x.q
    if shift < 1:
        if sticky:
            raise UnsupportedError("a sticky bit must lie below the last digit kept")
        c, shift = c << -shift, 0
    elif shift > c.bit_length() + GUARD_DIGITS:
        # All of it lies so far below the cut that one digit in its place rounds the same way.
        c, shift, sticky = int(c != 0 or sticky), GUARD_DIGITS, False
    kept, rest2, unit = split(c, shift)
    inexact, half, tie = tail(rest2, unit, sticky)
    odd = bool((base + kept) & 1)
    if drawn is not None:
        return kept, rest2, unit, odd, increments_stochastic(rest2, unit, drawn)
    return kept, rest2, unit, odd, bool(increments(direction, x.negative, odd, inexact, half, tie))


def _settle(
    rank: int,
    negative: bool,
    format: Format,
    context: Context,
    direction: Direction,
    nonzero: bool,
    tiny: bool,
    inexact: bool,
) -> tuple[int, Flags]:
    """Turn the rounded number's rank among the codes into a code of the format, and say what that raised."""
    if negative and not format.signed:
        if nonzero and (rank > 0 or not format.zero):
            return absent_code(format, context, False, f"{format.name} is unsigned"), Flags.INVALID
        negative = False
    if tiny and context.flush_results and format.zero:
        return signed_code(format, negative, 0), _UNDERFLOW
    if rank > format.largest_magnitude:
        return _beyond_largest(format, context, direction, negative), _OVERFLOW
    if rank < 0:  # a format without zero: its smallest number is all there is
        if not nonzero and context.absent is Absent.ERROR:
            raise UnsupportedError(f"{format.name} has no zero, {_REFUSED}")
        if not nonzero and context.absent is Absent.NAN and format.has_nan:
            return format.nan_code, Flags.INVALID
        return signed_code(format, negative, 0), _UNDERFLOW
    flags = Flags.NONE if not inexact else _UNDERFLOW if tiny else Flags.INEXACT
    return signed_code(format, negative, rank), flags


def signed_code(format: Format, negative: bool, magnitude: int) -> int:
    """Return the code of a sign and a magnitude; −0 where the format has none is 0.

    >>> from floatlab import parse_format
    >>> hex(signed_code(parse_format("e4m3"), True, 0)), hex(signed_code(parse_format("e4m3fnuz"), True, 0))
    ('0x80', '0x0')
    """
    if magnitude == 0 and format.zero and not format.negative_zero:
        negative = False
    return format.compose(negative, magnitude)


def signed_nan(format: Format, negative: bool) -> int:
    """Return the code of the format's default NaN, with the sign where its NaN has one."""
    return (
        format.compose(negative, format.magnitude(format.nan_code))
        if format.nans and format.signed
        else format.nan_code
    )


def _beyond_largest(format: Format, context: Context, direction: Direction, negative: bool) -> int:
    """Return the code of an overflowed result (7.4): the directions that never step past a number stay."""
    stays = (
        direction in (Direction.RTZ, Direction.RTO)
        or (direction is Direction.RTP and negative)
        or (direction is Direction.RTN and not negative)
    )
    if not stays and context.overflow is Overflow.NATIVE:
        if format.infinities:
            return format.compose(negative, format.infinity_magnitude)
        if format.has_nan:
            return signed_nan(format, negative)
    return format.compose(negative, format.largest_magnitude)


def absent_code(format: Format, context: Context, negative: bool, why: str) -> int:
    """Return what stands for an operand that the format cannot name: its NaN, or what `context.absent` says."""
    if context.absent is Absent.ERROR:
        raise UnsupportedError(f"{why}, {_REFUSED}")
    if context.absent is Absent.ZERO:
        return 0
    if format.has_nan:
        return signed_nan(format, negative)
    return signed_code(format, negative and format.signed, format.largest_magnitude)


def infinity_code(format: Format, context: Context, negative: bool) -> tuple[int, Flags]:
    """Return the code for ±∞ and the flags: ∞ itself, the largest where asked to saturate, or a stand-in.

    >>> from floatlab import Context, parse_format
    >>> infinity_code(parse_format("e4m3"), Context(), False)
    (127, <Flags.INVALID: 1>)
    >>> infinity_code(parse_format("e5m2"), Context(overflow="saturate"), True)
    (251, <Flags.OVERFLOW|INEXACT: 20>)
    """
    if negative and not format.signed:
        return absent_code(format, context, False, f"{format.name} is unsigned"), Flags.INVALID
    if context.overflow is Overflow.SATURATE:
        return format.compose(negative, format.largest_magnitude), _OVERFLOW
    if format.infinities:
        return format.compose(negative, format.infinity_magnitude), Flags.NONE
    return absent_code(format, context, negative, f"{format.name} has no infinity"), Flags.INVALID


def _sized(payload: int) -> str:
    return f"is {payload:#x}" if payload.bit_length() <= 128 else f"has {payload.bit_length():,} bits"


def nan_code(
    format: Format, context: Context, negative: bool, payload: int = 0, signaling: bool = False
) -> tuple[int, Flags]:
    """Return the code of a NaN with this payload, and the flags; a format without NaNs gives a stand-in.

    Raises UnsupportedError where payload or signaling cannot be had.
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
    return format.compose(negative, format.infinity_magnitude + trailing), Flags.NONE
