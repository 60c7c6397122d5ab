"""The page of `compare`: the verdict, then the errors: sizes, histogram, positions, and the worst elements."""

from __future__ import annotations

from math import inf, isfinite
from re import search

from floatlab.arith import holds
from floatlab.arrays.compare.differences import (
    ComparedElement,
    Differences,
    ErrorSummary,
    Extreme,
    Tolerance,
)
from floatlab.numbers import Datum
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.page.measures import (
    at_index,
    multiple,
    number,
    percent,
    shape_text,
    share_of_tolerance,
    steps_text,
    upward,
)
from floatlab.page.model import (
    Block,
    Gap,
    Line,
    Note,
    Page,
    Pair,
    Role,
    Row,
    Span,
    Table,
    Text,
    heading,
    line,
)
from floatlab.page.words import counted, listed, plural
from floatlab.verbs.compare.histogram_text import histogram_blocks


def diagnosis_note(first: str) -> Note:
    """Return the first line of a diagnosis. If this line mentions A or B, add which array is A and which is B."""
    return Note(line(first, Span("  (A actual, B expected)", Role.HINT) if search(r"\b[AB]\b", first) else ""))


def differences_page(found: Differences) -> Page:
    """Return the page of the differences of two arrays.

    >>> import numpy as np
    >>> from floatlab.arrays.compare.measure import compare
    >>> from floatlab.page.text_layout import to_text
    >>> x = np.float32([[1, 2], [3, 4]])
    >>> print(to_text(differences_page(compare(x, x + np.float32([0, 1e-6])))).partition("equal")[0].rstrip())
      actual and expected: within tolerance
      actual       float32, 2 × 2
      expected     float32, 2 × 2
      verdict      close: the worst of 4 elements uses 4.77 % of the tolerance, rtol
                   1e-05 and atol 1e-08
    """
    title = f"{found.actual.name} and {found.expected.name}: {_summary(found)}"
    blocks: list[Block] = [heading(title), *_verdict_rows(found), *_inputs_rows(found)]
    if found.shape is not None and found.size:
        blocks += _amounts(found)
        parts = [histogram_blocks(found), _near_enough(found), worst_blocks(found)]
        if found.failing or found.differing:
            from floatlab.verbs.compare.difference_map import where_blocks

            parts.insert(2, where_blocks(found))
        blocks += [block for part in parts if part for block in (Gap(), *part)]
    return Page(tuple(blocks), title)


def summary_page(found: Differences) -> Page:
    """Return a page with errors, tolerances, histogram and map of two arrays, side by side if there is room."""
    from floatlab.verbs.compare.difference_map import map_blocks

    blocks = _verdict_rows(found, named=False)
    if found.shape is not None and found.size:
        pairs = ((_amounts(found), _near_enough(found)), (histogram_blocks(found), map_blocks(found)))
        for left, right in pairs:
            blocks.append(Pair((Gap(), *left) if left else (), (Gap(), *right) if right else ()))
    return Page(tuple(blocks))


def _summary(found: Differences) -> str:
    if found.shape is None:
        return "shapes that cannot be broadcast"
    if found.equal_bits == found.size and not found.failing:
        return "the same bits"
    return "within tolerance" if found.within else "beyond tolerance"


def _verdict_rows(found: Differences, named: bool = True) -> list[Block]:
    rows: list[Block] = []
    for label, operand in (("actual", found.actual), ("expected", found.expected)):
        words = line(Span(operand.kind, Role.VALUE), f", {shape_text(operand.shape)}")
        rows.append(Row(label, operand.name, words) if named and operand.name != label else Row(label, words))
    return [*rows, Row("verdict", Span(verdict_words(found), Role.GOOD if found.within else Role.BAD))]


def _inputs_rows(found: Differences) -> list[Block]:
    """Return a row that suggests the option --inputs.

    The list is empty unless the arrays fail the tolerance, have no diagnosis, and are matrices (so they may be
    products).
    """
    if found.diagnosis is not None or not found.allclose.failing or found.shape is None or len(found.shape) != 2:
        return []
    return [
        Row(
            "",
            Span(
                ("if these are products of X and Y, --inputs X Y finds out whether the difference is rounding"),
                Role.HINT,
            ),
        )
    ]


def verdict_words(found: Differences) -> str:
    """Return the verdict as a sentence without a full stop."""
    near = found.allclose
    allowed = f"rtol {number(near.rtol)} and atol {number(near.atol)}"
    if found.shape is None:
        shapes = " and ".join(shape_text(each.shape) for each in (found.actual, found.expected))
        return f"not close: the shapes {shapes} cannot be broadcast"
    if not found.size:
        return "close: there are no elements"
    if near.failing:
        hopeless = near.least_atol is None and near.least_rtol is None
        worst = "no tolerance would suffice" if hopeless else f"the worst is {_times(near.share)}"
        share = percent(near.failing, found.size)
        of = f"{near.failing:,} of {counted(found.size, 'element')} ({share}) {plural(near.failing, 'lies', 'lie')}"
        return f"not close: {of} beyond {allowed}; {worst}"
    if found.equal_bits == found.size:
        return f"the same: all {counted(found.size, 'element')} have the same bits"
    if near.share is None or not near.share.value:
        return f"close: all {counted(found.size, 'element')} are equal numbers"
    used = f"{100 * near.share.value:.3g} %"
    return f"close: the worst of {counted(found.size, 'element')} uses {used} of the tolerance, {allowed}"


def _times(share: Extreme | None) -> str:
    if share is None or share.value == inf:
        return "at an element whose tolerance is 0"
    return f"{multiple(share.value)} times the tolerance"


def _amounts(found: Differences) -> list[Block]:
    """Return rows that say how many elements are equal, and how large the errors are."""
    rows: list[Block] = []
    if found.equal_bits is not None:
        share = percent(found.equal_bits, found.size)
        rows.append(Row("equal bits", f"{found.equal_bits:,} of {found.size:,}, {share}"))
    if found.equal_bits == found.size and not found.failing:
        return rows
    if found.equal != found.equal_bits:
        rows.append(Row("equal values", f"{found.equal:,}, {percent(found.equal, found.size)}"))
    rows += [Row("", Span(words, Role.FLAG)) for words in _special_words(found)]
    rows.append(Row("absolute", *_error_lines(found.absolute)))
    rows.append(Row("relative", *_error_lines(found.relative)))
    ulps = found.ulps
    if ulps is not None and ulps.largest is not None:
        where = at_index(ulps.largest.index) if ulps.largest.value else ""
        largest = line(f"largest {steps_text(int(ulps.largest.value))}{where}")
        rows.append(Row("ulps", largest, Span(f"of {ulps.format.name}", Role.HINT)))
        if ulps.largest.value:
            shares = ", ".join(f"{share:g} % ≤ {steps_text(most)}" for share, most in ulps.percentiles)
            rows.append(Row("", shares))
    rounded = [each for each in (found.actual, found.expected) if ulps and not holds(ulps.format, each.format)]
    if rounded and ulps is not None:
        names = listed([f"{each.name} ({each.format.name})" for each in rounded])
        words = f"{names} {plural(len(rounded), 'is', 'are')} rounded to {ulps.format.name} before ulps are counted"
        rows.append(Row("", Span(words, Role.HINT)))
    return rows


def _special_words(found: Differences) -> list[str]:
    """Describe the differences in NaN, infinities and signs of zeros."""
    each = found.specials
    said = (
        (each.nan_in_actual, "NaN in actual, a number in expected"),
        (each.nan_in_expected, "NaN in expected, a number in actual"),
        (each.nan_in_both, "NaN in both" + ("" if found.allclose.equal_nan else ", which is not close (--equal-nan)")),
        (each.infinity, "infinite in one array only, or infinities of opposite signs"),
        (each.sign_of_zero, "zeros of opposite signs"),
    )
    return [f"{count:,} {words}" for count, words in said if count]


def _error_lines(errors: ErrorSummary) -> tuple[Line, Line]:
    if errors.largest is None or errors.mean is None:
        return line(Span("not defined for any element", Role.HINT)), ()
    where = at_index(errors.largest.index) if errors.largest.value else ""
    return line(f"largest {number(errors.largest.value)}{where}"), line(f"mean {number(errors.mean)}")


def _near_enough(found: Differences) -> list[Block]:
    blocks: list[Block] = [heading("Tolerances, by the definitions of NumPy and PyTorch")]
    for each in (found.allclose, found.assert_close):
        blocks += _tolerance_rows(each, found.size)
    return blocks


def _tolerance_rows(near: Tolerance, size: int) -> list[Block]:
    nan = ", NaNs equal" if near.equal_nan else ""
    label = near.name.rpartition(".")[2]
    said = Span("passes" if near.passes else "fails", Role.GOOD if near.passes else Role.BAD)
    bounds = f"rtol {number(near.rtol)}, atol {number(near.atol)}{nan}: "
    rows: list[Block] = []
    if near.unlike:
        return [Row(label, line(bounds, said, f", since the {near.unlike}s differ"))]
    if near.failing:
        detail = f", {near.failing:,} of {size:,} ({percent(near.failing, size)})"
        if near.share is not None and near.share.value != inf:
            detail += f"; the worst is {_times(near.share)}{at_index(near.share.index)}"
    else:
        used = near.share.value if near.share else 0.0
        detail = f", using {100 * used:.3g} % of the tolerance" if used else ", all equal"
    rows.append(Row(label, line(bounds, said, detail)))
    if near.passes and not (near.share and near.share.value):
        return rows
    ways = [
        f"{name} {upward(least)} with this {other}"
        for name, least, other in (("rtol", near.least_rtol, "atol"), ("atol", near.least_atol, "rtol"))
        if least is not None
    ]
    words = f"smallest tolerance that passes: {', or '.join(ways)}" if ways else "no tolerance would pass"
    rows.append(Row("", Span(words, Role.HINT if ways else Role.FLAG)))
    return rows


def worst_blocks(found: Differences) -> list[Block]:
    """Return a heading and a table of the worst elements; an empty list if `found.worst` is empty."""
    if not found.worst:
        return []
    rows: list[tuple[Text, ...]] = []
    for each in found.worst:
        numbers = [line(_value(datum), " ", _code(datum)) for datum in found.data(each)]
        rows.append((_index(each), *numbers, _steps(each), share_of_tolerance(each.share)))
    header = ("index", "actual", "expected", "ulps", "of the tolerance")
    count = plural(len(rows), "The worst element", f"The worst {len(rows)} elements")
    head = f"{count}, by error / tolerance (rtol {number(found.allclose.rtol)}, atol {number(found.allclose.atol)})"
    return [heading(head), Table(header, tuple(rows), right=(3, 4))]


def elements_table(found: Differences) -> Table:
    """Return the worst elements with all columns, for a table that scrolls sideways.

    >>> import numpy as np
    >>> from floatlab.arrays.compare.measure import compare
    >>> from floatlab.page.model import text_of
    >>> [row] = elements_table(compare(np.float16([1, 3]), np.float16([1, 2]))).rows
    >>> [text_of(cell) for cell in row]
    ['1', '3', '2', '512', '0.5', '49,932 times', '0x4200', '0x4000', '1']
    """
    header = ("index", "actual", "expected", "ulps", "relative", "uses", "bits", "bits", "absolute")
    rows: list[tuple[Text, ...]] = []
    for each in found.worst:
        x, y = found.data(each)
        relative = abs(each.absolute / each.expected) if each.expected and isfinite(each.absolute) else None
        measures = (_steps(each), "·" if relative is None else number(relative), share_of_tolerance(each.share))
        absolute = number(each.absolute) if isfinite(each.absolute) else "·"
        rows.append((_index(each), _value(x), _value(y), *measures, _code(x), _code(y), absolute))
    return Table(header, rows, right=(3, 4, 5, 8))


def _value(datum: Datum) -> Span:
    return Span(shortest(datum), Role.VALUE)


def _code(datum: Datum) -> Span:
    return Span(hexadecimal_code(datum), Role.CODE)


def _index(each: ComparedElement) -> str:
    return ", ".join(map(str, each.index)) or "·"


def _steps(each: ComparedElement) -> str:
    return "·" if each.ulps < 0 else steps_text(each.ulps)
