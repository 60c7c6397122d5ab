"""`formats`: the table of all formats, or one format in full, or several formats side by side."""

from __future__ import annotations

from floatlab.formats import CATALOG, catalog_row, parse_format
from floatlab.formats.catalog import BLOCK_ALIASES
from floatlab.formats.table_catalog import TABLES
from floatlab.page.model import Page
from floatlab.verbs.question import Answer, Question, Started, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from floatlab.formats.recipes import Recipe
    from floatlab.wire.codecs import Wire


def formats(names: tuple[str, ...] = ()) -> Answer:
    """Return the answer for all formats, or for the named formats.

    >>> formats(("fp8-e4m3",)).words()
    ['e4m3fn']
    """
    if any(_is_recipe(name) for name in names):
        return recipes(names)
    rows = [catalog_row(parse_format(name)) for name in names] or [*CATALOG, *TABLES]

    def parts() -> list[Page]:
        from floatlab.verbs.formats.page import format_page, formats_page
        from floatlab.verbs.formats.ranges_page import ranges_page

        if not names:
            return [formats_page(rows)]
        pages = [format_page(row) for row in rows]
        different = list(dict.fromkeys(row.format for row in rows))
        if len(different) > 1:
            pages.append(ranges_page(different))
        return pages

    def page() -> Page:
        from floatlab.page.model import joined

        return joined(parts())

    def records() -> list[Wire]:
        from floatlab.verbs.formats.json import SUMMARY, TABLE
        from floatlab.wire.schema import write_document

        return [write_document(TABLE if names else SUMMARY, row) for row in rows]

    found = [row.format.name for row in rows]
    return Answer(page, records, lambda: found, lambda: found, parts=parts)


def _is_recipe(name: str) -> bool:
    """Return whether a name looks like the name of a recipe. The recipes are not imported for this."""
    plain = name.strip().lower().replace("-", "_")
    return plain in BLOCK_ALIASES or any(mark in name for mark in "/:(")


def recipes(names: tuple[str, ...]) -> Answer:
    """Return the answer that describes these recipes.

    >>> recipes(("nvfp4", "e4m3/tensor:te")).words()
    ['nvfp4', 'e4m3/tensor:te']
    """
    from floatlab.formats.recipes import parse_recipe

    return answer_of(*map(parse_recipe, names))


def answer_of(*found: Recipe) -> Answer:
    """Return the answer that shows these recipes."""

    def parts() -> list[Page]:
        from floatlab.verbs.formats.recipe_page import recipe_page

        return [recipe_page(recipe) for recipe in found]

    def page() -> Page:
        from floatlab.page.model import joined

        return joined(parts())

    named = [recipe.name for recipe in found]
    return Answer(page, written(*found), lambda: named, lambda: named, parts=parts)


def answers(question: Question, started: Started | None = None) -> list[Answer]:
    """Answer a question."""
    return [formats(question.values)]
