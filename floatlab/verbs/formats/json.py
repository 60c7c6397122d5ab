"""The JSON schemas of a format and of a recipe."""

from __future__ import annotations

from floatlab.formats import CatalogRow, Format
from floatlab.formats.census import Census, census
from floatlab.formats.recipes import Recipe, parse_recipe, rules_for
from floatlab.numbers import Datum
from floatlab.numbers.dialects import dialects_of
from floatlab.wire.codecs import FORMAT, INTEGER, TEXT, list_of
from floatlab.wire.derivations import DATUM
from floatlab.wire.schema import Member, attributes, common_members, derived, field, flattened, schema, schema_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PARAMETERS = ("width", "precision", "exponent_bits", "bias", "emin", "emax", "signed", "infinities")
_MORE = ("zero", "negative_zero", "subnormals")
_SMALL = 8  # up to this width in bits, the JSON lists all codes of a format


def _landmark(attribute: str) -> Callable[[CatalogRow], Datum]:
    return lambda row: Datum(row.format, row.format.compose(False, getattr(row.format, attribute)))


def _smallest(row: CatalogRow) -> Datum | None:
    return _landmark("smallest_magnitude")(row) if row.format.subnormals else None


def _data(format: Format) -> list[Datum]:
    return [Datum(format, code) for code in range(1 << format.width)]


_ROWS: dict[str, Member] = {
    **common_members("formats"),
    "format": derived("format", FORMAT),
    "aliases": derived(lambda row: list(row.aliases)),
    "source": derived("source"),
    **flattened("format", attributes(*_PARAMETERS)),
    "nans": derived("format.nans", INTEGER),
    **flattened("format", attributes(*_MORE)),
    "largest": derived(_landmark("largest_magnitude"), DATUM),
    "smallest_normal": derived(_landmark("smallest_normal_magnitude"), DATUM),
    "smallest_subnormal": derived(_smallest, DATUM).replace(is_optional=True),
    "codes": derived(lambda row: census(row.format), schema_of(Census)),
}
SUMMARY = schema(**_ROWS)
_CODES = derived(lambda row: _data(row.format) if row.format.width <= _SMALL else None, list_of(DATUM))
_DIALECTS = derived(lambda row: [dialect.name for dialect in dialects_of(row.format)] or None)
TABLE = schema(**_ROWS, dialects=_DIALECTS.replace(is_optional=True), table=_CODES.replace(is_optional=True))


def _tensor_scale(recipe: Recipe) -> str | None:
    return None if recipe.format.tensor is None else recipe.format.tensor.name


# A recipe is read back from its name alone, which determines everything else.
RECIPE = schema(
    lambda name: parse_recipe(name),
    **common_members("formats"),
    recipe=field(TEXT, "name"),
    element=derived("format.element.name"),
    scale=derived("format.scale.name"),
    block=derived("format.shape"),
    tensor_scale=derived(_tensor_scale),
    rule=derived("rule.name"),
    lines=derived(lambda recipe: [str(each) for each in recipe.rule.steps()]),
    working=derived(lambda recipe: recipe.rule.working or "exact"),
    value=derived("rule.value"),
    source=derived("rule.source"),
    rules=derived(lambda recipe: [each.name for each in rules_for(recipe.format)]),
)
