"""What the explorer needs of blocks: the choices of recipes and scale rules, and single elements."""

from __future__ import annotations

from floatlab.arith.blocks.records import BlockDerivation, Element
from floatlab.errors import FormatError
from floatlab.formats.blocks import BlockFormat, block_row
from floatlab.formats.catalog import parse_format, short_name
from floatlab.formats.format import Format
from floatlab.formats.recipes import NAMED_RECIPES, default_rule, parse_recipe, rules_for
from floatlab.formats.scaling import ScaleRule
from floatlab.numbers import Datum
from floatlab.numbers.rounding import Direction
from floatlab.page.model import Page
from floatlab.record import Record
from floatlab.verbs.block.page import element_page, exact_text
from floatlab.verbs.question import Question, code_of


def recipe_choices() -> dict[str, str]:
    """Return the named block formats with each of their scale rules: names of recipes, and what they are.

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
    """Return the beginning of a rule's source: a paper, a library, or what the rule does."""
    return rule.source.partition(",")[0].partition(" at ")[0]


def rule_choices(fmt: BlockFormat) -> dict[str, str]:
    """Return the scale rules of a block format by name, with the beginnings of their sources.

    >>> rule_choices(parse_recipe("mxfp4").format)["floor"]
    'OCP Microscaling Formats (MX) Specification 1.0'
    """
    return {rule.name: _brief(rule) for rule in rules_for(fmt)}


class PlacedElement(Record):
    """An element of a block: the block, and the element's position in it.

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
        """The element."""
        return self.block.elements[self.place]

    def page(self) -> Page:
        """Return the page of the element: its steps, and the rows of the block's scale."""
        return element_page(self.block, self.place)

    @property
    def code(self) -> str:
        """The code with its format; an empty text if `show` does not know the format."""
        fmt = self.block.format.element
        return code_of(Datum(fmt, self.element.code)) if isinstance(fmt, Format) and _is_named(fmt) else ""

    @property
    def rounding(self) -> Question | None:
        """The question of `show` that rounds the element as its block does; None if `show` cannot.

        `show` has no integers and no formats without a name, such as the elements of HiF4. The rules of some libraries
        round in ways other than the directions of `show`.
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
        """Return why there is no question of `show`."""
        if self.element.scaled is None:
            return "Nothing is rounded here: the value divided by the scales is not a number"
        return f"Inspect cannot round to {self.block.format.element.name} as the rule {self.block.rule.name} does"


def element_at(blocks: tuple[BlockDerivation, ...], place: int) -> PlacedElement | None:
    """Return the element at a position of all elements; None if there are fewer."""
    for block in blocks:
        if place < len(block.elements):
            return PlacedElement(block, place)
        place -= len(block.elements)
    return None


def _is_named(fmt: Format) -> bool:
    try:
        return parse_format(short_name(fmt)) == fmt
    except FormatError:
        return False
