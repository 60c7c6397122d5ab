"""The pages of `sum`, `dot` and `matmul`: the result, the exact result, and where the error comes from."""

from __future__ import annotations

from fractions import Fraction
from heapq import nlargest

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.errors import UnsupportedError, quoted
from floatlab.numbers import Datum, Flags
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.numbers.printing import rounded_decimal
from floatlab.page.datum import coded
from floatlab.page.measures import factors_text, number, percent
from floatlab.page.model import Block, Gap, Line, Page, Role, Row, Span, Table, Text, heading, hint, line
from floatlab.page.sums import decimal, few, format_row, machine_rows, order_words, origin_rows, signed
from floatlab.page.words import counted, flags_line, plural
from floatlab.reduce import Adder, Reduction
from floatlab.reduce.results.products import Product, ProductElement
from floatlab.reduce.results.reduction import MAX_TRACED
from floatlab.reduce.results.scaled import ScaledElement, ScaledProduct
from floatlab.verbs.reduce.error_breakdown import Contribution, error_contributions

SHORT = 16  # up to this many terms, all roundings are shown; also the limit for the elements of a product
_TRACED = 1024  # with more terms than this, the worst roundings are sought only among additions, not products
_SEARCHED = 1 << 21  # with more terms than this, finding the worst roundings would take many seconds and gigabytes
_WORST = 5
_SPELT = 6  # if a node has more operands than this, only the first two and the last one are named
_HEADER = ("id", "of", "code", "value", "ulps", "in result")
_NOUNS = {"sum": "sum", "dot": "dot product"}


def reduction_page(found: Reduction, origin: str = "") -> Page:
    """Return the page of a sum or dot product. `origin` says where the terms come from.

    >>> from floatlab import sum
    >>> from floatlab.page.text_layout import to_text
    >>> print(to_text(reduction_page(sum([2048, 1, 3], format="fp16"))), end="")
      sum of 3 terms, serial: 2052
      terms        3 numbers read into binary16, all exactly
      result       0x6802 2052
      exact        2052
      error        0, inexact on the way
      rounded to   binary16 everywhere
      bound        |error| ≤ 1.01 ulps a priori, ≤ 1 ulp a posteriori
      condition    1 = sum of |x| / |sum of x|; n·u = 0.00146
    <BLANKLINE>
      All roundings: errors in their own ulps and in ulps of the result
      id  of     code    value   ulps  in result
      0          0x6800   2048  exact
      1          0x3c00      1  exact
      2          0x4200      3  exact
      3   (0 1)  0x6800   2048   −0.5       −0.5
      4   (3 2)  0x6802   2052   +0.5       +0.5
    """
    n = len(found)
    order = order_words(found.schedule, found.adder)
    title = f"{_NOUNS[found.operation]} of {counted(n, 'term')}, {order}: {shortest(found.result)}"
    blocks: list[Block] = [heading(title)]
    blocks += [Row("terms", origin)] * bool(origin)
    blocks += [*machine_rows(found.machine), *origin_rows(found.x, found.y)]
    blocks += [Row("result", coded(found.result, shortest(found.result))), *truth_rows(found)]
    blocks += [format_row(found.x, found.y, found.adder, found.result.format), *limit_rows(found)]
    return Page((*blocks, *(_every(found) if n <= SHORT else _worst(found))), title)


def truth_rows(found: Reduction) -> list[Block]:
    """Return rows with the exact sum and the error of the result."""
    exact, ulps = found.exact, found.error_ulps
    flags = found.flags if len(found) <= MAX_TRACED else Flags.NONE
    raised = line(", ", flags_line(flags), " on the way") if flags else ()
    if exact is None:
        return [Row("exact", line(Span("none: a term is not finite", Role.HINT), raised))]
    read = any(side is not None and side.origin is not None and side.origin.inexact for side in (found.x, found.y))
    rows: list[Block] = [Row("exact", decimal(exact, 20), line("of the terms after they were read") if read else ())]
    if ulps is None:
        return [*rows, Row("error", line(Span("the result is not finite", Role.FLAG), raised))]
    if not ulps:
        return [*rows, Row("error", line("0", raised))]
    relative = f", relative {few(abs(found.error / exact))}" if exact and found.error is not None else ""
    words = f"{signed(ulps, 6)} {plural(1 if abs(ulps) == 1 else 2, 'ulp')} of {found.result.format.name}{relative}"
    return [*rows, Row("error", line(words, raised))]


def limit_rows(found: Reduction) -> list[Block]:
    """Return rows with the error bounds and the condition number of the sum."""
    rows: list[Block] = []
    bounds = [(found.bound, "a priori"), (found.running_bound, "a posteriori")]
    said = [f"≤ {_bound(bound, found.result)} {words}" for bound, words in bounds if bound is not None]
    if said:
        rows.append(Row("bound", line("|error| ", ", ".join(said))))
    if found.condition is not None:
        x = "x" if found.y is None else "x·y"
        text = f"{few(found.condition)} = sum of |{x}| / |sum of {x}|"
        if not found.accumulated.format.is_table:
            text += f"; n·u = {few(Fraction(len(found)) / 2**found.accumulated.format.precision)}"
        rows.append(Row("condition", text))
    return rows


def array_words(source: Source) -> str:
    """Return numbers as text, separated by commas. Reading this text gives exactly the same numbers.

    >>> from floatlab.reduce.results.presets import PRESETS
    >>> from floatlab import dot
    >>> array_words(dot(*PRESETS["forum"].data).x)
    '1.907607,-0.7862027,1.147311,0.9604002'
    """
    return ",".join(shortest(Datum(source.format, code)) for code in source.codes.tolist())


def _bound(x: Fraction, result: Datum) -> str:
    """Return a bound as text: in ulps of the result or, if the result is zero or not finite, as a number."""
    if not result.is_finite or not result.magnitude:
        return _upward(x)
    text = _upward(x / result.ulp.as_fraction())
    shown = f"{int(text):,}" if text.isdigit() else text
    return f"{shown} {'ulp' if text == '1' else 'ulps'}"


def _upward(x: Fraction) -> str:
    """Return a bound with three digits, rounded up."""
    text = few(x)
    if Fraction(text) < x:  # round up
        text = few(Fraction(text) + Fraction(10) ** (_exponent(Fraction(text)) - 2))
    return text


def _exponent(x: Fraction) -> int:
    """Return the decimal exponent of a positive number."""
    return int(f"{rounded_decimal(x, 3, range(0))}e".split("e")[1] or 0)


def _every(found: Reduction) -> list[Block]:
    entries = error_contributions(found)
    strange = any(each.flags & ~Flags.INEXACT for each in entries)
    header = _HEADER + (("flags",) if strange else ())
    rows = [_cells(each, found, strange) for each in entries]
    head = "All roundings: errors in their own ulps and in ulps of the result"
    return [Gap(), heading(head), Table(header, rows, right=(3, 4, 5))]


def _cells(entry: Contribution, found: Reduction, strange: bool) -> tuple[Line, ...]:
    id = line("=" if entry.id is None else str(entry.id))
    flags = [flags_line(entry.flags & ~Flags.INEXACT) if entry.flags & ~Flags.INEXACT else ()] * strange
    of = entry.name or _adds(entry.arguments)
    if entry.term is not None and entry.term.y is not None:
        of = " × ".join(map(shortest, entry.term.factors))
    code, value = line(), line(Span("as it is", Role.HINT))
    if entry.value is not None:
        code = line(Span(hexadecimal_code(entry.value), Role.CODE))
        value = line(Span(shortest(entry.value), Role.VALUE))
    return (id, line(of), code, value, *error_cells(entry, found), *flags)


def _adds(arguments: tuple[int, ...]) -> str:
    if len(arguments) > _SPELT:
        return f"({arguments[0]} {arguments[1]} … {arguments[-1]})"
    return f"({' '.join(map(str, arguments))})" if arguments else ""


def error_cells(entry: Contribution, found: Reduction) -> tuple[Line, Line]:
    """Return the error of a term, a node or a later rounding, in ulps of its value and in ulps of the result."""
    if entry.error is None:
        return line("·"), ()
    if not entry.error or entry.value is None:
        return line(Span("exact", Role.HINT)), ()
    own = line(Span(signed(entry.error / entry.value.ulp.as_fraction()), Role.LOST))
    return own, line(signed(entry.error / found.result.ulp.as_fraction())) if found.result.is_finite else ()


def worst_of(found: Reduction) -> list[Contribution]:
    """Return the contributions with the largest errors, the worst first.

    For more than `_TRACED` terms, only additions are returned. With so many terms, the list is empty in three cases:
    the sum is compensated or computed by a tensor core; the search would take long (`_SEARCHED`); or `Reduction.worst`
    does not support the sum.
    """
    if len(found) <= _TRACED:
        entries = [each for each in error_contributions(found) if each.error]
        return nlargest(_WORST, entries, key=lambda each: abs(each.error or Fraction(0)))
    if len(found) > _SEARCHED or not isinstance(found.adder, Adder):
        return []
    try:
        nodes = found.worst(_WORST)
    except UnsupportedError:
        nodes = []
    return [Contribution(each.id, each.arguments, None, each.value, each.error, Flags.NONE) for each in nodes]


def _worst(found: Reduction) -> list[Block]:
    entries = worst_of(found)
    if not entries:
        many = f"the worst roundings are not determined for {counted(len(found), 'term')}"
        return [Gap(), hint(many)] if len(found) > _SEARCHED else []
    rows = tuple(_cells(each, found, False) for each in entries)
    many = plural(len(rows), "The rounding", f"The {len(rows)} roundings")
    head = f"{many} with the largest errors, in their own ulps and in ulps of the result"
    return [Gap(), heading(head), Table(_HEADER, rows, right=(3, 4, 5))]


# Matrix products.

_OFFERED = 32  # how many elements the list offers
_QUICK = 1 << 22  # with more multiplications than this, finding the worst elements takes too long


def product_page(found: Product) -> Page:
    """Return the page of a matrix product.

    >>> from floatlab.reduce.results.products import matrix_product
    >>> from floatlab.page.text_layout import to_text
    >>> print(to_text(product_page(matrix_product([[1, 2], [3, 2**-12]], [[3], [2]], format="fp16"))), end="")
      matrix product (2 × 2) · (2 × 1), serial
      a            4 binary64 numbers rounded into binary16, all exactly
      b            2 numbers read into binary16, all exactly
      rounded to   binary16 everywhere
      nearest      2 of 2 elements (100 %) are at most half an ulp from the exact
                   ones
      error        largest 0.0625 ulps, root mean square 0.0442
      q            largest 0.111, root mean square 0.0786: |error| / (u × sum of
                   |a·b|)
    <BLANKLINE>
      Every element
      index  code    value  exact             ulps
      0, 0   0x4700      7  7                exact
      1, 0   0x4880      9  9.00048828125  −0.0625
    """
    settings, errors = found.settings, found.errors()
    sides = factors_text(found.x.codes.shape, found.y.codes.shape)
    title = f"matrix product {sides}, {order_words(settings.schedule, settings.adder)}"
    blocks: list[Block] = [heading(title), *machine_rows(settings.machine)]
    blocks += origin_rows(found.x, found.y)
    blocks.append(format_row(found.x, found.y, settings.adder, settings.format))
    looked = errors.looked_at
    if looked < found.codes.size:
        blocks.append(Row("measured", f"{looked:,} of {counted(found.codes.size, 'element')}"))
    if looked:
        share = f"{errors.nearest:,} of {counted(looked, 'element')} ({percent(errors.nearest, looked)})"
        verb = plural(errors.nearest, "is", "are")
        q = f"largest {number(errors.q_largest)}, root mean square {number(errors.q_rms)}: "
        blocks += [
            Row("nearest", f"{share} {verb} at most half an ulp from the exact {plural(looked, 'one')}"),
            Row("error", f"largest {number(errors.largest)} ulps, root mean square {number(errors.rms)}"),
            Row("q", line(q, Span("|error| / (u × sum of |a·b|)", Role.HINT))),
        ]
    return Page((*blocks, *elements_table(found, errors.worst)), title)


def elements_table(found: Product | ScaledProduct, worst: tuple[int, ...]) -> list[Block]:
    """Return a table of all elements of a small product, or of the worst elements of a large one, with their errors."""
    is_small = found.codes.size <= SHORT
    places = range(found.codes.size) if is_small else worst
    if not places:
        return []
    head = "Every element" if is_small else f"The {counted(len(places), 'element')} farthest from the exact product"
    rows = [_element_cells(found.element(each)) for each in places]
    return [Gap(), heading(head), Table(("index", "code", "value", "exact", "ulps"), rows, right=(2, 4))]


def _element_cells(each: ProductElement | ScaledElement) -> tuple[Text, ...]:
    ulps = Span("·")
    if each.error is not None:
        missed = each.error / each.value.ulp.as_fraction()
        ulps = Span(signed(missed), Role.LOST) if missed else Span("exact", Role.HINT)
    index = ", ".join(map(str, each.index)) or "·"
    exact = "no number" if each.exact is None else decimal(each.exact, 17)
    return index, Span(hexadecimal_code(each.value), Role.CODE), Span(shortest(each.value), Role.VALUE), exact, ulps


def element_words(found: Product | ScaledProduct, place: int) -> str:
    """Return the indices of the element at a position in C order, as text.

    >>> from floatlab.reduce.results.products import matrix_product
    >>> element_words(matrix_product([[1, 2], [3, 4]], [[5, 6], [7, 8]]), 2)
    '1,0'
    """
    return ",".join(str(int(each)) for each in np.unravel_index(place, found.codes.shape)) or "0"


def elements_of(found: Product) -> list[tuple[int, str]]:
    """Return the elements that can be chosen, as pairs (position, text).

    The elements with the largest errors come first, unless finding them takes too long.
    """
    quick = found.codes.size * found.terms <= _QUICK
    worst = found.errors(_OFFERED).worst if quick and found.codes.size > _OFFERED else ()
    places = dict.fromkeys([*worst, *range(min(found.codes.size, _OFFERED))])
    format = found.settings.format
    codes = found.codes.reshape(-1)
    marks = set(worst)
    return [
        (int(place), f"{element_words(found, place):<10} {shortest(Datum(format, int(codes[place])))}"
         f"{'  far from exact' if place in marks else ''}")
        for place in places
    ]  # fmt: skip


def place_of(found: Product, text: str) -> int:
    """Return the position in C order of an element, from text such as `1,0` (row, column) or the position itself.

    >>> from floatlab.reduce.results.products import matrix_product
    >>> place_of(matrix_product([[1, 2], [3, 4]], [[5, 6], [7, 8]]), "1,0")
    2
    """
    shape = found.codes.shape
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise UnsupportedError(f"name an element as row,column, not {quoted(text)}")
    index = tuple(map(int, parts))
    whole = (found.codes.size,) if len(index) == 1 != len(shape) else shape
    if len(index) != len(whole) or any(i >= size for i, size in zip(index, whole, strict=True)):
        raise UnsupportedError(f"there is no element {quoted(text)} in a product of shape {shape}")
    return int(np.ravel_multi_index(index, whole))
