"""`block`: computes the answer for values that are scaled and rounded by a recipe, such as MX or NVFP4."""

from __future__ import annotations

from floatlab.arith.blocks import quantize_blocks
from floatlab.arith.blocks.records import BlockDerivation
from floatlab.errors import LiteralError, quoted
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.recipes import Recipe, parse_recipe
from floatlab.numbers import Context, Derivation
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.numbers.rounding import DEFAULT
from floatlab.page.model import Page
from floatlab.verbs.question import Answer, Question, Started, read_operand, written


def block(
    values: tuple[str, ...],
    to: str | BlockFormat | Recipe,
    context: Context = DEFAULT,
    *,
    scale: str | None = None,
    tensor_scale: str | None = None,
) -> Answer:
    """Return the answer of `floatlab block`: values rounded to a block format.

    VALUE@FORMAT is first rounded to that format; all other values are exact.

    >>> answer = block(("957", "1"), "mxfp8_e4m3")
    >>> answer.words(), answer.codes()
    (['896', '1'], ['0x80 0x7e 0x30'])
    """
    recipe = parse_recipe(to)
    if not values:
        raise LiteralError("block needs at least one value")
    given = None if tensor_scale is None else _value(tensor_scale, context)
    return answer_of(*quantize_blocks([_value(text, context) for text in values], recipe, scale, context, given))


def answer_of(*blocks: BlockDerivation) -> Answer:
    """Return the answer that shows these blocks in sequence."""

    def page() -> Page:
        from floatlab.verbs.block.page import block_page

        return block_page(blocks)

    def codes() -> list[str]:
        return [_codes(each) for each in blocks]

    return Answer(page, written(*blocks), lambda: _words(blocks), codes, found=blocks)


def _value(text: str, context: Context) -> str | Derivation:
    """Return a value as text; for VALUE@FORMAT, return the derivation of its rounding to this format."""
    literal, own = read_operand(text)
    if own is not None:
        return read_literal(literal, own)
    if isinstance(literal.value, Code):
        raise LiteralError(f"{quoted(text)}: a code needs a format, as in {quoted(text + '@fp32')}")
    return literal.text


def _words(blocks: tuple[BlockDerivation, ...]) -> list[str]:
    """Return the decoded values of all elements, with all digits."""
    from floatlab.verbs.block.page import exact_text

    decoded = [element.decoded for each in blocks for element in each.elements]
    return ["nan" if x is None else exact_text(x) for x in decoded]


def _codes(each: BlockDerivation) -> str:
    """Return the codes of a block: the code of the scale, that of the minimum, then those of the elements."""
    from floatlab.verbs.block.page import element_code

    codes = [element_code(element, each.format) for element in each.elements]
    low = [] if each.minimum is None else [f"0x{each.minimum.code:02x}"]
    return " ".join([f"0x{each.scale_code:02x}", *low, *codes])


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Return the answer to a question."""
    return [block(question.values, context=question.context, **dict(question.options))]
