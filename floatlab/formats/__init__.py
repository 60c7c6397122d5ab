"""Floor 0: what a format is, and the formats that have names."""

from floatlab.formats.catalog import CATALOG, CatalogRow
from floatlab.formats.format import Format
from floatlab.formats.names import catalog_row, parse_format

__all__ = ["CATALOG", "Format", "CatalogRow", "catalog_row", "parse_format"]
