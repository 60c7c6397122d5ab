"""The page of `block`: the largest magnitude, the scale derived from it, and the results of the elements."""

from __future__ import annotations

from floatlab.arith.blocks import BY_EXPONENT, BlockDerivation, Element, ScaleRule, decode_element
from floatlab.formats.blocks import BlockFormat
from floatlab.numbers import Datum, Exact, Flags, Ratio
from floatlab.numbers.exact import Infinity
from floatlab.numbers.printing import rounded_decimal, terminating_decimal
from floatlab.page import words
from floatlab.page.datum import coded
from floatlab.page.model import Block, Gap, Line, Page, Role, Row, Span, Table, heading, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction


FEW = 4  # up to this many elements are shown step by step; more are shown in a table
_GLANCE = 12  # characters of a number in a table
_FIGURES = 6


def block_page(blocks: tuple[BlockDerivation, ...]) -> Page:
    """Return the page of consecutive blocks of a tensor."""
    first = blocks[0]
    count = sum(len(block.elements) for block in blocks)
    fmt, short = first.format, len(blocks[-1].elements)
    title = f"{_summary(blocks)} in {fmt.name}"
    parts: list[Block] = [heading(title), _format_row(fmt)]
    if short < fmt.block:
        note = f"{short} {words.plural(short, 'value')} of {fmt.block}: zero padding would not change the scale"
        parts.append(Row("", Span(note, Role.HINT)))
    parts += _tensor_rows(first)
    start = 1
    for block in blocks:
        if len(blocks) > 1:
            last = start + len(block.elements) - 1
            which = f"values {start} to {last}" if last > start else f"value {start}"
            parts += [Gap(), heading(f"{which} of {count}")]
            start = last + 1
        parts += [*scale_rows(block), *_element_blocks(block)]
    return Page(tuple(parts), title)


def _summary(blocks: tuple[BlockDerivation, ...]) -> str:
    elements = [element for block in blocks for element in block.elements]
    if len(elements) <= FEW:
        return ", ".join(typed for block in blocks for typed in _typed(block))
    return f"{len(elements)} values"


def _typed(block: BlockDerivation) -> list[str]:
    """Return the values as typed, or in full if they were not typed."""
    return [
        words.abbreviated(text, 20) if text is not None else value_text(element)
        for text, element in zip(block.literals, block.elements, strict=True)
    ]


def value_text(element: Element) -> str:
    """Return an element's value in a few characters."""
    value = element.value
    if isinstance(value, Ratio):
        return _signed_glance(value)
    sign = "-" if value.negative else ""
    return f"{sign}inf" if isinstance(value, Infinity) else f"{sign}nan"


def glance(x: Fraction) -> str:
    """Return a number as text: exact if that is short, else rounded after ≈.

    >>> from fractions import Fraction
    >>> glance(Fraction(957, 2)), glance(Fraction(1, 3)), glance(Fraction(1, 2**40))
    ('478.5', '≈ 0.333333', '2^-40')
    """
    decimal = terminating_decimal(x, 40)
    if decimal is not None and len(decimal) <= _GLANCE:
        return decimal
    n, d = x.numerator, x.denominator
    if n > 0 and (n == 1 or d == 1) and not (n * d) & (n * d - 1):
        return f"2^{n.bit_length() - d.bit_length()}"
    return f"≈ {rounded_decimal(x, _FIGURES)}"


def _signed_glance(x: Ratio | Exact) -> str:
    """Return a number in a few characters; a zero has its sign."""
    value = x.as_fraction()
    return "-0" if x.negative and not value else glance(value)


def _format_row(fmt: BlockFormat) -> Row:
    bits = terminating_decimal(fmt.bits) or f"≈ {rounded_decimal(fmt.bits)}"
    tensor = "" if fmt.tensor is None else f", a {fmt.tensor.name} scale for all"
    note = f"{fmt.element.name}, one {fmt.scale.name} scale for {fmt.block}{tensor}: {bits} bits a value"
    return Row(fmt.name, note)


def _tensor_rows(block: BlockDerivation) -> list[Block]:
    tensor, fmt = block.tensor, block.format
    if tensor is None:
        return []
    if tensor.amax is None:
        return [Row("tensor", "given", _datum(tensor.datum))]
    if not tensor.amax.numerator:
        return [Row("tensor", "1, since all values are zero", _datum(tensor.datum))]
    amax, element, scale = tensor.amax.as_fraction(), fmt.magnitudes.largest, fmt.scale.largest
    made = f"t = {glance(amax)} / ({glance(element)} × {glance(scale)})".replace("= ≈", "≈")
    return [Row("tensor", made, _datum(tensor.datum)), *_outside(amax / (element * scale), tensor.datum)]


def _datum(datum: Datum) -> Line:
    return line(*coded(datum, words.equals(datum)), f", {datum.format.name}")


def scale_rows(block: BlockDerivation) -> list[Block]:
    """Return rows with amax, the scale that the rule gives, and the scale used."""
    fmt, amax = block.format, block.amax
    if amax is None:
        note = "a value is NaN or infinite: the scale is NaN, and so is every element"
        return [Row("scale", Span("NaN", Role.BAD), _datum(block.scale)), Row("", note)]
    if block.wanted is None:
        note = "every value is zero: the smallest scale is used"
        return [Row("amax", "0"), Row("scale", note, _datum(block.scale))]
    value = amax.as_fraction()
    largest = glance(fmt.magnitudes.largest)
    rows: list[Block] = [Row("amax", glance(value), _binade(amax))]
    if block.rule in BY_EXPONENT:
        e, emax = block.exponent, fmt.magnitudes.emax
        wanted = f"2^({e} − {words.bracketed(emax)}) = {glance(block.wanted.as_fraction())}"
        counted = {
            ScaleRule.FLOOR: f"{e} is the exponent of amax",
            ScaleRule.EVEN: f"{e} is the exponent of amax rounded to {fmt.magnitudes.precision} digits",
            ScaleRule.CEIL: f"2^{e} is the smallest power of two that is at least amax",
        }[block.rule]
        note = f"{counted}, {emax} that of {fmt.element.name}'s largest number, {largest}"
    else:
        over = "" if block.tensor is None else " / t"
        wanted = f"amax / {largest}{over} = {glance(block.wanted.as_fraction())}"
        up = block.rule is ScaleRule.UP
        note = f"rounded {'upward' if up else 'to nearest'} into {fmt.scale.name}{', so that nothing saturates' * up}"
    rows += [
        Row("scale", wanted.replace("= ≈", "≈"), _datum(block.scale)),
        Row(f"  {block.rule.value}", Span(note, Role.HINT)),
    ]
    return [*rows, *_outside(block.wanted.as_fraction(), block.scale)]


def _binade(amax: Ratio) -> Line:
    """Return amax as d.ddd × 2^e if it is a short binary number."""
    x = amax.as_fraction()
    if x.denominator & (x.denominator - 1) or max(x.numerator, x.denominator).bit_length() > _FIGURES * 8:
        return ()
    exact = Exact(False, x.numerator, 1 - x.denominator.bit_length()).normalized()
    return line(words.point(f"{exact.c:b}"), f" × 2^{exact.exponent}")


def _outside(wanted: Fraction, scale: Datum) -> list[Block]:
    """Return a row if the scale that the rule gives is outside the range of the scale's format; else no row."""
    kind = scale.format
    if kind.smallest <= wanted <= kind.largest:
        return []
    where = "beyond the largest" if wanted > kind.largest else "below the smallest"
    return [Row("", Span(f"{where} {kind.name}, {words.brief(scale)}, which is used instead", Role.FLAG))]


def outcome(element: Element, fmt: BlockFormat) -> str:
    """Return the outcome for an element if it is more than a rounding, such as saturation."""
    rounded = element.rounded
    if rounded is None or element.decoded is None:
        return "NaN"
    if rounded.overflowed:
        return f"saturates at {'-' * rounded.negative}{glance(fmt.magnitudes.largest)}"
    if not element.flags:
        return "exact"
    if not element.decoded.c:
        return "becomes zero"
    return "underflow" if Flags.UNDERFLOW in element.flags else ""


def _happened(element: Element, fmt: BlockFormat) -> Line:
    note = outcome(element, fmt)
    return line(Span(note, Role.FLAG if element.flags else Role.HINT)) if note else ()


def element_code(element: Element, fmt: BlockFormat) -> str:
    """Return the code of an element, zero-padded."""
    return f"0x{element.code:0{-(-fmt.element.width // 4)}x}"


def digits_line(element: Element, fmt: BlockFormat) -> Line:
    """Return the scaled value before rounding: the digits kept, the rounding position, the discarded digits."""
    rounded = element.rounded
    if rounded is None:
        return ()
    return words.rounded_digits(rounded, fmt.magnitudes)


def _share(element: Element) -> str:
    """Return the error as a signed percentage of the value; empty if there is no error."""
    error, value = element.error, element.value
    if not error or not isinstance(value, Ratio):
        return ""
    towards = 100 * error / abs(value.as_fraction())
    return f"{words.signed_text(rounded_decimal(towards, 3))} %"


def _element_blocks(block: BlockDerivation) -> list[Block]:
    if block.scale.is_nan:
        return [Row("values", ", ".join(words.abbreviated(each, 20) for each in _typed(block)))]
    if len(block.elements) <= FEW:
        return [row for pair in zip(_typed(block), block.elements, strict=True) for row in _rows(*pair, block)]
    return [_table(block)]


def _decoded(element: Element) -> str:
    assert element.decoded is not None
    return _signed_glance(element.decoded)


def _rows(typed: str, element: Element, block: BlockDerivation) -> list[Block]:
    """Return rows that show an element step by step."""
    fmt, rounded, scaled = block.format, element.rounded, element.scaled
    assert rounded is not None
    assert scaled is not None
    scale = words.brief(block.scale)
    over = scale if block.tensor is None else f"({scale} × t)"
    quotient = f"/ {over} = {_signed_glance(scaled)}"
    plain = _signed_glance(decode_element(element.code, fmt))
    times = scale if block.tensor is None else f"{scale} × t"
    error = f"error {words.plain_error(element.error)} ({_share(element)}), " if element.error else ""
    becomes = f" = {plain}, × {times} = {_decoded(element)}".replace("= ≈", "≈")
    code = line(Span(element_code(element, fmt), Role.CODE), becomes)
    return [
        Row(typed, quotient.replace("= ≈", "≈"), digits_line(element, fmt)),
        Row("", words.decision(rounded, block.context), _happened(element, fmt)),
        Row("", code, line(error, words.flags_line(element.flags))),
    ]


def _table(block: BlockDerivation) -> Table:
    """Return a table of the elements, one per row."""
    fmt = block.format
    rows = []
    for typed, element in zip(_typed(block), block.elements, strict=True):
        scaled = element.scaled
        assert scaled is not None
        becomes = Span(element_code(element, fmt), Role.CODE), Span(_decoded(element), Role.VALUE), _share(element)
        before = Span(typed, Role.VALUE), _signed_glance(scaled), digits_line(element, fmt)
        rows.append((*before, *becomes, _happened(element, fmt)))
    return Table(("value", "scaled", "digits", "code", "becomes", "error", ""), rows)
