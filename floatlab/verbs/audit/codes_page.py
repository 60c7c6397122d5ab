"""The page of `audit --from`: which recipe produced a tensor's codes, and an element that recipes round differently."""

from __future__ import annotations

from fractions import Fraction

from floatlab.auditing.recipe_search.records import DerivedElement, MatchedRecipe, RecipeSearch, TellingElement
from floatlab.numbers.printing import rounded_decimal
from floatlab.page.measures import percent
from floatlab.page.model import Block, Gap, Note, Page, Role, Row, Span, Table, heading, line
from floatlab.page.words import counted, listed
from floatlab.verbs.block.page import short_text

_MOST_NAMES = 6
_DIGITS = 10


def codes_page(found: RecipeSearch) -> Page:
    """Return the page that shows which recipe produced the codes."""
    title = f"{found.source} from {found.original}: {_verdict(found)}"
    shape = "×".join(map(str, found.shape))
    blocks: list[Block] = [
        heading(title),
        Row("original", f"{shape}, {found.format}", Span(f"{counted(found.tried, 'recipe')} tried", Role.HINT)),
    ]
    best = (*found.recipes, *found.nearest)[:1]
    for each in best:
        blocks += _recipe_rows(each, "recipe" if found.is_found else "nearest")
    if found.recipes[1:]:
        also = [
            Row("" if at else "the same codes", each.name, Span(each.source, Role.HINT))
            for at, each in enumerate(found.recipes[1:])
        ]
        blocks += [Gap(), *also]
    blocks += [Row("" if at else "remarks", Span(words, Role.FLAG)) for at, words in enumerate(found.remarks)]
    others = found.nearest if found.is_found else found.nearest[1:]
    if others:
        caption = "Recipes that do not give these codes" if found.is_found else "The next nearest recipes"
        blocks += [Gap(), Note(caption), _table(others)]
    if found.element is not None:
        blocks += [Gap(), heading(_element_title(found)), *_element_rows(found.element)]
    for example in found.examples:
        names = " and ".join(each.recipe for each in example.derivations)
        blocks += [Gap(), heading(f"An element that would tell {names} apart"), *_element_rows(example)]
    return Page(tuple(blocks), title)


def _verdict(found: RecipeSearch) -> str:
    if not found.is_found:
        if not found.nearest:
            return "no recipe gives these codes"
        best = found.nearest[0]
        lost = best.codes_tried - best.codes
        if lost:
            return f"no recipe; {best.name} gives all but {lost:,} of {counted(best.codes_tried, 'code')}"
        wrong = best.scales_tried - best.scales
        if wrong:
            return f"no recipe; {best.name} gives all codes, but not {counted(wrong, 'scale')}"
        return f"no recipe; {best.name} gives all codes and scales, but a different tensor scale"
    if len(found.recipes) == 1:
        return f"{found.recipe} made these codes"
    names = [each.name for each in found.recipes]
    few = names[:_MOST_NAMES] + [f"{len(names) - _MOST_NAMES} more"] * (len(names) > _MOST_NAMES)
    return f"{len(names)} recipes give these codes: {listed(few)}"


def _recipe_rows(each: MatchedRecipe, label: str) -> list[Block]:
    role = Role.GOOD if each.is_exact else Role.FLAG
    rows: list[Block] = [Row(label, Span(each.name, role), Span(each.source, Role.HINT))]
    rows.append(Row("codes", _agreeing(each.codes, each.codes_tried, each.first_code)))
    if each.scales_tried:
        rows.append(Row("scales", _agreeing(each.scales, each.scales_tried, each.first_scale)))
    if each.tensor_scale:
        rows.append(Row("tensor scale", each.tensor_scale))
    rows += [Row("stored" if not at else "", words) for at, words in enumerate(each.layout)]
    return [*rows, *(Row(f"  {name}", words) for name, words in each.properties)]


def _agreeing(part: int, whole: int, first: tuple[int, ...] | None) -> str:
    if part == whole:
        return f"all {whole:,} agree" if whole > 1 else "the only one agrees"
    where = "" if first is None else f"; the first at {_index(first)}"
    return f"{part:,} of {whole:,} agree ({percent(part, whole)}), {whole - part:,} differ{where}"


def _index(index: tuple[int, ...]) -> str:
    return str(index[0]) if len(index) == 1 else f"({', '.join(map(str, index))})"


def _table(others: tuple[MatchedRecipe, ...]) -> Table:
    rows = [
        (
            each.name,
            percent(each.codes, each.codes_tried),
            percent(each.scales, each.scales_tried) if each.scales_tried else "·",
            "·" if each.first_code is None else _index(each.first_code),
        )
        for each in others
    ]
    return Table(("recipe", "codes", "scales", "first code"), rows, right=(1, 2, 3))


def _element_title(found: RecipeSearch) -> str:
    assert found.element is not None
    where = _index(found.element.index)
    names = [each.recipe for each in found.element.derivations]
    if len(names) == 1:
        return f"The first element that {names[0]} does not give: {where}"
    return f"The first element that tells {names[0]} from {names[1]}: {where}"


def _amount(value: Fraction | None) -> str:
    """Return a number as text, with enough digits to show on which side of a tie it lies."""
    if value is None:
        return "NaN or ∞"
    text = short_text(value)
    return f"≈ {rounded_decimal(value, _DIGITS)}" if text.startswith("≈") else text


def _element_rows(element: TellingElement) -> list[Block]:
    rows: list[Block] = [
        Row("element", _amount(element.number), Span(f"amax of its block {_amount(element.largest)}", Role.HINT))
    ]
    if element.code is not None:
        scale = "" if element.scale is None else f", scale {_amount(element.scale)}"
        rows.append(Row("stored", line(Span(f"0x{element.code:x}", Role.CODE), scale)))
    return [*rows, *(row for each in element.derivations for row in _derivation_rows(each))]


def _derivation_rows(each: DerivedElement) -> list[Block]:
    rows: list[Block] = [Note(Span(each.recipe, Role.LABEL))]
    rows += [
        Row(f"  {step.name}", f"{step.formula} = {_amount(step.value)}".replace("= ≈", "≈")) for step in each.steps
    ]
    scale = f", scale {_amount(each.scale)}"
    return [*rows, Row("  code", line(Span(f"0x{each.code:x}", Role.CODE), scale))]
