"""Page and JSON of a matrix product of block-scaled operands: its elements, and the steps of one element."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np

from floatlab.arrays.sources import Source
from floatlab.errors import FileFormatError
from floatlab.formats import Format
from floatlab.numbers import Datum
from floatlab.numbers.datum import shortest
from floatlab.page.datum import coded
from floatlab.page.measures import factors_text
from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, Table, Text, heading, hint
from floatlab.page.sums import decimal, machine_rows, origin_rows, signed
from floatlab.reduce.results.scaled import ScaledElement, ScaledProduct
from floatlab.reduce.simulate.scaled_core_engine import ScaledNode, ScaledTerm
from floatlab.reduce.simulate.scaled_matrix_units import ScaledUnit, parse_scaled_unit
from floatlab.verbs.reduce.json import MOST, source_of_data
from floatlab.verbs.reduce.page import SHORT, element_words, elements_table
from floatlab.wire.codecs import FORMAT, FRACTION, INTEGER, TEXT, list_of, optional
from floatlab.wire.derivations import DATUM, error_in_ulps
from floatlab.wire.schema import Member, common_members, derived, schema

_DIGITS = 12
_WORST = 5
_NODES = 4  # at most this many nodes of an element are shown


def scaled_page(found: ScaledProduct) -> Page:
    """Return the page of a product of block-scaled operands, with the steps of its worst element.

    >>> from floatlab.page.text_layout import to_text
    >>> from floatlab.reduce.results.scaled import scaled_product
    >>> unit, b = "rtxblackwell.mxf4.f32.v1", [[2], [2**-1]]
    >>> page = to_text(scaled_page(scaled_product([[1.5, 2]], b, unit, ([[2]], [[2**-30]]))))
    >>> print(page[page.index("  Node") :], end="")
      Node 1: products 0 to 1, and c
      groups of 16 products are added exactly, and multiplied by both scales; all
      are aligned to the largest exponent, -29, and truncated toward zero 35 digits
      below it, at 2^-64
    <BLANKLINE>
      products  value  scales       exponent          × 2^-64  cut off
      0–1           4  2^1 × 2^-30       -29  137,438,953,472  nothing
      c             0                                       0  nothing
    <BLANKLINE>
      together     137,438,953,472 × 2^-64
      RTZ          0x32000000 7.450581e-9
      error        0
    """
    unit, (rows, columns) = found.unit, (len(found.x.codes), found.y.codes.shape[1])
    title = f"matrix product {factors_text(found.x.codes.shape, found.y.codes.shape)}, scales for blocks of {unit.size}"
    blocks: list[Block] = [heading(title), *machine_rows(unit), *origin_rows(found.x, found.y)]
    formats = " and ".join(dict.fromkeys([found.x.format.name, found.y.format.name]))
    blocks.append(Row("formats", f"factors {formats}, scales {unit.scale.name}, sums {found.format.name}"))
    worst = _worst(found)
    blocks += elements_table(found, worst)
    place = worst[0] if worst else 0
    element = found.element(place)
    if rows * columns > 1:
        blocks += [Gap(), heading(f"Element {element_words(found, place).replace(',', ', ')}")]
    for number, node in enumerate(element.nodes[:_NODES], 1):
        blocks += _node_blocks(unit, number, node)
    if len(element.nodes) > _NODES:
        blocks += [Gap(), hint(f"… and {len(element.nodes) - _NODES:,} more nodes")]
    return Page(tuple(blocks), title)


def _worst(found: ScaledProduct) -> tuple[int, ...]:
    """Return the positions of the elements that differ most, in ulps, from a product computed in binary64."""
    values, numbers = found.codes.view(np.float32).astype(np.float64).reshape(-1), found.estimate().reshape(-1)
    with np.errstate(all="ignore"):
        errors = np.abs(values - numbers) / np.spacing(np.abs(found.codes.view(np.float32)).reshape(-1))
    order = np.argsort(-np.nan_to_num(errors, nan=0.0, posinf=0.0), kind="stable")
    return tuple(map(int, order[:_WORST]))


def _node_blocks(unit: ScaledUnit, number: int, node: ScaledNode) -> list[Block]:
    """Return the steps of a node: its scaled products, their alignment and truncation, the sum, the rounding."""
    zeros = [each for each in node.terms if each.value is not None and not each.value.c]
    rows = [_term_cells(each, node.unit) for each in node.terms if each not in zeros]
    lost = decimal(node.c.exact.as_fraction() - _aligned(node.kept_c, node.unit), 6) if node.c.is_finite else "·"
    rows.append(
        ("c", shortest(node.c), "", "", f"{node.kept_c:,}", Span("nothing", Role.HINT) if lost == "0" else lost)
    )
    last = node.terms[-1].stop
    what = f"groups of {unit.core.group} products are added exactly, and" if unit.core.group > 1 else "each product is"
    blocks: list[Block] = [Gap(), heading(f"Node {number}: products {node.terms[0].first} to {last - 1}, and c")]
    cut = f"truncated toward zero {unit.core.fraction_bits} digits below it, at 2^{node.unit}"
    blocks.append(
        Note(f"{what} multiplied by both scales; all are aligned to the largest exponent, {node.top}, and {cut}")
    )
    header = ("products", "value", "scales", "exponent", f"× 2^{node.unit}", "cut off")
    blocks += [Gap(), Table(header, rows, (1, 3, 4))]
    if zeros:
        blocks.append(hint(f"{len(zeros)} more are zero"))
    blocks.append(Gap())
    if node.total is not None:
        blocks.append(Row("together", f"{node.total:,} × 2^{node.unit}"))
    blocks.append(Row("RTZ", coded(node.value, shortest(node.value))))
    if node.error is not None:
        blocks.append(Row("error", f"{signed(node.error / node.value.ulp.as_fraction())} ulp" if node.error else "0"))
    return blocks


def _aligned(kept: int, unit: int) -> Fraction:
    return kept * Fraction(2) ** unit


def _term_cells(each: ScaledTerm, unit: int) -> tuple[Text, ...]:
    places = f"{each.first}" if each.stop == each.first + 1 else f"{each.first}–{each.stop - 1}"
    scales = " × ".join(map(_scale, each.scales))
    if each.products is None or each.value is None:
        return places, "no number", scales, "", "", ""
    value = each.value.as_fraction()
    lost = value - _aligned(each.kept, unit)
    cut = Span(decimal(lost, 6), Role.LOST) if lost else Span("nothing", Role.HINT)
    products = decimal(each.products.as_fraction(), _DIGITS)
    return places, products, scales, str(each.exponent), f"{each.kept:,}", cut


def _scale(scale: Datum) -> str:
    """Return a scale as text: a power of two or a decimal. If its sign is ignored, bars mark the absolute value."""
    if not scale.is_finite or scale.format.trailing_bits:
        text = decimal(scale.exact.as_fraction(), _DIGITS) if scale.is_finite else shortest(scale)
        return f"|{text}|" if scale.sign_bit else text
    return f"2^{scale.exact.exponent}"


def _data(side: Source) -> list[Datum] | None:
    return None if side.codes.size > MOST else [Datum(side.format, code) for code in side.codes.reshape(-1).tolist()]


def _elements(found: ScaledProduct) -> list[ScaledElement] | None:
    count = prod(found.codes.shape)
    return [found.element(place) for place in range(count)] if count <= SHORT * SHORT else None


def _read(
    shape: tuple[int, ...], terms: int, operands: Sequence[Sequence[Datum] | None],
    scales: Sequence[Sequence[Datum] | None], machine: ScaledUnit, format: Format,
) -> ScaledProduct:  # fmt: skip
    if len(operands) != 2 or len(scales) != 2:
        raise FileFormatError("a product has two factors, each with scales")
    if any(side is None for side in (*operands, *scales)):
        raise FileFormatError(f"the factors are missing: JSON has them only if there are at most {MOST:,}")
    x, y, a, b = (source_of_data(side) for side in (*operands, *scales) if side is not None)
    blocks = machine.blocks(terms)
    x, y = x.replace(codes=x.codes.reshape(-1, terms)), y.replace(codes=y.codes.reshape(terms, -1))
    a, b = a.replace(codes=a.codes.reshape(-1, blocks)), b.replace(codes=b.codes.reshape(blocks, -1))
    return ScaledProduct(x, y, (a, b), machine, machine.multiply_add(x, y, (a, b)).reshape(shape))


_ELEMENT = schema(
    lambda value: value,
    index=derived(lambda element: [*element.index]),
    value=derived("value", DATUM),
    exact=derived("exact", optional(FRACTION)),
    error=derived(lambda element: error_in_ulps(element.error, element.value)),
)
_UNIT = schema(lambda name: parse_scaled_unit(name), name=TEXT, words=derived("words"))
_OPERANDS = list_of(optional(list_of(DATUM)))
SCALED_PRODUCT = schema(
    _read,
    **common_members("matmul"),
    format=FORMAT,
    shape=Member(list_of(INTEGER), lambda found: found.codes.shape, "shape"),
    terms=INTEGER,
    operands=Member(_OPERANDS, lambda found: [_data(found.x), _data(found.y)], "operands"),
    scales=Member(_OPERANDS, lambda found: [_data(side) for side in found.scales], "scales"),
    machine=Member(
        schema(lambda name: parse_scaled_unit(name), name=TEXT, words=derived("words")),
        lambda found: found.unit,
        "machine",
    ),
    results=derived(_elements, optional(list_of(_ELEMENT))),
)
