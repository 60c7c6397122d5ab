"""The page of a recipe: what is stored, and how the scale of a block is computed, with the source."""

from __future__ import annotations

from floatlab.formats.blocks import block_row
from floatlab.formats.recipes import Recipe, rules_for
from floatlab.formats.scaling import PRODUCT, ScaleRule
from floatlab.numbers.printing import rounded_decimal, terminating_decimal
from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, heading, line


def recipe_page(recipe: Recipe) -> Page:
    """Return the page of a recipe: its format, its scale rule, and the names of other rules for this format.

    >>> from floatlab.formats.recipes import parse_recipe
    >>> print(recipe_page(parse_recipe("e4m3/tensor:te")).title)
    the recipe e4m3/tensor:te
    """
    fmt, row = recipe.format, block_row(recipe.format)
    bits = terminating_decimal(fmt.bits) or f"≈ {rounded_decimal(fmt.bits)}"
    blocks: list[Block] = [
        Note(line(Span(recipe.name, Role.HEADING), f"  {row.purpose}")),
        Row("elements", fmt.element.name),
        Row("scales", f"{fmt.scale.name}, one {'and a minimum ' * fmt.minimum}for {_block_in_words(fmt.shape)}"),
    ]
    if fmt.tensor is not None:
        whole = "each row" if fmt.by_row else "the tensor" if fmt.superblock is None else f"{fmt.superblock} elements"
        blocks.append(Row("tensor scale", f"{fmt.tensor.name}, one {'and a minimum ' * fmt.minimum}for {whole}"))
    blocks += [Row("bits", f"{bits} a value"), Row("source", row.source), Gap()]
    blocks += [heading(f"Scale rule {recipe.rule.name}"), *_rule_rows(recipe.rule), Gap()]
    blocks.append(heading("Scale rules for this format (write :RULE after it)"))
    rules = rules_for(fmt)
    if any(rule.is_exact for rule in rules):
        blocks.append(Row("exact", " ".join(rule.name for rule in rules if rule.is_exact)))
    if any(not rule.is_exact for rule in rules):
        blocks.append(Row("of libraries", " ".join(rule.name for rule in rules if not rule.is_exact)))
    return Page(tuple(blocks), f"the recipe {recipe.name}")


def _block_in_words(shape: str) -> str:
    flat = f"{shape.removeprefix('flat')} of the flattened tensor"
    return flat if shape.startswith("flat") else {"tensor": "the tensor", "channel": "each row"}.get(shape, shape)


def _rule_rows(rule: ScaleRule) -> list[Block]:
    working = {"": "exact; each result is rounded once", "input": "each operation in the format of the values"}
    rows: list[Block] = [Row("source", rule.source)]
    rows.append(Row("arithmetic", working.get(rule.working, f"each operation is rounded into {rule.working}")))
    if rule.search:
        rows.append(Row("search", f"{rule.search}(x) gives step, depth and found"))
    rows += [Row(text.name, str(text.formula)) for text in rule.steps()]
    if rule.choice is not None:
        factors = " or ".join(rule.choice.factors)
        measure = {"square": "sum of squares", "absolute": "sum of magnitudes", "largest": "largest magnitude"}
        chosen = f"grow = {factors}, whichever has the smaller {measure[rule.choice.measure]} of {rule.choice.error}"
        rows.append(Row("choice", chosen))
    if rule.rounding != "RNE":
        ways = {
            "RNZ": "to nearest, ties toward zero",
            "RND": "to nearest, ties to the lower number",
            "closest": "the first code with the least |q * scale - x|",
        }
        rows.append(Row("rounding", ways.get(rule.rounding, rule.rounding)))
    if rule.value != PRODUCT:
        rows.append(Row("decoded", rule.value))
    return rows
