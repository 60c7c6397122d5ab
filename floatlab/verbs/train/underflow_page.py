"""The page of `train underflow`: gradients by exponent against a format's range, and the scales that keep them."""

from __future__ import annotations

from math import floor, log2

from floatlab.page.measures import percent
from floatlab.page.model import Axis, AxisInterval, Block, Gap, Lane, Note, Page, Role, Row, Span, heading, line
from floatlab.page.words import counted, plural
from floatlab.training.underflow import Underflow

_LANES = 24


_FATES = {
    "zero": Role.BAD, "zero or smallest": Role.LOST, "subnormal": Role.LOST, "": Role.CHANGED, "overflow": Role.BAD,
}  # fmt: skip


def underflow_page(found: Underflow, name: str = "") -> Page:
    """Return the page of gradients in a format: their exponents against its range, what is lost, the scale that helps.

    >>> from floatlab.page.layout import to_text
    >>> from floatlab.training import measure_underflow
    >>> print(to_text(underflow_page(measure_underflow([1e-9, -3e-8, 1e-6, 0.25], "fp16"))).splitlines()[0])
      4 gradients in binary16: 1 lost, 25 % of those that are not zero
    """
    fmt, n = found.format, found.nonzero
    share = percent(found.flushed, n) if found.flushed else ""
    lost = f"{found.flushed:,} lost, {share} of those that are not zero" if share else "none lost"
    title = f"{counted(found.total, 'gradient')} in {fmt.name}: {lost}"
    blocks: list[Block] = [heading(title), *([Row("gradients", name)] if name else [])]
    blocks.append(Row("loss scale", "none" if found.scale == 1 else f"× {_power(found.scale)}"))
    blocks.append(Row("range", f"2^{fmt.qmin} to 2^{fmt.emax}, normal from 2^{fmt.emin}"))
    zeros = found.total - found.nonzero - found.not_finite
    if zeros:
        blocks.append(Row("", f"{zeros:,} {plural(zeros, 'is', 'are')} zero already"))
    if found.not_finite:
        words = f"{found.not_finite:,} {plural(found.not_finite, 'is', 'are')} infinite or NaN already"
        blocks.append(Row("", Span(words, Role.BAD)))
    if not n:
        return Page((*blocks, Note("nothing can underflow: every gradient is zero, infinite or NaN")), title)
    scaled = "" if found.scale == 1 else ", once they are scaled"
    blocks += [Gap(), heading(f"How large they are{scaled}: powers of two"), histogram(found), Gap()]
    for label, count, role in (
        ("zero", found.flushed, Role.BAD),
        ("subnormal", found.subnormal, Role.LOST),
        ("overflow", found.overflowed, Role.BAD),
    ):
        words = f"{count:,} of {n:,}, {percent(count, n)}"
        blocks.append(Row(label, Span(words, role if count else Role.PLAIN)))
    return Page((*blocks, *_advice(found)), title)


def _advice(found: Underflow) -> list[Block]:
    least, safe = found.least_scale, found.safe_scale
    if least is None or safe is None:
        return []
    whose = "" if found.scale == 1 else " of what was given"
    ends = dict.fromkeys((_power(least), _power(safe)))
    verdict = f"{'any loss scale from' if len(ends) > 1 else 'a loss scale of'} {' to '.join(ends)} loses none of them"
    if least > safe:
        left = found.flushed_by_safe_scale or 0
        verdict = f"no scale keeps all: {_power(safe)} still loses {left:,}, {percent(left, found.nonzero)}"
    return [
        Row("scales", f"{_power(least)} keeps all{whose} from becoming zero"),
        Row("", f"{_power(safe)} is the largest power of two without overflow"),
        Row("verdict", Span(verdict, Role.BAD if least > safe else Role.GOOD)),
    ]


def _power(x: float) -> str:
    """Return a power of two as such where it is one, with its digits where these are few.

    >>> _power(65536.0), _power(2.0**40), _power(3.0)
    ('65,536', '2^40', '3')
    """
    if x > 0 and log2(x) == floor(log2(x)) and not 1 <= x <= 1 << 24:
        return f"2^{int(log2(x))}"
    return f"{x:,.0f}" if x == floor(x) and x <= 1 << 24 else f"{x:g}"


def histogram(found: Underflow) -> Axis:
    """Return how many gradients have each power of two, once scaled, with what becomes of them in the format."""
    fmt, shift = found.format, floor(log2(found.scale))
    counts = {e + shift: count for e, count in found.histogram}
    low, high = min(counts), max(counts)
    width = -(-(high - low + 1) // _LANES)
    # Bins end where fates change: below half the smallest number, at the normal ones, past the largest.
    edges = sorted({fmt.qmin - 1, fmt.qmin, fmt.emin, fmt.emax + 1})
    bins: dict[tuple[int, int], int] = {}
    for e, count in counts.items():
        below = [edge for edge in edges if edge <= e]
        base = below[-1] if below else edges[0] - width * (1 << 20)
        start = base + (e - base) // width * width
        stop = min([start + width, *(edge for edge in edges if edge > start)])
        bins[start, stop] = bins.get((start, stop), 0) + count
    most = max(bins.values())
    lanes = []
    for (start, stop), count in sorted(bins.items()):
        fate = fate_of(start, found)
        label = line(f"{count:,}", Span(f"  {percent(count, found.nonzero)}", Role.HINT), f"  {fate}" if fate else "")
        role = _FATES[fate]
        bar = AxisInterval(0.0, 0.56 * count / most, label, line(f"{count:,} {fate}"), role, heavy=not fate, ends=False)
        name = f"2^{start}" if stop == start + 1 else f"2^{start} … {stop - 1}"
        lanes.append(Lane(name, (), (bar,)))
    return Axis(tuple(lanes))


def fate_of(exponent: int, found: Underflow) -> str:
    """Say what becomes of numbers with this exponent in the format; nothing where they keep all digits."""
    fmt = found.format
    if exponent < fmt.qmin - 1:
        return "zero"
    if exponent == fmt.qmin - 1:
        return "zero or smallest"
    if exponent < fmt.emin:
        return "subnormal"
    return "overflow" if exponent > fmt.emax else ""
