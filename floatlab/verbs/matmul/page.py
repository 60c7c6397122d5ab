"""The page of `matmul`: how far the elements are from the exact ones, and all of a small product."""

from __future__ import annotations

import numpy as np

from floatlab.errors import UnsupportedError, quoted
from floatlab.numbers import Datum
from floatlab.numbers.datum import hexadecimal_code, shortest
from floatlab.page.measures import factors_text, number, percent
from floatlab.page.model import Block, Gap, Line, Page, Role, Row, Span, Table, heading, line
from floatlab.page.sums import decimal, format_row, machine_rows, origin_rows, signed, way_words
from floatlab.page.words import counted, plural
from floatlab.reduce.results.products import Product, ProductElement

SHORT = 16  # elements: of so many all are shown
_OFFERED = 32  # elements to choose from
_QUICK = 1 << 22  # products: of so many the worst are quickly found


def product_page(found: Product) -> Page:
    """Return the page of a matrix product.

    >>> from floatlab.reduce.results.products import matrix_product
    >>> from floatlab.page.layout import to_text
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
    title = f"matrix product {sides}, {way_words(settings.schedule, settings.adder)}"
    blocks: list[Block] = [heading(title), *machine_rows(settings.machine)]
    blocks += origin_rows(found.x, found.y)
    blocks.append(format_row(found.x, found.y, settings.adder, settings.format))
    looked = errors.looked_at
    if looked < found.codes.size:
        blocks.append(Row("measured", f"{looked:,} of {counted(found.codes.size, 'element')}"))
    if looked:
        share = f"{errors.nearest:,} of {counted(looked, 'element')} ({percent(errors.nearest, looked)})"
        verb = plural(errors.nearest, "is", "are")
        blocks += [
            Row("nearest", f"{share} {verb} at most half an ulp from the exact {plural(looked, 'one')}"),
            Row("error", f"largest {number(errors.largest)} ulps, root mean square {number(errors.rms)}"),
            Row(
                "q",
                line(
                    f"largest {number(errors.q_largest)}, root mean square {number(errors.q_rms)}: ",
                    Span("|error| / (u × sum of |a·b|)", Role.HINT),
                ),
            ),
        ]
    return Page((*blocks, *_elements(found, errors.worst)), title)


def _elements(found: Product, worst: tuple[int, ...]) -> list[Block]:
    every = found.codes.size <= SHORT
    places = tuple(range(found.codes.size)) if every else worst
    if not places:
        return []
    head = "Every element" if every else f"The {counted(len(places), 'element')} farthest from the exact product"
    rows = tuple(_cells(found.element(each)) for each in places)
    header = ("index", "code", "value", "exact", "ulps")
    return [Gap(), heading(head), Table(header, rows, right=(2, 4))]


def _cells(each: ProductElement) -> tuple[Line, ...]:
    ulps = line("·")
    if each.error is not None:
        missed = each.error / each.value.ulp.as_fraction()
        ulps = line(Span(signed(missed), Role.LOST) if missed else Span("exact", Role.HINT))
    return (
        line(", ".join(map(str, each.index)) or "·"),
        line(Span(hexadecimal_code(each.value), Role.CODE)),
        line(Span(shortest(each.value), Role.VALUE)),
        line("no number" if each.exact is None else decimal(each.exact, 17)),
        ulps,
    )


def element_words(found: Product, place: int) -> str:
    """Name an element by its indices, from its place in C order.

    >>> from floatlab.reduce.results.products import matrix_product
    >>> element_words(matrix_product([[1, 2], [3, 4]], [[5, 6], [7, 8]]), 2)
    '1,0'
    """
    return ",".join(str(int(each)) for each in np.unravel_index(place, found.codes.shape)) or "0"


def elements_of(found: Product) -> list[tuple[int, str]]:
    """Return elements to choose from, their places and words: the worst of them, where they are quickly found."""
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
    """Return the place in C order of an element: `row,column`, or the place itself; raises UnsupportedError.

    >>> from floatlab.reduce.results.products import matrix_product
    >>> place_of(matrix_product([[1, 2], [3, 4]], [[5, 6], [7, 8]]), "1,0")
    2
    """
    shape = found.codes.shape
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() and len(part) < 10 for part in parts):
        raise UnsupportedError(f"an element is row,column, not {quoted(text)}")
    index = tuple(map(int, parts))
    whole = (found.codes.size,) if len(index) == 1 != len(shape) else shape
    if len(index) != len(whole) or any(i >= size for i, size in zip(index, whole, strict=True)):
        raise UnsupportedError(f"there is no element {quoted(text)} in a product of shape {shape}")
    return int(np.ravel_multi_index(index, whole))
