"""Data for the explorer's screen Block: the recipes and scale rules to choose from, and the elements that it shows."""

from __future__ import annotations

from floatlab.arith.blocks.records import BlockDerivation, Element
from floatlab.arrays.block_part import MOST, BlockPart
from floatlab.errors import FormatError
from floatlab.formats.blocks import BlockFormat, block_row
from floatlab.formats.catalog import parse_format, short_name
from floatlab.formats.format import Format
from floatlab.formats.recipes import NAMED_RECIPES, Recipe, default_rule, parse_recipe, rules_for
from floatlab.formats.scaling import ScaleRule
from floatlab.numbers import Datum
from floatlab.numbers.rounding import Direction
from floatlab.page.model import Page, Table
from floatlab.record import Record
from floatlab.sandbox import exists
from floatlab.verbs.block.page import element_page, elements_table, exact_text, index_text
from floatlab.verbs.question import Question, code_of


def recipe_choices() -> dict[str, str]:
    """Return the names of recipes, each with a description.

    Each name in `NAMED_RECIPES` is listed alone, and again with each scale rule that is not its default rule.

    >>> choices = recipe_choices()
    >>> choices["mxfp4"], choices["mxfp4:torchao_rceil"]
    ('fp4 weights', 'torchao 0.18.0')
    """
    choices = {}
    for name in NAMED_RECIPES:
        fmt = parse_recipe(name).format
        choices[name] = block_row(fmt).purpose
        choices |= {f"{name}:{rule.name}": _brief(rule) for rule in rules_for(fmt) if rule is not default_rule(fmt)}
    return choices


def _brief(rule: ScaleRule) -> str:
    """Return the first words of a rule's source: the name of a paper or a library, or what the rule does."""
    return rule.source.partition(",")[0].partition(" at ")[0]


def rule_choices(fmt: BlockFormat) -> dict[str, str]:
    """Return the names of the scale rules of a block format, each with the first words of its source.

    >>> rule_choices(parse_recipe("mxfp4").format)["floor"]
    'OCP Microscaling Formats (MX) Specification 1.0'
    """
    return {rule.name: _brief(rule) for rule in rules_for(fmt)}


class PlacedElement(Record):
    """One element, given as its block and its position in the block.

    >>> from floatlab.arith.blocks import quantize_blocks
    >>> [block] = quantize_blocks(["957", "0.25"], "mxfp4")
    >>> element = PlacedElement(block, 0)
    >>> element.code, element.rounding.values, element.rounding.formats[0].name, element.rounding.context
    ('bits:0x7@e2m1', ('7.4765625',), 'e2m1fn', Context(overflow='saturate'))
    """

    block: BlockDerivation
    place: int

    @property
    def element(self) -> Element:
        """The element at this position."""
        return self.block.elements[self.place]

    def page(self) -> Page:
        """Return the page of the element: its steps, and how the scale of the block is computed."""
        return element_page(self.block, self.place)

    @property
    def code(self) -> str:
        """The code of the element and its format, as an argument of the verb `show`; empty if the format is unnamed."""
        fmt = self.block.format.element
        return code_of(Datum(fmt, self.element.code)) if isinstance(fmt, Format) and _is_named(fmt) else ""

    @property
    def rounding(self) -> Question | None:
        """The question for the verb `show` that rounds this element in the same way.

        The question is None if the element is an integer or was not rounded, if its format has no name (as in HiF4), or
        if the scale rule rounds elements in a way that `show` does not offer, such as to the `closest` code.
        """
        block, scaled, fmt = self.block, self.element.scaled, self.block.format.element
        context, rule = block.context, block.rule.rounding
        if not isinstance(fmt, Format) or not _is_named(fmt) or scaled is None:
            return None
        if rule != "RNE" and context.rounding is Direction.RNE:
            if rule not in {direction.value for direction in Direction}:
                return None
            context = context.replace(rounding=Direction(rule))
        return Question("show", (exact_text(scaled),), (fmt,), context)

    def why_no_rounding(self) -> str:
        """Return why `rounding` is None, in words."""
        if self.element.scaled is None:
            return "Nothing is rounded here: the value divided by the scales is not a number"
        return f"Inspect cannot round to {self.block.format.element.name} as the rule {self.block.rule.name} does"


class ShownBlocks:
    """What the screen Block shows: all blocks of an answer, or one part of an array."""

    def __init__(self, found: tuple[BlockDerivation, ...] | BlockPart) -> None:
        """Take the field `found` of an `Answer` to the verb `block`."""
        self._part = found if isinstance(found, BlockPart) else None
        self._blocks = (found.block,) if isinstance(found, BlockPart) else found

    @property
    def recipe(self) -> Recipe:
        """The recipe."""
        return self._blocks[0].recipe

    def table(self) -> Table:
        """Return the table of the elements.

        For a part of an array, an additional first column shows the index of each element.
        """
        part = self._part
        names = None if part is None else [index_text(part, place) for place in part.places]
        return elements_table(self._blocks, names)

    def element(self, place: int) -> PlacedElement | None:
        """Return the element in this row of the table, or None if there is no such row."""
        for block in self._blocks:
            if place < len(block.elements):
                return PlacedElement(block, place)
            place -= len(block.elements)
        return None

    @property
    def at(self) -> str:
        """The index of the first element of the part, as text; empty if all values are shown."""
        return "" if self._part is None else index_text(self._part, self._part.places[0])

    def neighbour(self, by: int) -> str:
        """Return the index of an element in the next or the previous part of the array; empty if there is no such part.

        The element is in the next part if `by` is 1, and in the previous part if `by` is -1.
        """
        part = self._part
        place = None if part is None else part.after if by > 0 else part.before
        return "" if part is None or place is None else index_text(part, place)


def typed_values(text: str) -> tuple[str, ...]:
    """Split text at spaces and commas into values.

    Text with several rows, which are separated by `;`, is one value. The name of an array is one value, too.

    >>> typed_values("1, 2 0.1@bf16"), typed_values("1 2; 3 4"), typed_values("[[1, 2], [3, 4]]")
    (('1', '2', '0.1@bf16'), ('1,2;3,4',), ('[[1, 2], [3, 4]]',))
    """
    text = text.strip()
    if text.startswith("[") or exists(text.partition("::")[0]):
        return (text,)
    if ";" in text:
        return (";".join(",".join(row.replace(",", " ").split()) for row in text.split(";")),)
    return tuple(text.replace(",", " ").split())


def in_parts(question: Question) -> Question:
    """Return the question, limited to the first part if the question has more values than one part can show."""
    rows = question.values if len(question.values) != 1 else question.values[0].replace(";", ",").split(",")
    return question if question.option("at") is not None or len(rows) <= MOST else question.having(at="0")


def _is_named(fmt: Format) -> bool:
    try:
        return parse_format(short_name(fmt)) == fmt
    except FormatError:
        return False
