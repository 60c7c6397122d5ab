"""The page of `block`: the largest magnitude of the values, the scale derived from it, and the elements."""

from __future__ import annotations

import math

from floatlab.arith.blocks import ERROR
from floatlab.arith.blocks.records import BlockDerivation, Element, element_value
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.recipes import Recipe
from floatlab.formats.scaling import BLOCK, PRODUCT, TENSOR
from floatlab.numbers import Datum, Exact, Flags, Ratio
from floatlab.numbers.exact import Infinity, NotANumber
from floatlab.numbers.printing import ratio_text, rounded_decimal, terminating_decimal
from floatlab.page import words
from floatlab.page.datum import coded
from floatlab.page.model import Block, Gap, Line, Page, Role, Row, Span, Table, Text, heading, line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fractions import Fraction

    from floatlab.arith.blocks.formulas import Value
    from floatlab.arrays.block_part import BlockPart


FEW = 4  # with more elements than this, a table replaces the steps
_LONGEST_DECIMAL = 12  # a decimal with more characters than this is rounded
_FIGURES = 6


def block_page(blocks: tuple[BlockDerivation, ...]) -> Page:
    """Return the page of consecutive blocks of a tensor."""
    first = blocks[0]
    count = sum(len(block.elements) for block in blocks)
    fmt, short = first.format, len(blocks[-1].elements)
    title = f"{_summary(blocks)} in {first.recipe.name}"
    parts: list[Block] = [heading(title), _format_row(first.recipe)]
    if fmt.block is not None and short < fmt.block:
        effect = "could change the scale and the minimum" if fmt.minimum else "would not change the scale"
        note = f"{short} {words.plural(short, 'value')} of {fmt.block}: zero padding {effect}"
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


def part_page(part: BlockPart, name: str) -> Page:
    """Return the page of a part of an array. `name` describes the array, and is empty if the values were typed."""
    block, count = part.block, math.prod(part.shape)
    title = f"{name or words.counted(count, 'value')} in {block.recipe.name}"
    first, last = (index_text(part, part.places[end]) for end in (0, -1))
    which = f"elements {first} to {last}" if last != first else f"element {first}"
    of = "one block" if len(part.places) == part.size else f"{len(part.places):,} of the {part.size:,} in a block"
    parts = [heading(title), _format_row(block.recipe), *_tensor_rows(block), Gap(), heading(f"{which}: {of}")]
    table = elements_table((block,), [index_text(part, place) for place in part.places])
    return Page((*parts, *scale_rows(block), table), title)


def index_text(part: BlockPart, place: int) -> str:
    """Return the index of an element as `--at` takes it."""
    return ",".join(map(str, part.index(place)))


def _summary(blocks: tuple[BlockDerivation, ...]) -> str:
    elements = [element for block in blocks for element in block.elements]
    if len(elements) <= FEW:
        return ", ".join(typed for block in blocks for typed in _typed(block))
    return f"{len(elements)} values"


def _typed(block: BlockDerivation) -> list[str]:
    """Return the values as typed. Values from an array are shortened."""
    return [
        words.abbreviated(text, 20) if text is not None else value_text(element)
        for text, element in zip(block.literals, block.elements, strict=True)
    ]


def value_text(element: Element) -> str:
    """Return an element's value, shortened to a few characters."""
    value = element.value
    if isinstance(value, Ratio):
        return _signed_text(value)
    return special_text(value)


def special_text(value: Infinity | NotANumber) -> str:
    """Return ∞ or a NaN as a user types it."""
    sign = "-" if value.negative else ""
    return f"{sign}inf" if isinstance(value, Infinity) else f"{sign}nan"


def exact_text(x: Ratio) -> str:
    """Return the exact value as text: a decimal if it terminates, else N/D.

    >>> exact_text(Ratio(False, 3, 8)), exact_text(Ratio(True, 1, 3))
    ('0.375', '-1/3')
    """
    if x.denominator & (x.denominator - 1):
        return ratio_text(x)
    return ratio_text(x.replace(denominator=1, twos=x.twos - x.denominator.bit_length() + 1))


def short_text(x: Fraction) -> str:
    """Return a number as text: its exact value if that is short, or else a rounded value after ≈.

    >>> from fractions import Fraction
    >>> short_text(Fraction(957, 2)), short_text(Fraction(1, 3)), short_text(Fraction(1, 2**40))
    ('478.5', '≈ 0.333333', '2^-40')
    """
    decimal = terminating_decimal(x, 40)
    if decimal is not None and len(decimal) <= _LONGEST_DECIMAL:
        return decimal
    n, d = x.numerator, x.denominator
    if n > 0 and (n == 1 or d == 1) and not (n * d) & (n * d - 1):
        return f"2^{n.bit_length() - d.bit_length()}"
    return f"≈ {rounded_decimal(x, _FIGURES)}"


def _signed_text(x: Ratio | Exact) -> str:
    """Return a number as `short_text` does, but write −0 with its sign."""
    value = x.as_fraction()
    return "-0" if x.negative and not value else short_text(value)


def _format_row(recipe: Recipe) -> Row:
    fmt = recipe.format
    bits = terminating_decimal(fmt.bits) or f"≈ {rounded_decimal(fmt.bits)}"
    scale = "scale and one minimum" if fmt.minimum else "scale"
    whole = "each row" if fmt.by_row else "all" if fmt.superblock is None else str(fmt.superblock)
    tensor = "" if fmt.tensor is None else f", a {fmt.tensor.name} {scale} for {whole}"
    size = {"tensor": "the tensor", "channel": "each row"}.get(fmt.shape, fmt.shape.removeprefix("flat"))
    scales = f"one {fmt.scale.name} {scale} for {size}{tensor}"
    if recipe.rule.name == "none":
        more = "overflow saturates in block; convert and audit --to saturate only with an option"
        return Row(fmt.name, f"{fmt.element.name}, no scales: {bits} bits a value; {more}")
    return Row(fmt.name, f"{fmt.element.name}, {scales}: {bits} bits a value")


def _tensor_rows(block: BlockDerivation) -> list[Block]:
    tensor, fmt = block.tensor, block.format
    if tensor is None:
        return []
    if not _in_words(block) and any(step.name == "tensor" for step in block.steps):
        results = {"tensor": tensor.datum, "tensor_minimum": tensor.minimum}
        shown = "NaN or ∞" if tensor.amax is None else short_text(tensor.amax.as_fraction())
        return [Row("tensor_amax", shown), *_formula_rows(block, TENSOR, results)]
    if tensor.amax is None:
        return [Row("tensor", "given", _datum(tensor.datum))]
    if not tensor.amax.numerator:
        why = "all values are zero" if block.amax is not None else "blocks with NaN or ∞ do not count"
        return [Row("tensor", f"1, since {why}", _datum(tensor.datum))]
    amax, element, scale = tensor.amax.as_fraction(), fmt.magnitudes.largest, fmt.scale.largest
    made = f"t = {short_text(amax)} / ({short_text(element)} × {short_text(scale)})".replace("= ≈", "≈")
    return [Row("tensor", made, _datum(tensor.datum)), *_range_rows(amax / (element * scale), tensor.datum)]


def _in_words(block: BlockDerivation) -> bool:
    """Return whether the page explains the scale rule in words instead of by formulas."""
    return block.rule.is_exact and block.rule.choice is None and block.rule.name not in ("none", "range")


def _formula_rows(block: BlockDerivation, level: int, stored: dict[str, Datum | None]) -> list[Block]:
    """Return a row for each formula of the scale rule that is computed once per tensor or per block (`level`).

    If a rule tries several scales for a block, their errors have rows, too. If the result of a formula is stored,
    `stored` maps the formula's name to the stored datum.
    """
    lines = {line.name: line.level for line in block.rule.steps()}
    names = {step.name for step in block.steps if lines.get(step.name, BLOCK) == level}
    return [
        Row(
            step.name,
            f"{step.formula} = {_amount(step.value)}".replace("= ≈", "≈"),
            _datum(kept, block) if (kept := stored.get(step.name)) is not None else (),
        )
        for step in block.steps
        if step.name in names or (level == BLOCK and step.name.startswith(ERROR))
    ]


def _group_rows(block: BlockDerivation) -> list[Block]:
    """Return a row for each group size of HiF4, where each group of elements in a block has an additional exponent."""
    return [
        Row(f"groups of {size}", f"exponents {' '.join(map(str, exponents))}")
        for size, exponents in zip(block.format.groups, block.groups, strict=True)
    ]


def _amount(value: Value) -> str:
    return _signed_text(value) if isinstance(value, Ratio) else special_text(value)


def _datum(datum: Datum, block: BlockDerivation | None = None) -> Line:
    """Return a datum with its code. If the datum is the scale of `block`, the code is the one that the block stores."""
    name = f", {datum.format.name}"
    if block is not None and block.format.first_scale:
        return line(Span(f"0x{block.scale_code:02x}", Role.CODE), f" {words.equals(datum)}", name)
    return line(*coded(datum, words.equals(datum)), name)


def scale_rows(block: BlockDerivation) -> list[Block]:
    """Return rows with amax (the largest magnitude), the scale that the rule computes, and the scale that is stored."""
    fmt, amax = block.format, block.amax
    lost = amax is None and block.rule.is_exact and block.scale.is_nan
    if not _in_words(block) and not lost:
        shown = "NaN or ∞" if amax is None else short_text(amax.as_fraction())
        results = {"scale": block.scale, "minimum": block.minimum}
        rows: list[Block] = [
            Row("amax", shown, _in_binary(amax) if amax else ()),
            *_formula_rows(block, BLOCK, results),
        ]
        return [*rows, *_group_rows(block)]
    if amax is None:
        note = "a value is NaN or infinite: the scale is NaN, and so is every element"
        return [Row("scale", Span("NaN", Role.BAD), _datum(block.scale)), Row("", note)]
    if block.wanted is None:
        note = "every value is zero: the smallest scale is used"
        return [Row("amax", "0"), Row("scale", note, _datum(block.scale))]
    value = amax.as_fraction()
    largest = short_text(fmt.magnitudes.largest)
    rows = [Row("amax", short_text(value), _in_binary(amax))]
    if block.exponent is not None:
        e, emax = block.exponent, fmt.magnitudes.emax
        wanted = f"2^({e} − {words.bracketed(emax)}) = {short_text(block.wanted.as_fraction())}"
        counted = {
            "floor": f"{e} is the exponent of amax",
            "even": f"{e} is the exponent of amax rounded to {fmt.magnitudes.precision} digits",
            "ceil": f"2^{e} is the smallest power of two that is at least amax",
        }[block.rule.name]
        note = f"{counted}, {emax} that of {fmt.element.name}'s largest number, {largest}"
    else:
        over = "" if block.tensor is None else " / t"
        wanted = f"amax / {largest}{over} = {short_text(block.wanted.as_fraction())}"
        up = block.rule.name == "up"
        note = f"rounded {'upward' if up else 'to nearest'} into {fmt.scale.name}{', so that nothing saturates' * up}"
    rows += [
        Row("scale", wanted.replace("= ≈", "≈"), _datum(block.scale)),
        Row(f"  {block.rule.name}", Span(note, Role.HINT)),
    ]
    return [*rows, *_range_rows(block.wanted.as_fraction(), block.scale)]


def _in_binary(amax: Ratio) -> Line:
    """Return amax in binary, as d.ddd × 2^e; empty if amax is no short binary number."""
    x = amax.as_fraction()
    if x.denominator & (x.denominator - 1) or max(x.numerator, x.denominator).bit_length() > _FIGURES * 8:
        return ()
    exact = Exact(False, x.numerator, 1 - x.denominator.bit_length()).normalized()
    return line(words.point(f"{exact.c:b}"), f" × 2^{exact.exponent}")


def _range_rows(wanted: Fraction, scale: Datum) -> list[Block]:
    """Return a row that says which scale is used instead of a scale outside the range of its format.

    The list is empty if the wanted scale is inside the range.
    """
    kind = scale.format
    if kind.smallest <= wanted <= kind.largest:
        return []
    where = "above the largest" if wanted > kind.largest else "below the smallest"
    used = f"{where} number of {kind.name}: {words.brief(scale)} is used instead"
    return [Row("", Span(used, Role.FLAG))]


def outcome(element: Element, fmt: BlockFormat) -> str:
    """Return a remark on a rounded element, such as "exact" or "saturates at 6"; empty for an ordinary rounding."""
    rounded = element.rounded
    if element.decoded is None:
        return "NaN"
    if rounded is not None and rounded.overflowed:
        return f"saturates at {_plain_value(element, fmt)}"
    if not element.flags:
        return "" if element.error else "exact"
    if not element.decoded.numerator:
        return "becomes zero"
    return "underflow" if Flags.UNDERFLOW in element.flags else ""


def _plain_value(element: Element, fmt: BlockFormat) -> str:
    value = element_value(element.code, fmt)
    return "NaN" if value is None else _amount(value)


def _happened(element: Element, fmt: BlockFormat) -> Line:
    note = outcome(element, fmt)
    return line(Span(note, Role.FLAG if element.flags else Role.HINT)) if note else ()


def element_code(element: Element, fmt: BlockFormat) -> str:
    """Return the code of an element in hexadecimal, padded with zeros."""
    return f"0x{element.code:0{-(-fmt.element.width // 4)}x}"


def digits_line(element: Element, fmt: BlockFormat) -> Line:
    """Return the scaled value in binary, with `|` between the kept and the discarded digits."""
    rounded = element.rounded
    if rounded is None:
        return ()
    return words.rounded_digits(rounded, fmt.magnitudes)


def _percent(element: Element) -> str:
    """Return the relative error as a signed percentage; empty if the error is 0 or the value is 0."""
    error, value = element.error, element.value
    if not error or not isinstance(value, Ratio) or not value.numerator:
        return ""
    towards = 100 * error / abs(value.as_fraction())
    return f"{words.signed_text(rounded_decimal(towards, 3))} %"


def _element_blocks(block: BlockDerivation) -> list[Block]:
    if block.scale.is_nan and block.rule.is_exact:
        return [Row("values", ", ".join(words.abbreviated(each, 20) for each in _typed(block)))]
    if len(block.elements) <= FEW:
        return [row for pair in zip(_typed(block), block.elements, strict=True) for row in _rows(*pair, block)]
    return [elements_table((block,))]


def element_page(block: BlockDerivation, place: int) -> Page:
    """Return the page of one element of a block: its steps, and how the scale of the block is computed."""
    element = block.elements[place]
    alone = block.replace(elements=(element,), literals=block.literals[place : place + 1])
    return Page((*_element_blocks(alone), *scale_rows(block)), _typed(alone)[0])


def _decoded(element: Element) -> str:
    return "NaN" if element.decoded is None else _signed_text(element.decoded)


def _rows(typed: str, element: Element, block: BlockDerivation) -> list[Block]:
    """Return rows that show the steps of an element."""
    fmt, rounded = block.format, element.rounded
    share = f" ({_percent(element)})" if _percent(element) else ""
    error = f"error {words.plain_error(element.error)}{share}, " if element.error else ""
    code = line(Span(element_code(element, fmt), Role.CODE), _decoding_text(element, block).replace("= ≈", "≈"))
    decision = words.decision(rounded, block.context) if rounded else block.rule.rounding
    return [
        Row(typed, _scaling_text(element, block).replace("= ≈", "≈"), digits_line(element, fmt)),
        Row("", decision, _happened(element, fmt)),
        Row("", code, line(error, words.flags_line(element.flags))),
    ]


def _scaling_text(element: Element, block: BlockDerivation) -> str:
    """Return the formula that scales an element (a division unless the rule has another formula), and its result."""
    scaled = "NaN" if element.scaled is None else _signed_text(element.scaled)
    if not _in_words(block):
        return f"{block.rule.steps()[-1].formula} = {scaled}"
    scale = words.brief(block.scale)
    return f"/ {scale if block.tensor is None else f'({scale} × t)'} = {scaled}"


def _decoding_text(element: Element, block: BlockDerivation) -> str:
    """Return what the code of an element denotes, first without the scales and then with them."""
    plain = _plain_value(element, block.format)
    scale = words.brief(block.scale)
    if block.rule.value == PRODUCT:
        return f" = {plain}, × {scale if block.tensor is None else f'{scale} × t'} = {_decoded(element)}"
    return f" = {plain}, {block.rule.value} = {_decoded(element)}"


def elements_table(blocks: tuple[BlockDerivation, ...], names: list[str] | None = None) -> Table:
    """Return a table with one row per element of the blocks.

    If `names` are given, they fill an additional first column.
    """
    rows: list[tuple[Text, ...]] = []
    for block in blocks:
        fmt = block.format
        for typed, element in zip(_typed(block), block.elements, strict=True):
            scaled = "NaN" if element.scaled is None else _signed_text(element.scaled)
            becomes = (
                Span(element_code(element, fmt), Role.CODE),
                Span(_decoded(element), Role.VALUE),
                _percent(element),
            )
            before = Span(typed, Role.VALUE), scaled, digits_line(element, fmt)
            rows.append((*before, *becomes, _happened(element, fmt)))
    header = ("value", "scaled", "digits", "code", "becomes", "error", "")
    if names is None:
        return Table(header, rows)
    return Table(("at", *header), [(name, *row) for name, row in zip(names, rows, strict=True)])
