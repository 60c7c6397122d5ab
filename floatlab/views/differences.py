"""The page of `compare`: the verdict in a sentence, then how much, how often, where, and the worst elements."""

from __future__ import annotations

from math import inf, isfinite

from floatlab.arith import holds
from floatlab.numbers import Datum
from floatlab.numbers.datum import hexadecimal_code
from floatlab.numbers.decimals import shortest
from floatlab.views.page import Axis, Block, Gap, Lane, Line, Note, Page, Role, Row, Run, Span, Table, line
from floatlab.views.words import counted, listed, plural

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.arrays.errors import Differences, Element, Errors, Operand
    from floatlab.arrays.structure import Extent, Structure
    from floatlab.arrays.tolerances import Extreme, Tolerance

_FEW = 0.05  # of an axis: so small a part of its indices is counted out
_LARGE = 1 << 20  # ulps from here on are said in powers of two


def differences_page(found: Differences) -> Page:
    """Return the page of two arrays compared.

    >>> import numpy as np
    >>> from floatlab.arrays.errors import compare
    >>> from floatlab.render.text import to_text
    >>> x = np.float32([[1, 2], [3, 4]])
    >>> print(to_text(differences_page(compare(x, x + np.float32([0, 1e-6])))).partition("equal")[0].rstrip())
      actual and expected: within tolerance
      actual       float32, 2 × 2
      expected     float32, 2 × 2
      verdict      close: the worst of 4 elements uses 4.77 % of what rtol 1e-05 and
                   atol 1e-08 allow
    """
    title = f"{found.actual.name} and {found.expected.name}: {_summary(found)}"
    blocks: list[Block] = [
        Note(line(Run(title, Role.HEADING))),
        *_operand_rows("actual", found.actual),
        *_operand_rows("expected", found.expected),
        Row("verdict", _verdict(found)),
    ]
    if found.shape is not None and found.size:
        blocks += _amounts(found)
        blocks += _histogram(found)
        blocks += _near_enough(found)
        blocks += _where(found)
        blocks += _worst(found)
    return Page(tuple(blocks), title)


def _summary(found: Differences) -> str:
    if found.shape is None:
        return "shapes that do not go together"
    if found.equal_bits == found.size and not found.failing:
        return "the same bits"
    return "within tolerance" if found.within else "beyond tolerance"


def _operand_rows(label: str, operand: Operand) -> list[Block]:
    words = line(Run(operand.kind, Role.VALUE), f", {_shape(operand.shape)}")
    return [Row(label, words) if operand.name == label else Row(label, line(operand.name), words)]


def _shape(shape: tuple[int, ...]) -> str:
    return " × ".join(f"{n:,}" for n in shape) if shape else "one number"


def verdict_words(found: Differences) -> str:
    """Return the verdict in one sentence without an end."""
    near = found.allclose
    allowed = f"rtol {number(near.rtol)} and atol {number(near.atol)}"
    if found.shape is None:
        return (
            f"not close: the shapes {_shape(found.actual.shape)} and {_shape(found.expected.shape)} do not go together"
        )
    if not found.size:
        return "close: there are no elements"
    if near.failing:
        worst = "no tolerance would do" if _hopeless(near) else f"the worst is {_times(near.share)}"
        share = percent(near.failing, found.size)
        of = f"{near.failing:,} of {counted(found.size, 'element')} ({share}) {plural(near.failing, 'lies', 'lie')}"
        return f"not close: {of} beyond {allowed}; {worst}"
    if found.equal_bits == found.size:
        return f"the same: all {counted(found.size, 'element')} have the same bits"
    if near.share is None or not near.share.value:
        return f"close: all {counted(found.size, 'element')} are equal numbers"
    used = f"{100 * near.share.value:.3g} %"
    return f"close: the worst of {counted(found.size, 'element')} uses {used} of what {allowed} allow"


def _verdict(found: Differences) -> Line:
    return line(Run(verdict_words(found), Role.GOOD if found.within else Role.BAD))


def number(x: float | None) -> str:
    """Return a measure in a few digits."""
    return "none" if x is None else f"{x:.3g}"


def upward(x: float) -> str:
    """Return a tolerance in three digits, none of them rounded down: what is shown would pass as well.

    >>> upward(3.3301e-05), upward(0.25)
    ('3.34e-05', '0.25')
    """
    text = f"{x:.3g}"
    if float(text) >= x or not isfinite(x):
        return text
    digits, _, exponent = f"{x:.2e}".partition("e")
    return f"{float(f'{round(float(digits) + 0.01, 2)}e{exponent}'):.3g}"


def percent(part: int, whole: int) -> str:
    """Return a share in percent, never rounded to nothing or to all.

    >>> percent(1, 3), percent(1, 10**9), percent(10**9 - 1, 10**9), percent(4, 4)
    ('33.3 %', '< 0.01 %', '> 99.9 %', '100 %')
    """
    if part in (0, whole):
        return "100 %" if part else "0 %"
    share = 100 * part / whole
    if share < 0.01:
        return "< 0.01 %"
    return "> 99.9 %" if share >= 99.95 else f"{share:.3g} %"


def _hopeless(near: Tolerance) -> bool:
    return near.least_atol is None and near.least_rtol is None


def _times(share: Extreme | None) -> str:
    if share is None or share.value == inf:
        return "beyond all measure, since nothing is allowed there"
    return f"{_multiple(share.value)} times what is allowed"


def _multiple(x: float) -> str:
    return f"{x:,.0f}" if 1000 <= x < _LARGE else f"{x:.3g}"


def _at(index: tuple[int, ...]) -> str:
    if not index:
        return ""
    return f" at {index[0]}" if len(index) == 1 else f" at ({', '.join(map(str, index))})"


def _amounts(found: Differences) -> list[Block]:
    """Say how much is the same, and how large errors are."""
    rows: list[Block] = []
    if found.equal_bits is not None:
        rows.append(
            Row("equal bits", line(f"{found.equal_bits:,} of {found.size:,}, {percent(found.equal_bits, found.size)}"))
        )
    if found.equal_bits == found.size and not found.failing:
        return rows
    if found.equal != found.equal_bits:
        rows.append(Row("equal values", line(f"{found.equal:,}, {percent(found.equal, found.size)}")))
    rows += [Row("", line(Run(words, Role.FLAG))) for words in _special_words(found)]
    rows.append(Row("absolute", *_error_lines(found.absolute)))
    rows.append(Row("relative", *_error_lines(found.relative)))
    ulps = found.ulps
    if ulps is not None and ulps.largest is not None:
        where = _at(ulps.largest.index) if ulps.largest.value else ""
        largest = line(f"largest {_ulps(int(ulps.largest.value))}{where}")
        rows.append(Row("ulps", largest, line(Run(f"of {ulps.format.name}", Role.HINT))))
        if ulps.largest.value:
            shares = ", ".join(f"{share:g} % ≤ {_ulps(most)}" for share, most in ulps.percentiles)
            rows.append(Row("", line(shares)))
    rounded = [each for each in (found.actual, found.expected) if ulps and not holds(ulps.format, each.format)]
    if rounded and ulps is not None:
        names = listed([f"{each.name} ({each.format.name})" for each in rounded])
        words = f"{names} {plural(len(rounded), 'is', 'are')} rounded to {ulps.format.name} before ulps are counted"
        rows.append(Row("", line(Run(words, Role.HINT))))
    return rows


def _special_words(found: Differences) -> list[str]:
    """Name what differs in more than size."""
    each = found.specials
    said = (
        (each.nan_in_actual, "NaN in actual where expected has a number"),
        (each.nan_in_expected, "NaN in expected where actual has a number"),
        (each.nan_in_both, "NaN in both" + ("" if found.allclose.equal_nan else ", which is not close (--equal-nan)")),
        (each.infinity, "infinite in one only, or of the other sign"),
        (each.sign_of_zero, "zero with the other sign"),
    )
    return [f"{count:,} {words}" for count, words in said if count]


def _error_lines(errors: Errors) -> tuple[Line, Line]:
    if errors.largest is None or errors.mean is None:
        return line(Run("no element has one", Role.HINT)), ()
    where = _at(errors.largest.index) if errors.largest.value else ""
    return line(f"largest {number(errors.largest.value)}{where}"), line(f"mean {number(errors.mean)}")


def _ulps(n: int) -> str:
    return f"{n:,}" if n < _LARGE else f"{n:.3g}"


def bin_label(low: int, high: int) -> str:
    """Name a bin of ulps.

    >>> bin_label(0, 0), bin_label(4, 7), bin_label(1 << 30, (1 << 31) - 1)
    ('0', '4 to 7', 'from 2^30')
    """
    if low == high:
        return f"{low}"
    return f"{low} to {high}" if high < 1024 else f"from 2^{low.bit_length() - 1}"


def _histogram(found: Differences) -> list[Block]:
    ulps = found.ulps
    if ulps is None or not ulps.count or not ulps.largest or not ulps.largest.value:
        return []
    most = max(count for _, _, count in ulps.histogram)
    lanes = []
    for low, high, count in ulps.histogram:
        label = line(f"{count:,}", Run(f"  {percent(count, ulps.count)}", Role.HINT))
        # Room for the label is kept on the right; the shortest bar is one character.
        bar = Span(0.0, 0.68 * count / most, label, line(f"{count:,}"), Role.CHANGED, heavy=True, ends=False)
        lanes.append(Lane(bin_label(low, high), (), (bar,)))
    heading = f"How many elements are how many ulps of {ulps.format.name} apart"
    return [Gap(), Note(line(Run(heading, Role.HEADING))), Axis(tuple(lanes))]


def _near_enough(found: Differences) -> list[Block]:
    blocks: list[Block] = [Gap(), Note(line(Run("Near enough, as NumPy and PyTorch define it", Role.HEADING)))]
    for each in (found.allclose, found.assert_close):
        blocks += _tolerance_rows(each, found.size)
    return blocks


def _tolerance_rows(near: Tolerance, size: int) -> list[Block]:
    nan = ", NaNs equal" if near.equal_nan else ""
    label = near.name.rpartition(".")[2]
    said = Run("passes" if near.passes else "fails", Role.GOOD if near.passes else Role.BAD)
    bounds = f"rtol {number(near.rtol)}, atol {number(near.atol)}{nan}: "
    rows: list[Block] = []
    if near.unlike:
        return [Row(label, line(bounds, said, f", since the {near.unlike}s differ"))]
    if near.failing:
        detail = f", {near.failing:,} of {size:,} ({percent(near.failing, size)})"
        if near.share is not None and near.share.value != inf:
            detail += f"; the worst is {_times(near.share)}{_at(near.share.index)}"
    else:
        used = near.share.value if near.share else 0.0
        detail = f", using {100 * used:.3g} % of what is allowed" if used else ", all equal"
    rows.append(Row(label, line(bounds, said, detail)))
    if near.passes and not (near.share and near.share.value):
        return rows
    ways = [
        f"{name} {upward(least)} with this {other}"
        for name, least, other in (("rtol", near.least_rtol, "atol"), ("atol", near.least_atol, "rtol"))
        if least is not None
    ]
    words = f"smallest that passes: {', or '.join(ways)}" if ways else "no tolerance would pass"
    rows.append(Row("", line(Run(words, Role.HINT if ways else Role.FLAG))))
    return rows


def _where(found: Differences) -> list[Block]:
    structure, noun = (found.failing, "beyond tolerance") if found.failing else (found.differing, "that differ")
    if structure is None:
        return []
    noun = noun if structure.count > 1 else noun.replace("differ", "differs")
    head = f"Where: {counted(structure.count, 'element')} {noun}"
    rows = [Row("", line(words)) for words in where_words(structure)]
    return [Gap(), Note(line(Run(head, Role.HEADING))), *rows]


def where_words(structure: Structure) -> list[str]:
    """Say where elements lie, the most telling first.

    >>> import numpy as np
    >>> from floatlab.arrays.structure import Finder
    >>> finder = Finder((400, 400))
    >>> finder.see(np.arange(7, 160_000, 8))
    >>> where_words(finder.found())
    ['only in every 8th column, from column 7 on']
    """
    s = structure
    if s.count == s.size:
        return ["everywhere: every element"]
    if s.count == 1:
        return [f"only{_at(tuple(each.low for each in s.extents))}"]
    words = [said for axis, each in enumerate(s.extents) for said in _axis_words(s, axis, each)]
    if s.last - s.first + 1 == s.count:
        ends = "the last" if s.last == s.size - 1 else "the first" if not s.first else ""
        words.insert(0, f"exactly {ends} {s.count:,} elements" if ends else f"{s.count:,} neighbours in memory, no gap")
    elif s.first >= s.size // 2:
        rest = s.size - s.first
        words.append(f"only among the last {counted(rest, 'element')} ({percent(rest, s.size)})")
    if 2 * s.box <= s.size and s.box > s.count and sum(each.low < each.high for each in s.extents) > 1:
        inside = ", ".join(f"{each.low}:{each.high + 1}" for each in s.extents)
        words.append(f"inside the block [{inside}], and {percent(s.count, s.box)} of it")
    elif s.box == s.count and len(s.shape) > 1 and not words:
        words.append(f"exactly the block [{', '.join(f'{each.low}:{each.high + 1}' for each in s.extents)}]")
    return words or [_spread_words(s)]


def _axis_words(s: Structure, axis: int, extent: Extent) -> list[str]:
    """Say what is telling along one axis."""
    length = s.shape[axis]
    if length == 1:
        return []
    if extent.low == extent.high:
        return [f"all in {_along(s, axis, extent.low)}"] if len(s.shape) > 1 else []
    if extent.distinct is None or extent.step is None:
        return []
    if extent.step > 1 and extent.distinct > 2:
        whole = extent.distinct == len(range(extent.low, extent.high + 1, extent.step))
        every = "" if whole else ", not in all of them"
        return [
            f"only in every {_ordinal(extent.step)} {_along(s, axis)}, from {_along(s, axis, extent.low)} on{every}"
        ]
    if len(s.shape) > 1 and extent.distinct <= _FEW * length:
        return [f"only in {extent.distinct:,} of {length:,} {_along(s, axis, many=True)}"]
    return []


def _along(s: Structure, axis: int, index: int | None = None, many: bool = False) -> str:
    """Name the places along an axis: `row 3`, `columns`, `index 3 of axis 2`."""
    names = {1: ("element",), 2: ("row", "column")}.get(len(s.shape))
    noun, of = (names[axis], "") if names else ("indice" if many else "index", f" of axis {axis}")
    return f"{noun}{'s' * many}{'' if index is None else f' {index}'}{of}"


def _ordinal(n: int) -> str:
    ending = "th" if n % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(n % 10, "th")
    return f"{n:,}{ending}"


def _spread_words(s: Structure) -> str:
    parts = [
        f"{extent.distinct:,} of {s.shape[axis]:,} {_along(s, axis, many=True)}"
        for axis, extent in enumerate(s.extents)
        if extent.distinct is not None and s.shape[axis] > 1 and len(s.shape) > 1
    ]
    share = percent(s.count, s.size)
    return f"spread: {share} of all elements" + (f", in {listed(parts)}" if parts else "")


def _worst(found: Differences) -> list[Block]:
    if not found.worst:
        return []
    rows = tuple(_element_cells(each, found) for each in found.worst)
    header = ("index", "actual", "expected", "ulps", "of the tolerance")
    count = plural(len(rows), "The worst element", f"The worst {len(rows)} elements")
    heading = f"{count}, by the share of rtol {number(found.allclose.rtol)}, atol {number(found.allclose.atol)}"
    return [Gap(), Note(line(Run(heading, Role.HEADING))), Table(header, rows, right=(3, 4))]


def _element_cells(each: Element, found: Differences) -> tuple[Line, ...]:
    data = (Datum(found.actual.format, each.actual_code), Datum(found.expected.format, each.expected_code))
    cells = [line(Run(shortest(datum), Role.VALUE), " ", Run(hexadecimal_code(datum), Role.CODE)) for datum in data]
    index = ", ".join(map(str, each.index)) or "·"
    return (line(index), *cells, line("·" if each.ulps < 0 else _ulps(each.ulps)), line(_share(each.share)))


def _share(share: float) -> str:
    """Return how much of the tolerance an element uses: in percent, or many times all of it."""
    if share == inf:
        return "none allowed"
    return f"{100 * share:.3g} %" if share < 10 else f"{_multiple(share)} times"
