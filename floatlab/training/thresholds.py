"""The smallest update that moves a weight w: the distance from w to an end of the interval of reals that round to w."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from floatlab.arrays.recurrences import RecurrenceStage
from floatlab.formats import Format
from floatlab.numbers import Context, Datum, Direction, encode
from floatlab.numbers.intervals import preimage
from floatlab.record import Record
from floatlab.training.optimizers import Program, is_drawn


class Threshold(Record):
    """The smallest update that moves a weight in one direction.

    The numbers are magnitudes of updates. Updates larger than `bound` move the weight; an update equal to `bound` moves
    it if `included` is true. `bound` is None if no update moves the weight. `least` is the smallest number of the
    update's format that moves the weight. `least` is None if no number of this format moves the weight. With stochastic
    rounding, an update larger than `bound` moves the weight for some draws, and an update larger than `certain` moves
    it for all draws. An update equal to `certain` may leave the weight unchanged if the sum is rounded before the draw.
    Without stochastic rounding, `certain` is None. If `bound` is 0 and `included` is true, the weight can move even
    without an update, because the weight is not a number of the accumulator's format.
    """

    bound: Fraction | None
    included: bool
    least: Datum | None
    certain: Fraction | None = None


def smallest_move(weight: Datum, program: Program, up: bool) -> Threshold:
    """Return the smallest update that moves the stored weight up or down.

    >>> from floatlab.training import SGD, Setup
    >>> program = Program.of(Setup("fp16"), SGD("0.1"))
    >>> one = encode(1, "fp16")
    >>> [(found.bound, found.included) for found in (smallest_move(one, program, up) for up in (True, False))]
    [(Fraction(1, 2048), False), (Fraction(1, 4096), False)]
    """
    rounding = program.roundings[::-1]
    if not _stays(weight, rounding):
        return Threshold(Fraction(0), True, _least(Fraction(0), False, _update_format(program)))
    reach = _edge(weight, rounding, up, False)
    if reach is None:
        return Threshold(None, False, None)
    bound, closed = abs(reach[0] - weight.exact.as_fraction()), reach[1]
    certain = _edge(weight, rounding, up, True) if any(is_drawn(each) for each in rounding) else None
    at_most = None if certain is None else abs(certain[0] - weight.exact.as_fraction())
    return Threshold(bound, not closed, _least(bound, not closed, _update_format(program)), at_most)


def _update_format(program: Program) -> Format:
    """Return the format of the number that is added to w or subtracted from w."""
    source = program.roundings[0].operands[1]
    made = next((each.format for each in reversed(program.stages) if each.to == source), program.setup.grads)
    assert isinstance(made, Format)
    return made


def _stays(weight: Datum, rounding: Sequence[RecurrenceStage]) -> bool:
    """Return whether the roundings leave w unchanged if the update is 0, for all possible stochastic draws."""
    now = weight
    for stage in reversed(rounding):
        assert isinstance(stage.format, Format)
        rounded = encode(now.exact, stage.format, stage.context)
        if not rounded.is_finite or (is_drawn(stage) and rounded.exact != now.exact):
            return False
        now = rounded
    return now.exact == weight.exact


def _edge(weight: Datum, rounding: Sequence[RecurrenceStage], up: bool, perhaps: bool) -> tuple[Fraction, bool] | None:
    """Return one end of the interval of reals that round to w, and whether the interval includes this end.

    The end is the upper one if `up` is true, otherwise the lower one. Return None if this end is infinite.

    `rounding` has the stages that round w, the last stage first. With stochastic rounding, the interval contains the
    reals that round to w for all draws; if `perhaps` is true, it contains those that round to w for some draws.
    """
    found = _end(weight, rounding[0].context, up, perhaps)
    for stage in rounding[1:]:  # go back to the last number of the accumulator's format that is converted to w
        if found is None:
            break
        assert isinstance(stage.format, Format)
        found = _end(_last_within(*found, stage.format, up), stage.context, up, perhaps)
    return found


def _end(datum: Datum, context: Context, up: bool, perhaps: bool) -> tuple[Fraction, bool] | None:
    """Return one end of the interval of reals that one rounding turns into `datum`.

    Also return whether the interval includes this end. If no real rounds to `datum`, the end is its value.

    `up`, `perhaps` and the result None have the same meaning as in `_edge`. +0 and −0 count as the same datum.
    """
    if context.rounding.is_stochastic and not perhaps:
        following = datum.next_up if up else datum.next_down
        if not following.is_finite or following == datum:
            return None
        value, neighbour = (each.exact.as_fraction() for each in (datum, following))
        return value + (neighbour - value) / (1 << 32), False
    zeros = [
        Datum(datum.format, datum.format.compose(sign, 0)) for sign in (False, True)[: 1 + datum.format.negative_zero]
    ]
    ends = []
    for each in [datum] if datum.exact else zeros:
        interval = preimage(each, context)
        if interval is None:
            continue
        end, closed = (interval.high, interval.high_closed) if up else (interval.low, interval.low_closed)
        if end is None:
            return None
        ends.append((end.as_fraction(), closed))
    if not ends:
        return datum.exact.as_fraction(), True
    return max(ends) if up else min(ends, key=lambda end: (end[0], not end[1]))


def _last_within(reach: Fraction, closed: bool, format: Format, up: bool) -> Datum:
    """Return the number of a format that lies inside an interval and is nearest to the end `reach` of this interval.

    `closed` says whether `reach` belongs to the interval. `up` says whether `reach` is the upper end.
    """
    toward = Context(Direction.RTN if up else Direction.RTP)
    found = encode(reach, format, toward)
    if not closed and found.exact.as_fraction() == reach:
        return found.next_down if up else found.next_up
    return found


def _least(bound: Fraction, included: bool, format: Format) -> Datum | None:
    """Return the smallest number of a format above `bound`; None if there is no such number.

    If `included` is true, the number may also be equal to `bound`.
    """
    found = encode(bound, format, Context(Direction.RTP))
    if not found.is_finite or found.exact.as_fraction() < bound:  # a format without infinities saturates
        return None
    if found.exact.as_fraction() == bound and not included:
        further = found.next_up
        return further if further.is_finite and further != found else None
    return found
