"""The answer of `block`: values scaled and rounded in blocks by a recipe, such as MX or NVFP4."""

from __future__ import annotations

import math
import re

from floatlab.arith.blocks import quantize_blocks
from floatlab.arith.blocks.records import BlockDerivation
from floatlab.errors import LiteralError, quoted
from floatlab.formats.blocks import BlockFormat
from floatlab.formats.recipes import Recipe, parse_recipe
from floatlab.numbers import Context, Derivation
from floatlab.numbers.exact import Code
from floatlab.numbers.reading import read_literal
from floatlab.numbers.rounding import DEFAULT
from floatlab.page.measures import shape_text
from floatlab.page.model import Page
from floatlab.sandbox import exists
from floatlab.verbs.option import can_read
from floatlab.verbs.question import Answer, Question, Started, read_operand, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.arrays.block_part import BlockPart

_FILE = re.compile(r"\.(npy|npz|safetensors|gguf|txt|csv|tsv|dat)(::.*)?\Z", re.IGNORECASE)


def block(
    values: tuple[str, ...],
    to: str | BlockFormat | Recipe,
    context: Context = DEFAULT,
    *,
    scale: str | None = None,
    tensor_scale: str | None = None,
    at: str | None = None,
) -> Answer:
    """Return the answer of `floatlab block`: values rounded to a block format.

    VALUE@FORMAT is first rounded to that format; all other values are exact. A single value may also be rows of values
    (`1,2;3,4`), a file with an array, or a random array. With an array or with `at`, the answer shows only one block:
    the block of the element with the index `at` (default: the first element). Of a large block, the answer shows only a
    part.

    >>> answer = block(("957", "1"), "mxfp8_e4m3")
    >>> answer.words(), answer.codes()
    (['896', '1'], ['0x80 0x7e 0x30'])
    """
    recipe = parse_recipe(to)
    if not values:
        raise LiteralError("block needs at least one value")
    given = None if tensor_scale is None else _value(tensor_scale, context)
    if len(values) == 1 and _names_array(values[0]):
        return _answer_for_array(values[0], recipe.with_rule(scale), context, given, at)
    rows = [[_value(text, context) for text in row] for row in _rows(values)]
    if at is None:
        return answer_of(*quantize_blocks(rows, recipe, scale, context, given))
    from floatlab.arrays.block_part import values_part

    place = _place(at, (len(rows), len(rows[0])) if len(rows) > 1 else (len(rows[0]),))
    return _answer_of_part(values_part(rows, recipe.with_rule(scale), place, context, given), "")


def _rows(values: tuple[str, ...]) -> list[list[str]]:
    """Return the typed values as rows. A single text such as `1,2;3,4` has several rows; other values are one row."""
    if len(values) > 1 or not any(mark in values[0] for mark in ",;"):
        return [list(values)]
    rows = [[text.strip() for text in row.split(",")] for row in values[0].split(";")]
    if not all(text for row in rows for text in row):
        raise LiteralError(f"a number is missing between commas in {quoted(values[0])}")
    if len({len(row) for row in rows}) > 1:
        raise LiteralError(f"the rows of {quoted(values[0])} have {' and '.join(str(len(row)) for row in rows)} values")
    return rows


def _names_array(word: str) -> bool:
    """Return whether a word names an array: a file, random:…, or [[1, 2], …].

    A word that can be read as a number names no array, even if a file has this name.
    """
    is_name = word.startswith(("random:", "[")) or _FILE.search(word) is not None
    return (is_name or exists(word)) and not can_read(word, read_operand)


def _place(text: str, shape: tuple[int, ...]) -> int:
    """Return the position of an element in C order, from text such as 3,17 (an index) or 209 (the position itself)."""
    parts = [part.strip() for part in text.split(",")]
    if not all(re.fullmatch("[0-9]{1,12}", part) for part in parts):
        raise LiteralError(f"--at takes the index of an element, such as 3,17, not {quoted(text)}")
    index = [int(part) for part in parts]
    whole = (math.prod(shape),) if len(index) == 1 else shape
    if len(index) != len(whole) or any(i >= size for i, size in zip(index, whole, strict=True)):
        raise LiteralError(f"--at {text}: there is no such element in an array of {shape_text(shape)}")
    place = 0
    for i, size in zip(index, whole, strict=True):
        place = place * size + i
    return place


def _answer_for_array(
    word: str, recipe: Recipe, context: Context, tensor_scale: str | Derivation | None, at: str | None
) -> Answer:
    from floatlab.arrays.block_part import block_part
    from floatlab.arrays.sources import source_of
    from floatlab.files.readers import open_array

    with open_array(word) as opened:
        kind, shape = opened.kind, opened.shape
        source = source_of(opened.whole())
    place = _place(at, shape) if at is not None else 0
    return _answer_of_part(
        block_part(source, recipe, place, context, tensor_scale), f"{word}, {shape_text(shape)} {kind},"
    )


def _answer_of_part(part: BlockPart, name: str) -> Answer:
    def page() -> Page:
        from floatlab.verbs.block.page import part_page

        return part_page(part, name)

    return answer_of(part.block).replace(page=page, found=part)


def answer_of(*blocks: BlockDerivation) -> Answer:
    """Return the answer that shows these blocks, one after another."""

    def page() -> Page:
        from floatlab.verbs.block.page import block_page

        return block_page(blocks)

    def codes() -> list[str]:
        return [_codes(each) for each in blocks]

    return Answer(page, written(*blocks), lambda: _words(blocks), codes, found=blocks)


def _value(text: str, context: Context) -> str | Derivation:
    """Return the text of a value or, for VALUE@FORMAT, the derivation that rounds VALUE to FORMAT."""
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
    """Return the codes of a block: of the scale, of the minimum (if stored), and of the elements."""
    from floatlab.verbs.block.page import element_code

    codes = [element_code(element, each.format) for element in each.elements]
    low = [] if each.minimum is None else [f"0x{each.minimum.code:02x}"]
    return " ".join([f"0x{each.scale_code:02x}", *low, *codes])


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Return the answer to a question."""
    return [block(question.values, context=question.context, **dict(question.options))]
