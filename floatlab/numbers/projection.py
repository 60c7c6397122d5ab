"""Rounds an exact number into a format with the kernel of `rounding.py`, and records all intermediate values.

P3109 calls this *projection*: to round to the format's precision, and then to handle numbers beyond its range.
The module computes with magnitudes (codes without signs), because neighbouring values have consecutive magnitudes. Let
t be `trailing_bits`, and 2^qmin the smallest subnormal. In a format with zero and subnormals, the truncated number
kept·2^quantum has the code (quantum − qmin)·2^t + kept, without the sign. Rounding away from zero adds 1 to this code.
A carry then propagates into the exponent field; a result above the largest magnitude overflows.
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
    NanRule,
    Negative,
    Overflow,
    Tininess,
    compared_draw,
    draw,
    draw_rule,
    increments,
    increments_stochastic,
    split,
    stochastic_threshold,
    tail,
)
from floatlab.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeGuard

    from floatlab.formats.table_format import TableFormat

_OVERFLOW = Flags.OVERFLOW | Flags.INEXACT
_UNDERFLOW = Flags.UNDERFLOW | Flags.INEXACT
_FP8 = 8  # bits
_REFUSED = "and --absent error (Context(absent='error')) refuses to replace it"


def given_by_table(format: Format) -> TypeGuard[TableFormat]:
    """Return whether a format is given by a table of numbers, as posits are, instead of by its parameters."""
    return format.is_table


class Tail(Enum):
    """The discarded digits compared with half a unit of the last digit kept."""

    ZERO = "zero"
    BELOW_HALF = "below half"
    HALF = "half"
    ABOVE_HALF = "above half"


class Between(Record):
    """The two entries of a table format that enclose a number, as codes, and the rounding boundary between them.

    `upper` has the larger magnitude. If the number is an entry, or beyond the last entry, both codes are equal, and
    `boundary` is None. Otherwise, `boundary` is a magnitude, or None if the boundary is irrational.
    """

    lower: int
    upper: int
    boundary: Exact | None


class Rounded(Record):
    """The result of one rounding, with all intermediate values.

    `kept`·2^`quantum` is the truncated absolute value, before the increment. The discarded fraction of the last place
    is `rest2`/(2·`unit`). If `sticky_below` is true, the fraction is above this quotient q, and below q + 1/`unit`. A
    nonzero absolute value below 2^(`quantum` − GUARD_DIGITS − 1) is recorded as 2^(`quantum` − GUARD_DIGITS).

    In a format given by a table, `between` has the entries around the number. There, `kept`, `rest2` and `unit` are the
    fields `rank`, `rest2` and `unit` of the number's place in the table (`formats.table_format.Place`).
    """

    negative: bool
    precision: int
    quantum: int
    kept: int
    rest2: int
    unit: int
    sticky_below: bool
    odd: bool  # whether the kept code is odd
    increment: bool
    drawn: int | None  # the random draw of a stochastic rounding: 32 bits, or `Context.random_bits`
    tiny_before: bool
    tiny_after: bool
    overflowed: bool
    code: int
    flags: Flags
    between: Between | None = None  # in a format given by a table

    @property
    def tail(self) -> Tail:
        """The discarded digits compared with half a unit."""
        inexact, half, tie = tail(self.rest2, self.unit, self.sticky_below)
        if not inexact:
            return Tail.ZERO
        return Tail.HALF if tie else Tail.ABOVE_HALF if half else Tail.BELOW_HALF

    @property
    def guard(self) -> bool:
        """The first discarded digit."""
        return self.rest2 >= self.unit

    @property
    def round(self) -> bool:
        """The second discarded digit."""
        return 2 * (self.rest2 - self.unit * self.guard) >= self.unit

    @property
    def sticky(self) -> bool:
        """Whether any discarded digit after the second is nonzero."""
        after_guard = self.rest2 - self.unit * self.guard
        return self.sticky_below or 2 * after_guard != self.unit * self.round

    @property
    def threshold(self) -> int:
        """The discarded fraction times 2^32, truncated. SR rounds away from 0 if its draw is below this threshold."""
        return int(stochastic_threshold(self.rest2, self.unit))

    @property
    def significand(self) -> int:
        """The kept digits after the increment, before overflow and underflow are handled."""
        return self.kept + self.increment

    @property
    def carried(self) -> bool:
        """Whether the increment carried through all kept digits into the next binade."""
        return self.between is None and self.significand.bit_length() > self.precision


def direction_in(format: Format, context: Context) -> Direction:
    """Return the direction that applies in a format: RNA replaces RNE if the format's ties go away from zero (4.3.1).

    >>> from floatlab import parse_format
    >>> direction_in(parse_format("e8m0"), Context())
    <Direction.RNA: 'RNA'>
    """
    if context.rounding is Direction.RNE and format.ties_away:
        return Direction.RNA
    return context.rounding


def round_exact(x: Exact, format: Format, context: Context = DEFAULT, sticky: bool = False, index: int = 0) -> Rounded:
    """Round an exact number into a format in the context's direction; determine the code and the flags.

    If `sticky`, the true magnitude exceeds |x| by less than one unit of x's last digit. Then, UnsupportedError is
    raised if this digit is not below the result's last place, or if |x| is in the binade below 2^emin and x.c has at
    most `precision` bits, too few to test tininess. Table formats allow both. `index` selects the random draw.

    >>> from floatlab import parse_format
    >>> r = round_exact(Exact(False, 4099, -12), parse_format("fp16"))
    >>> r.kept, r.tail, r.increment, hex(r.code), r.flags
    (1024, <Tail.ABOVE_HALF: 'above half'>, True, '0x3c01', <Flags.INEXACT: 16>)
    """
    if given_by_table(format):
        return _round_to_table(x, format, context, sticky, index)
    t = format.trailing_bits
    direction = context.rounding if t else direction_in(format, context)
    drawn, compared = _drawn(context, index) if direction.is_stochastic else (None, None)
    if x.negative and not format.signed and context.negative is Negative.DROP:
        x = -x
    e = x.c.bit_length() + x.q - 1
    nonzero = x.c != 0 or sticky
    tiny_before = tiny_after = nonzero and e < format.emin
    if nonzero and not tiny_before:
        quantum, lift = e - t, 0
    elif format.subnormals or not nonzero:
        quantum, lift = format.qmin, 0
    else:
        quantum, lift = format.emin, t  # no subnormals: the neighbours are zero and 2^emin
    # base + kept is the magnitude of the truncated number. In a format without zero, −1 represents zero.
    base = 0 if lift else ((quantum - format.qmin) << t) - (not format.zero)
    kept, rest2, unit, odd, step = _decide(x, quantum, sticky, base, direction, compared)
    rank = base + ((kept + step) << lift)
    if tiny_before and e == format.emin - 1:
        # Is the number still below 2^emin after rounding to p digits with an unbounded exponent?
        quantum_at_p = e - t
        wide, _, _, _, up = _decide(
            x, quantum_at_p, sticky, ((quantum_at_p - format.qmin) << t) - (not format.zero), direction, compared
        )
        tiny_after = (wide + up).bit_length() <= format.precision
    tiny = tiny_before if context.tininess is Tininess.BEFORE else tiny_after
    overflowed = rank > format.largest_magnitude
    code, flags = _settle(rank, x.negative, format, context, direction, nonzero, tiny, bool(rest2) or sticky)
    return Rounded(
        x.negative, format.precision, quantum, kept, rest2, unit, sticky and unit > 1, odd, step, drawn,
        tiny_before, tiny_after, overflowed, code, flags,
    )  # fmt: skip


def _round_to_table(x: Exact, format: TableFormat, context: Context, sticky: bool, index: int) -> Rounded:
    """Round into a format given by a table: the kernel decides between two entries, not multiples of a quantum."""
    direction, negative = direction_in(format, context), x.negative
    drawn, compared = _drawn(context, index) if direction.is_stochastic else (None, None)
    place = format.place((x.c, x.q), negative, linear=drawn is not None)
    inexact, half, tie = tail(place.rest2, place.unit, sticky)
    odd = format.counts_as_odd(place.rank, negative) if direction is Direction.RNE else bool(place.rank & 1)
    step = not place.beyond and (
        increments_stochastic(place.rest2, place.unit, compared, direction.has_few_bits, sticky)
        if compared is not None
        else bool(increments(direction, negative, odd, inexact, half, tie))
    )
    rank, most = place.rank + step, format.most(negative)
    nonzero = x.c != 0 or sticky
    # Tininess is the same before and after rounding: the number is below the smallest normal number.
    tiny = nonzero and place.rank < format.smallest_normal_magnitude
    code, flags = _settle(rank, negative, format, context, direction, nonzero, tiny, inexact)
    lower, upper = (format.compose(negative, min(each, most)) for each in (place.rank, place.rank + inexact))
    boundary = None if place.boundary is None else Exact(False, *place.boundary)
    return Rounded(
        negative, format.precision, 0, place.rank, place.rest2, place.unit, sticky, odd, step, drawn,
        tiny, tiny, rank > format.largest_magnitude, code, flags, Between(lower, upper, boundary),
    )  # fmt: skip


def round_to_quantum(x: Exact, quantum: int, context: Context = DEFAULT, index: int = 0) -> Rounded:
    """Round an exact number to a multiple of 2^quantum, with any number of digits (clause 5.9 if quantum is 0).

    In the result, `code` is the magnitude in units of 2^quantum: the integer without its sign if quantum is 0.

    >>> round_to_quantum(Exact(False, 5, -1), 0).code
    2
    """
    direction = context.rounding
    drawn, compared = _drawn(context, index) if direction.is_stochastic else (None, None)
    kept, rest2, unit, odd, step = _decide(x, quantum, False, 0, direction, compared)
    flags = Flags.INEXACT if rest2 else Flags.NONE
    digits = max(kept.bit_length(), 1)
    return Rounded(
        x.negative, digits, quantum, kept, rest2, unit, False, odd, step, drawn, False, False, False, kept + step, flags
    )


def _drawn(context: Context, index: int) -> tuple[int, int]:
    """Return the draw of a stochastic rounding, and the number that is compared with the threshold."""
    bits, shift = draw(context.seed, index), 0 if context.rounding is Direction.SR else 32 - context.random_bits
    drawn = bits >> shift if context.draw is None else context.draw
    return drawn, compared_draw(draw_rule(context), bits)


def _decide(
    x: Exact, quantum: int, sticky: bool, base: int, direction: Direction, compared: int | None
) -> tuple[int, int, int, bool, bool]:
    """Split x at 2^quantum; return kept, 2·rest, unit, whether the magnitude base + kept is odd, and the increment."""
    c, shift = x.c, quantum - x.q
    if shift < 1:
        if sticky:
            raise UnsupportedError("a sticky bit must lie below the last digit kept")
        c, shift = c << -shift, 0
    elif shift > c.bit_length() + GUARD_DIGITS:
        # x is far below the last place; a single digit GUARD_DIGITS below it rounds the same way.
        c, shift, sticky = int(c != 0 or sticky), GUARD_DIGITS, False
    kept, rest2, unit = split(c, shift)
    inexact, half, tie = tail(rest2, unit, sticky)
    odd = bool((base + kept) & 1)
    if compared is not None:
        return kept, rest2, unit, odd, increments_stochastic(rest2, unit, compared, direction.has_few_bits, sticky)
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
    """Return code and flags of a rounded number; `rank` is the number's code without sign, before any overflow."""
    if negative and not format.signed:
        if nonzero and (rank > 0 or not format.zero):
            return _below_zero(format, context, direction)
        negative = False
    if tiny and context.flush_results and format.zero:
        return format.signed_code(negative, 0), _UNDERFLOW
    if rank > format.largest_magnitude:
        return _beyond_largest(format, context, direction, negative), _OVERFLOW
    if rank < 0:  # the format has no zero: return the smallest number or, for an exact 0, perhaps NaN or an error
        if not nonzero and context.absent is Absent.ERROR:
            raise UnsupportedError(f"{format.name} has no zero, {_REFUSED}")
        if not nonzero and context.absent is Absent.NAN and format.has_nan:
            return format.nan_code, Flags.INVALID
        return format.signed_code(negative, 0), _UNDERFLOW
    flags = Flags.NONE if not inexact else _UNDERFLOW if tiny else Flags.INEXACT
    return format.signed_code(negative, rank), flags


def _beyond_largest(format: Format, context: Context, direction: Direction, negative: bool) -> int:
    """Return the code of an overflowed result (7.4); in some directions, this is the code of the largest number."""
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
            return format.signed_nan(negative and context.nan is not NanRule.RISCV_FP8)
    return format.compose(negative, format.largest_magnitude)


def _stays_to_odd(format: Format, context: Context) -> bool:
    """Return whether an overflow in the direction RTO gives the largest number instead of ∞ or NaN."""
    if context.overflow is Overflow.NONE:
        return bool(format.largest_magnitude & 1)
    return context.overflow is not Overflow.NONE_NAN


def _below_zero(format: Format, context: Context, direction: Direction | None) -> tuple[int, Flags]:
    """Return the code and flags for a negative number in an unsigned format. For −∞, `direction` is None."""
    clamps = context.negative is Negative.ZERO
    if format.is_p3109:  # in P3109, a number below 0 overflows
        saturates = context.overflow in (Overflow.SATURATE, Overflow.PROPAGATE)
        inward = context.overflow is not Overflow.NATIVE and direction in (Direction.RTZ, Direction.RTP)
        clamps = clamps or saturates or inward
    if clamps:
        return 0, _OVERFLOW
    return absent_code(format, context, False, f"{format.name} is unsigned"), Flags.INVALID


def absent_code(format: Format, context: Context, negative: bool, why: str) -> int:
    """Return the code that `context.absent` gives for a value that the format lacks; errors begin with `why`."""
    if context.absent is Absent.ERROR:
        raise UnsupportedError(f"{why}, {_REFUSED}")
    if context.absent is Absent.ZERO:
        return 0
    if format.has_nan:
        return format.signed_nan(negative and context.nan is not NanRule.RISCV_FP8)
    return format.signed_code(negative and format.signed, format.largest_magnitude)


def infinity_code(format: Format, context: Context, negative: bool) -> tuple[int, Flags]:
    """Return the code and flags for ±∞: ∞, the largest number (see `context.overflow`), or what `absent_code` gives.

    >>> from floatlab import Context, parse_format
    >>> infinity_code(parse_format("e4m3"), Context(), False)
    (127, <Flags.INVALID: 1>)
    >>> infinity_code(parse_format("e5m2"), Context(overflow="saturate"), True)
    (251, <Flags.OVERFLOW|INEXACT: 20>)
    """
    if negative and not format.signed:
        if context.negative is not Negative.DROP:
            return _below_zero(format, context, None)
        negative = False
    if context.overflow is Overflow.SATURATE:
        return format.compose(negative, format.largest_magnitude), _OVERFLOW
    if format.infinities:
        return format.compose(negative, format.infinity_magnitude), Flags.NONE
    if context.overflow is Overflow.NONE or (context.overflow is Overflow.PROPAGATE and format.is_p3109):
        return format.compose(negative, format.largest_magnitude), _OVERFLOW
    return absent_code(format, context, negative, f"{format.name} has no infinity"), Flags.INVALID


def _sized(payload: int) -> str:
    return f"is {payload:#x}" if payload.bit_length() <= 128 else f"has {payload.bit_length():,} bits"


def nan_code(
    format: Format, context: Context, negative: bool, payload: int = 0, signaling: bool = False
) -> tuple[int, Flags]:
    """Return the code of a NaN with this payload, and the flags; if the format has no NaNs, use `absent_code`.

    Raises UnsupportedError if the format cannot represent the payload or signaling NaNs.
    """
    if not format.has_nan:
        if signaling or payload:
            raise UnsupportedError(f"{format.name} has no NaN, so no payload and no signaling NaN either")
        return absent_code(format, context, negative, f"{format.name} has no NaN"), Flags.INVALID
    if not format.ieee_nans:
        if signaling or payload:
            raise UnsupportedError(f"{format.name}'s NaNs have no payload and none is signaling; plain nan works")
        return format.signed_nan(negative), Flags.NONE
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
