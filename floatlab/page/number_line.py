"""The number line around a datum, as a picture and as text: its neighbours, and the reals that round to each."""

from __future__ import annotations

from floatlab.numbers import DEFAULT, Context, Datum, Derivation, Direction, Exact, Ratio, Read, Tail, round_exact
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.numbers.derivation import EXACT_ERROR_BITS, Combine, Divide, Root
from floatlab.numbers.intervals import Interval, preimage
from floatlab.numbers.printing import decimal_within, exact_decimal
from floatlab.page.model import Axis, AxisInterval, Block, Gap, Lane, Line, Mark, Role, Row, Span, line
from floatlab.page.words import GLANCE, PAGE_DIGITS, brief, operand_text, plain_error

_SIDE = 2  # neighbours on each side
_TYPED = 24  # at most this many characters of the typed number are shown
_TAIL = 3  # number of last digits of a code that are shown if the whole codes do not fit
_GAP = 14  # texts longer than this are shortened: to 2^q, or by leaving out digits in the middle
_WITH_LITERALS = ("add", "sub", "mul", "fma")  # operations whose exact result is a binary number
_UNSEEN = 64  # binary digits beyond the format's precision; further digits would not be visible on the line
_LEFT, _RIGHT = -1.0, 2.0  # positions for numbers beyond the ends of the line


def number_line(datum: Datum, context: Context = DEFAULT, typed: Exact | None = None, text: str = "") -> Axis | None:
    """Draw a finite datum among its neighbours, with the reals that round to each of them. NaN and ∞ give None.

    `typed` is the number that was entered, and `text` is its label. Raises UnsupportedError for irrational numbers.

    >>> from floatlab import encode
    >>> from floatlab.page.text_layout import to_text
    >>> from floatlab.page.model import Page
    >>> print(to_text(Page((number_line(encode("1", "e4m3")),)), 72), end="")
      number line  ────○──────○───────●──────────────○──────────────○───────
                    0.875  0.9375     1            1.125          1.25
      RNE lands on ├ 0x36 ┼ 0x37 ─┼━━ 0x38 ━━┼──── 0x39 ────┼──── 0x3a ────┤
    """
    if not datum.is_finite:
        return None
    fmt = datum.format
    datum = Datum(fmt, round_exact(datum.exact, fmt).code)  # the canonical encoding
    below, above = _chain(datum, up=False), _chain(datum, up=True)
    low, high = _limit(below, up=False), _limit(above, up=True)

    def place(x: Exact | None, otherwise: float = 0.0) -> float:
        return otherwise if x is None else _place(x, low, high)

    marks = [Mark(place(datum.exact), "●", *_names(datum, Role.VALUE), role=Role.CHANGED, priority=1)]
    for chain in (below, above):
        marks += [Mark(place(each.exact), "○", *_names(each), priority=-i) for i, each in enumerate(chain[1:])]
    if not fmt.zero and not low:
        marks.append(Mark(0.0, "┼", line(Span("0", Role.HINT)), role=Role.RULER, priority=-_SIDE))
    if typed is not None:
        shown = text if len(text) <= _TYPED else f"{text[: _TYPED - 1]}…"
        marks.append(Mark(place(typed), "▼", line(shown), line(text[:8], "…"), Role.LOST, pointer=True))
    spans: list[AxisInterval] = []
    for each in _landing([*reversed(below), *above[1:]], context):
        interval = preimage(each, context)
        if interval is None or (interval.low is not None and interval.low == interval.high):
            continue
        stretches = (interval, -interval) if interval.mirrored else (interval,)
        spans += [_bin(each, place(x.low, _LEFT), place(x.high, _RIGHT), each == datum) for x in stretches]
    lanes = Lane("number line", tuple(marks)), Lane(f"{context.rounding.value} lands on", (), tuple(spans))
    return Axis(lanes, (place(_limit(below[:2], up=False)), place(_limit(above[:2], up=True))))


def scale_rows(derivation: Derivation) -> list[Block]:
    """Return the number line around a result, and rows of distances; the list is empty for NaN and ∞.

    The distances are those from the result to the next numbers, and from the typed number to the numbers around it.
    """
    rows = _scale_rows(derivation, _typed(derivation), operand_text(derivation), "typed")
    return [Gap(), *rows] if rows else []


def result_rows(derivation: Derivation) -> list[Block]:
    """Return the number line around the result of an operation, and rows of distances.

    The distances are those from the result to the next numbers, and from the exact result to the numbers around it.
    """
    found = None
    for step in derivation.steps:
        match step:
            case Combine(_, exact) | Divide(exact, _) | Root(exact, _):
                found = exact
    return _scale_rows(derivation, found, "exact result", "exact")


def exact_literal(derivation: Derivation) -> str:
    """Return the exact result of a sum, difference, product or fma as text; empty for zero and for other operations.

    >>> from floatlab import arith
    >>> exact_literal(arith.add("1.5", "2^-20", "fp16"))
    '0x1800010p-24'
    """
    exact = next((step.exact for step in reversed(derivation.steps) if isinstance(step, Combine)), None)
    # A literal for zero would not give the sign of the result, which the operands and the rounding direction determine.
    if derivation.operation not in _WITH_LITERALS or exact is None or exact == 0:
        return ""
    return f"{'-' * exact.negative}0x{exact.c:x}p{exact.q}"


def _scale_rows(derivation: Derivation, exact: Exact | None, text: str, name: str) -> list[Block]:
    """Return a number line around a result with the number `exact` marked, and rows of distances.

    `name` is the word for the marked number, and `text` its label.
    """
    datum, context = derivation.result, derivation.context
    axis = number_line(datum, context, exact, text)
    if axis is None:
        return []
    rows: list[Block] = [axis]
    pointed = [mark.place for mark in axis.lanes[0].marks if mark.pointer and not 0 <= mark.place <= 1]
    if pointed:
        side = "left" if pointed[0] < 0 else "right"
        rows.append(Row("", Span(f"the {name} number is beyond the {side} end of this line", Role.HINT)))
    rows.append(Row("distances", *(_distance(datum, context, up) for up in (False, True))))
    if offsets := _offsets(derivation):
        rows.append(Row(f"from {name}", *offsets))
    return rows


def _step(datum: Datum, up: bool) -> Datum | None:
    """Return the next finite number upward or downward; None if there is none."""
    following = datum.next_up if up else datum.next_down
    return following if following.is_finite and following.exact != datum.exact else None


def _chain(datum: Datum, up: bool) -> list[Datum]:
    """Return the datum and its neighbours on one side, the nearest first."""
    chain = [datum]
    while len(chain) <= _SIDE and (following := _step(chain[-1], up)) is not None:
        chain.append(following)
    return chain


def _limit(chain: list[Datum], up: bool) -> Exact:
    """Return an end of the line: halfway between the last neighbour and the next number.

    If no number follows the last neighbour, the end is just past this neighbour, or at 0 in a format without zero.
    """
    last = chain[-1]
    if (following := _step(last, up)) is not None:
        total = last.exact + following.exact
        return Exact(total.negative, total.c, total.q - 1)
    if not up and not last.format.signed:  # there is no smaller number: end at 0, or just below it
        return Exact(True, 1, last.ulp.q - 1) if last.format.zero else Exact(False, 0, 0)
    return last.exact + Exact(not up, 1, last.ulp.q + 1)


def _place(x: Exact, low: Exact, high: Exact) -> float:
    """Return the relative position of x between `low` and `high`: in [0, 1], or _LEFT or _RIGHT if x is outside."""
    if x < low or high < x:
        return _LEFT if x < low else _RIGHT
    q = min(low.q, high.q) - _UNSEEN
    if x.q < q:
        x = Exact(x.negative, x.c >> q - x.q, q)
    return (x.scaled(q) - low.scaled(q)) / (high.scaled(q) - low.scaled(q))


def _bin(datum: Datum, start: float, end: float, mine: bool) -> AxisInterval:
    """Return the interval of the number line that rounds to a datum, labelled with the datum's code."""
    code = hexadecimal_code(datum)
    name = line(Span(code if datum.is_finite else shortest(datum), Role.CODE))
    short = line(Span(f"…{code[-_TAIL:]}", Role.CODE)) if datum.is_finite and len(code) > _TAIL + 2 else ()
    return AxisInterval(start, end, name, short, Role.CHANGED if mine else Role.PLAIN, heavy=mine)


def _names(datum: Datum, role: Role = Role.PLAIN) -> tuple[Line, Line]:
    """Return a long and a short label of a number; the short one has only the first and last digits of a long value."""
    text = brief(datum)
    digits, e, exponent = text.removeprefix("≈ ").partition("e")
    ends = f"{digits[:6]}…{digits[-4:]}{e}{exponent}" if len(text) > _GAP and len(digits) > 11 else text
    return line(Span(text if len(text) <= _TYPED else ends, role)), line(Span(ends, role))


def _landing(data: list[Datum], context: Context) -> list[Datum]:
    """Return all `Datum` objects to which a number near `data` may round.

    These objects are `data`, the next number at each end, both zeros if one of these numbers is 0, and the results of
    overflow at the ends of the range.
    """
    fmt = data[0].format
    around = [_step(data[0], up=False), *data, _step(data[-1], up=True)]
    found: list[Datum] = []
    for each in around:
        if each is not None:
            zeros = fmt.negative_zero and not each.exact
            found += [Datum(fmt, fmt.compose(sign, 0)) for sign in (True, False)] if zeros else [each]
    found += [_overflow(end, context) for end in (data[0], data[-1]) if end.magnitude == fmt.largest_magnitude]
    return list(dict.fromkeys(found))


def _overflow(end: Datum, context: Context) -> Datum:
    """Return the datum to which numbers beyond `end`, an end of the range, are rounded."""
    past = Exact(bool(end.sign_bit), 1, end.exact.exponent + 2)
    return Datum(end.format, round_exact(past, end.format, context).code)


def _typed(derivation: Derivation) -> Exact | None:
    """Return the typed number with at least as many digits as the line can show; None for ∞ and NaN."""
    operand = derivation.operands[0]
    if isinstance(operand, Datum):
        return operand.bounds(derivation.result.format.precision + _UNSEEN)[0] if operand.is_finite else None
    return next((step.exact for step in derivation.steps if isinstance(step, Read)), None)


def _distance(datum: Datum, context: Context, up: bool) -> Line:
    """Return text with the distance to the next number up or down.

    At the end of the range, the text says which numbers overflow, or that all numbers beyond the end are rounded to it.
    For the smallest number of an unsigned format, it says that there is none below.
    """
    if (following := _step(datum, up)) is not None:
        gap = abs(following.exact - datum.exact).normalized()
        decimal = exact_decimal(gap, GLANCE) if gap.c != 1 else decimal_within(gap, _GAP) or f"2^{gap.q}"
        ulps = gap * Exact(False, 1, -datum.ulp.q)
        n, d = ulps.as_integer_ratio()
        if datum.format.is_table:
            return line(f"{'+' if up else '−'}{decimal}")
        return line(f"{'+' if up else '−'}{decimal}, {n}{f'/{d}' if d > 1 else ''} ulp")
    fmt = datum.format
    if datum.magnitude != (fmt.lowest_magnitude if datum.sign_bit else fmt.largest_magnitude):
        return line(Span("none below", Role.HINT))
    past = _overflow(datum, context)
    interval = None if past.is_finite else preimage(past, context)
    if interval is None:
        return line(Span(f"all numbers {'above' if up else 'below'} land here", Role.HINT))
    if not up and interval.mirrored:
        interval = -interval
    edge, closed = (interval.low, interval.low_closed) if up else (interval.high, interval.high_closed)
    assert edge is not None
    shown = exact_decimal(edge, GLANCE)
    where = f"from {shown} {'on' if up else 'down'}" if closed else f"past {shown}"
    return line(f"{shortest(past)} {where}")


def _offsets(derivation: Derivation) -> list[Line]:
    """Return the distances from the exact value to the format's numbers below and above it, in this order.

    The list is empty if the result is exact, or if the error is a fraction too long to be computed exactly. It has only
    the distance to the result if the exact value is not between the result and the next number.
    """
    truth, datum = derivation.truth, derivation.result
    if isinstance(truth, Ratio) and not truth.is_short(EXACT_ERROR_BITS):
        return []
    error = derivation.error
    if not error:
        return []
    offsets = [(datum, error)]
    if (other := _step(datum, up=error < 0)) is not None:
        offset = error + (other.exact - datum.exact).as_fraction()
        if (offset < 0) != (error < 0):  # after flushing, both numbers may be on one side
            offsets.append((other, offset))
    offsets.sort(key=lambda pair: pair[1])
    return [line(Span(hexadecimal_code(each), Role.CODE), f" {plain_error(offset)}") for each, offset in offsets]


def interval_rows(datum: Datum, context: Context) -> list[Block]:
    """Return rows with the interval of reals that round to this datum, and the ties that round to it."""
    interval = preimage(datum, context)
    name = context.rounding.value
    if interval is None:
        return [Row("interval", f"no real number rounds here ({name})")]
    low, high = interval.low, interval.high
    if low is not None and low == high:
        return [Row("interval", f"only {exact_decimal(low, PAGE_DIGITS)} itself ({name})")]
    left = "−∞" if low is None else exact_decimal(low, PAGE_DIGITS)
    right = "+∞" if high is None else exact_decimal(high, PAGE_DIGITS)
    signs = ["≤" if closed else "<" for closed in (interval.low_closed, interval.high_closed)]
    x = "|x|" if interval.mirrored else "x"
    rows: list[Block] = [Row("interval", f"{left} {signs[0]} {x} {signs[1]} {right}")]
    if context.rounding.has_few_bits or (context.rounding.is_stochastic and context.draw is not None):
        return [
            *rows,
            Row("", "no x outside rounds here; for x inside, it depends on the draw"),
        ]
    if context.rounding.is_stochastic:
        words = "every x in the interval may round to this number, more probably the nearer it is"
        return [*rows, Row("", f"{words}; the number itself always does")]
    if context.rounding in (Direction.RNE, Direction.RNA):
        words = _ties_in_words(interval, datum)
        rows += [Row("", words)] if words else []
    return rows


def _ties_in_words(interval: Interval, datum: Datum) -> str:
    """Return text that says which of the ties at the ends of the interval round to this datum."""
    ends = (("lower", interval.low, interval.low_closed), ("upper", interval.high, interval.high_closed))
    ties = {
        name: closed
        for name, end, closed in ends
        if end is not None and round_exact(end, datum.format).tail is Tail.HALF
    }
    if not ties:
        return ""
    if len(ties) == 1:
        return "the tie comes here" if any(ties.values()) else "the tie goes to the neighbour"
    if len(set(ties.values())) == 1:
        return "both ties come here" if any(ties.values()) else "both ties go to the neighbours"
    here = "lower" if ties["lower"] else "upper"
    return f"the {here} tie comes here, the other goes to the neighbour"
