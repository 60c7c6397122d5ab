"""The schema of a format: its parameters, its landmarks as DATUM, its codes per class, its names and source."""

from __future__ import annotations

from floatlab.formats import CatalogRow, Format
from floatlab.formats.census import Census, census
from floatlab.numbers import Datum
from floatlab.numbers.dialects import dialects_of
from floatlab.wire.codecs import FORMAT, INTEGER, listed
from floatlab.wire.derivations import DATUM
from floatlab.wire.schema import Member, attributes, heading, schema, schema_of, shown, within

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

_PARAMETERS = ("width", "precision", "exponent_bits", "bias", "emin", "emax", "signed", "infinities")
_MORE = ("zero", "negative_zero", "subnormals")
_SMALL = 8  # bits of the largest formats whose codes are all listed


def _landmark(attribute: str) -> Callable[[CatalogRow], Datum]:
    return lambda row: Datum(row.format, row.format.compose(False, getattr(row.format, attribute)))


def _smallest(row: CatalogRow) -> Datum | None:
    return _landmark("smallest_magnitude")(row) if row.format.subnormals else None


def _data(format: Format) -> list[Datum]:
    return [Datum(format, code) for code in range(1 << format.width)]


_ROWS: dict[str, Member] = {
    **heading("formats"),
    "format": shown("format", FORMAT),
    "aliases": shown(lambda row: list(row.aliases)),
    "source": shown("source"),
    **within("format", attributes(*_PARAMETERS)),
    "nans": shown("format.nans", INTEGER),
    **within("format", attributes(*_MORE)),
    "largest": shown(_landmark("largest_magnitude"), DATUM),
    "smallest_normal": shown(_landmark("smallest_normal_magnitude"), DATUM),
    "smallest_subnormal": shown(_smallest, DATUM).replace(is_optional=True),
    "codes": shown(lambda row: census(row.format), schema_of(Census)),
}
SUMMARY = schema(**_ROWS)
_CODES = shown(lambda row: _data(row.format) if row.format.width <= _SMALL else None, listed(DATUM))
_DIALECTS = shown(lambda row: [dialect.name for dialect in dialects_of(row.format)] or None)
TABLE = schema(**_ROWS, dialects=_DIALECTS.replace(is_optional=True), table=_CODES.replace(is_optional=True))
